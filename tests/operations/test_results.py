"""What every operation gives has the shape that type checkers and the docs tell of."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, is_typeddict

import pytest

from accord import place
from accord.client import Connection
from accord.operations import NAMES, results
from tests.operations.people import token_of
from tests.operations.shapes import met, misfits, shape_of
from tests.operations.ways import Python
from tests.ports import free_ports

TIMEOUT_S = 20.0

Do = Callable[..., dict[str, Any]]

OPERATIONS = {f"{group}.{word}" for group, words in NAMES.items() for word in words}
SHAPES = {name for name, value in vars(results).items() if is_typeddict(value) and not name.startswith("_")}


@pytest.fixture
def given() -> dict[str, list[dict[str, Any]]]:
    """What each operation gave."""
    return {}


@pytest.fixture
def do(given: dict[str, list[dict[str, Any]]], user_home: Path) -> Iterator[Do]:
    way = Python("")

    def do(operation: str, **params: Any) -> dict[str, Any]:
        result = way.do(operation, **params)
        given.setdefault(operation, []).append(result)
        return result

    yield do
    way.do("hub.stop")


@pytest.mark.covers("I5", "Q1")
def test_every_operation_gives_what_it_says(do: Do, given: dict[str, list[dict[str, Any]]], user_home: Path) -> None:
    for part in (talk, attend, write_documents, share_work, plan, take_turns, tell, hear, stop, move):
        part(do, user_home)
    assert given.keys() == OPERATIONS
    wrong = {
        operation: found
        for operation, all_given in given.items()
        if (found := [wrong for result in all_given for wrong in misfits(result, shape_of(operation))])
    }
    assert not wrong
    there = {name for operation in given for result in given[operation] for name in met(result, shape_of(operation))}
    assert there == SHAPES - {"Reservation"}  # which others build on


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        ({"channel": "builds", "sequence": 1}, results.Place, []),
        ({"channel": "builds"}, results.Place, ["it has no sequence"]),
        ({"channel": "builds", "sequence": 1, "seq": 1}, results.Place, ["it has seq, which Place has not"]),
        ({"channel": "builds", "sequence": True}, results.Place, ["it['sequence'] is True"]),
        ({"channels": [{"channel": "builds"}]}, results.Channels, ["it['channels'][0] has no members"]),
        ({"channels": None}, results.Channels, ["it['channels'] is None"]),
        ({"results": [{"any": 1}]}, results.Made, []),
        ({"halted": 1, "path": ""}, results.HaltState, ["it['halted'] is 1"]),
        ([], results.Place, ["it is []"]),
    ],
)
def test_a_result_of_another_shape_is_found(value: object, shape: Any, expected: list[str]) -> None:
    wrong = misfits(value, shape)
    assert len(wrong) == len(expected)
    assert all(found.startswith(start) for found, start in zip(wrong, expected, strict=True))


def talk(do: Do, user_home: Path) -> None:
    do("home.init")
    for name in ("ann", "ben", "zoe"):
        do("agent.register", identity=name)
    do("agent.unregister", identity="zoe")
    for name in ("ann", "ben"):
        do("channel.join", channel="builds", identity=name)
    do("channel.list")
    do("channel.leave", channel="builds", identity="ann")
    do("mail.send", sender="ann", to=["ben", "human"], message="are the tests green?", type="query", id="m1")
    do("mail.send", sender="ann", channel="builds", message="hello", id="m2")
    do("mail.hand_over", identity="ben", ids="m2", by="hook")
    do("mail.check", identity="ben")
    do("mail.send", sender="ben", reply_to="m1", message="they are")
    do("mail.ack", identity="ben", ids="m1")
    do("mail.sent", sender="ann")
    do("mail.thread", conversation="m1")
    do("mail.search", query="green")


def attend(do: Do, user_home: Path) -> None:
    this = {"brain": "claude", "session": "one"}
    name = do("hook.start", **this, project=str(user_home))["identity"]
    id = do("mail.send", sender="ann", to=name, message="x")["message_id"]
    do("hook.step", **this, event="step")
    do("hook.given", **this, event="step", ids=id)
    do("mail.receipt", id=id)
    do("agent.discover")
    do("hook.wait", **this)
    do("hook.end", **this)
    do("hook.end", brain="claude", session="another")


def write_documents(do: Do, user_home: Path) -> None:
    do("doc.write", name="plan", text="one")
    do("doc.write", name="plan", text="two", base=1, ttl=3600)
    do("doc.read", name="plan")
    do("doc.restore", name="plan", revision=1)
    do("doc.list")
    do("doc.rm", name="plan")
    do("doc.history", name="plan")


def share_work(do: Do, user_home: Path) -> None:
    for payload in ("first", "second", "third"):
        do("queue.push", queue="builds", payload=payload, tries=1)
    do("queue.peek", queue="builds")
    do("queue.done", queue="builds", receipt=do("queue.pop", queue="builds")["receipt"])
    for _ in range(2):
        do("queue.fail", queue="builds", receipt=do("queue.pop", queue="builds")["receipt"], reason="broken")
    do("queue.dead", queue="builds")
    do("queue.retry", queue="builds", sequence=2)
    do("queue.drop", queue="builds", sequence=3)
    do("queue.list")


def plan(do: Do, user_home: Path) -> None:
    for id in ("a", "b", "c"):
        do("task.add", title="Write it", id=id, text="all of it")
    do("task.depend", id="b", after="a")
    do("task.assign", id="a", agent="ann", session="s1")
    do("task.claim", id="a", agent="ann")
    do("task.start", id="a", agent="ann")
    do("task.progress", id="a", agent="ann", note="half of it")
    do("task.block", id="c", reason="no time")
    do("task.board")
    do("task.unblock", id="c")
    do("task.next", agent="ben")
    do("task.release", id="c", agent="ben")
    do("task.done", id="a", agent="ann")
    do("task.show", id="b")
    do("task.show", id="a")
    do("task.list")


def take_turns(do: Do, user_home: Path) -> None:
    token = do("lock.acquire", name="build", owner="ann")["token"]
    do("lock.renew", name="build", owner="ann", token=token)
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(do, "lock.acquire", name="build", owner="ben", wait=TIMEOUT_S)
        while not waits.done() and not do("lock.list")["locks"][0]["waiting"]:
            pass
        do("home.doctor")
        do("lock.release", name="build", owner="ann", token=token)
    do("reserve.add", project="/project", globs="src/**", owner="ann")
    do("reserve.add", project="/project", globs="src/main.py", owner="ben", advisory=True)
    do("reserve.check", project="/project", paths="src/main.py")
    do("reserve.list")
    do("reserve.release", project="/project", owner="ann", all=True)


def tell(do: Do, user_home: Path) -> None:
    do("topic.publish", channel="builds", message="main is green")
    do("topic.read", channel="builds")
    do("topic.last", channel="builds")
    do("tx.run", steps=[{"operation": "doc.write", "name": "plan", "text": "three"}])
    do("audit.list")
    do("audit.verify", head=do("audit.verify")["head"])


def hear(do: Do, user_home: Path) -> None:
    do("hub.status")
    port, http_port = free_ports(2)  # which nobody else takes while it starts again
    do("hub.start", port=port, http_port=http_port)
    do("hub.restart")
    connection = Connection(place.socket_path(str(user_home / "accord")), TIMEOUT_S)
    connection.call("session.open", {"agent": "ann", "token": token_of(user_home, "ann")}, TIMEOUT_S)
    connection.call("mail.listen", {"identity": "ann"}, TIMEOUT_S)
    do("mail.check", identity="ann")
    do("agent.discover")
    connection.close()
    do("hub.keys_make", name="laptop")
    do("hub.keys_list")
    do("hub.keys_revoke", name="laptop")
    do("hub.stop")


def stop(do: Do, user_home: Path) -> None:
    do("halt.set", reason="enough")
    do("agent.discover")
    do("home.doctor")
    do("halt.status")
    do("halt.lift")
    do("halt.engage", all=True)
    (user_home / "accord.yml").write_text("communication: {settings: {lock_timeout: 20, transaction_dir: /tmp}}\n")
    do("config.trust", path=str(user_home))
    do("config.show")
    do("firebase.rules", uid="me")


def move(do: Do, user_home: Path) -> None:
    here, there = f"sqlite:{user_home}/accord/store.db", f"files:{user_home}/moved"
    do("home.migrate", source=here, target=there)
    do("home.migrate", source=there, target=here, dry_run=True)  # which is not empty
