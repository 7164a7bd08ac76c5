"""A home goes on with the copy: everything that lay in its store, and what lies beside it."""

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import accord
from accord.services.migrate import Migration
from accord.store.open import open_store
from tests.conformance.engines import ENGINES, Engine
from tests.migrate.held import held_at
from tests.migrate.test_killed import ACCORD, LASTING, writes
from tests.operations.test_results import attend, plan, share_work, take_turns, talk, tell, write_documents
from tests.operations.ways import Python, Refused, Way
from tests.robustness import strace

pytestmark = pytest.mark.covers("S11")

SQLITE, FILES = ENGINES[1:3]
ELSEWHERE = [engine for engine in ENGINES if engine.server]


@pytest.fixture(autouse=True)
def user_home(quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a user and one of accord in it, for this process and those it starts; nobody is an agent."""
    for name in ("ACCORD_AGENT", "ACCORD_TOKEN", "ACCORD_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(quick_path))
    monkeypatch.setenv("ACCORD_HOME", str(quick_path / "accord"))
    monkeypatch.chdir(quick_path)
    return quick_path


def migrated(source: str, target: str) -> dict[str, Any]:
    return Python("").do("home.migrate", source=source, target=target)


def furnish(way: Way, user_home: Path) -> None:
    """Something of everything."""
    for part in (talk, attend, write_documents, share_work, plan, take_turns, tell):
        part(way.do, user_home)
    way.do("doc.write", name="notes/today", text="kept\n")
    way.do("queue.push", queue="builds", payload="later", delay=3600.0)


def seen(way: Way) -> dict[str, Any]:
    """What people and agents can look at, without where the store stands and what is theirs for a while."""
    asked: dict[str, dict[str, Any]] = {
        "agent.discover": {},
        "channel.list": {},
        "doc.list": {},
        "doc.history": {"name": "plan"},
        "doc.read": {"name": "notes/today"},
        "mail.sent": {"sender": "ann"},
        "mail.thread": {"conversation": "m1"},
        "mail.search": {"query": "green"},
        "mail.receipt": {"id": "m2"},
        "queue.dead": {"queue": "builds"},
        "task.list": {},
        "task.board": {},
        "topic.read": {"channel": "builds"},
        "audit.list": {},
    }
    found = {operation: way.do(operation, **params) for operation, params in asked.items()}
    found |= {name: way.do("mail.check", identity=name, peek=True) for name in ("ann", "ben", "human")}
    return _without_places(found)  # type: ignore[no-any-return]


def _without_places(found: Any) -> Any:
    if isinstance(found, dict):
        return {
            name: _without_places(value)
            for name, value in found.items()
            if not (name == "revision" and isinstance(value, str))
        }
    return [_without_places(one) for one in found] if isinstance(found, list) else found


def legs() -> list[Any]:
    """sqlite → redis → etcd → files → firebase → sqlite, of those there are; in `make test`, of those on this disk."""
    order = [engine for name in ("redis", "etcd", "files", "firebase") for engine in LASTING if engine.name == name]
    everywhere = pytest.param([SQLITE, *order, SQLITE], id="everywhere", marks=[pytest.mark.more])
    return [pytest.param([SQLITE, FILES, SQLITE], id="here"), everywhere]


@pytest.mark.parametrize("engines", legs())
def test_a_home_that_moves_and_moves(engines: list[Engine], user_home: Path) -> None:
    """With a kill in the middle of each leg."""
    urls = [engine.url(user_home / f"s{at}") for at, engine in enumerate(engines)]
    furnish(Python(urls[0]), user_home)
    before, wanted = seen(Python(urls[0])), held_at(urls[0])
    head = Python(urls[0]).do("audit.verify")["head"]
    for number, (source, target) in enumerate(pairwise(urls), start=1):
        cut_short(source, target, engines[number].url(user_home / f"tried{number}"), user_home)
        assert migrated(source, target)["tokens"] == 3
        assert seen(Python(target)) == before
        verified = Python(target).do("audit.verify", head=head)
        assert (verified["compared"], verified["head"], verified["kept"]) == (len(wanted["audit"][1]), head, True)
    assert held_at(urls[-1]) == wanted


def cut_short(source: str, target: str, tried: str, user_home: Path) -> None:
    """Kill a migration in the middle of what it writes; where that is, one to another place tells."""
    words = ["--home", str(user_home / "accord"), "migrate", "--from", source, "--to"]
    log = user_home / "strace.log"
    whole = strace.run([*words, tried], log, command=ACCORD)
    assert (whole.status, whole.complaints) == (0, "")
    points = writes(user_home, whole.log)
    middle = points[len(points) // 2]
    killed = strace.run(
        [*words, target],
        log,
        "-e",
        f"trace={middle.name}",
        "-e",
        f"inject={middle.name}:signal=SIGKILL:when={middle.number}",
        command=ACCORD,
    )
    assert killed.status == -9, middle


@pytest.mark.parametrize("engine", LASTING, ids=lambda engine: engine.name)
def test_it_is_used_as_before(engine: Engine, user_home: Path) -> None:
    """Numbers go on, and a request that was made before is known."""
    source, target = SQLITE.url(user_home / "a"), engine.url(user_home / "b")
    furnish(Python(source), user_home)
    with accord.open(engine=source) as home:
        first = home.request("one").mail.send(sender="ann", to="ben", message="once")
    migrated(source, target)
    with accord.open(engine=target) as home:
        again = home.request("one").mail.send(sender="ann", to="ben", message="once")
    assert again["message_id"] == first["message_id"]
    way = Python(target)
    assert [m["message"] for m in way.do("mail.check", identity="ben", peek=True)["messages"]].count("once") == 1
    assert way.do("doc.write", name="notes/today", text="more", base=1)["revision"] == 2
    assert way.do("queue.push", queue="builds", payload="next")["sequence"] == 5
    assert way.do("topic.publish", channel="builds", message="again")["sequence"] == 2
    assert way.do("mail.search", query="once")["messages"]


@pytest.mark.parametrize("engine", [FILES, *ELSEWHERE], ids=lambda engine: engine.name)
def test_what_was_held_for_a_while(engine: Engine, user_home: Path) -> None:
    """On another clock it is over, and its number keeps out who held it; on the same it goes on."""
    source, target = SQLITE.url(user_home / "a"), engine.url(user_home / "b")
    way = Python(source)
    way.do("agent.register", identity="ann")
    way.do("queue.push", queue="builds", payload="work")
    receipt = way.do("queue.pop", queue="builds", visibility=3600)["receipt"]
    token = way.do("lock.acquire", name="build", owner="ann", ttl=3600)["token"]
    way.do("reserve.add", project="/project", globs="src/**", owner="ann")
    way.do("task.add", title="Write it", id="a")
    way.do("task.claim", id="a", agent="ann", ttl=3600)
    migrated(source, target)
    there = Python(target)
    assert len(there.do("reserve.list")["reservations"]) == (not engine.server)
    if not engine.server:
        assert there.do("lock.renew", name="build", owner="ann", token=token, ttl=3600)["token"] == token
        assert there.do("queue.done", queue="builds", receipt=receipt)["sequence"] == 1
        return
    assert there.do("lock.acquire", name="build", owner="ben")["token"] == token + 1
    assert there.do("queue.pop", queue="builds")["sequence"] == 1
    assert there.do("task.claim", id="a", agent="ben")["agent"] == "ben"
    for code, operation, params in (
        ("LOCK_LOST", "lock.renew", {"name": "build", "owner": "ann", "token": token}),
        ("FENCED", "doc.write", {"name": "x", "text": "", "fence": f"build:{token}"}),
        ("STALE_RECEIPT", "queue.done", {"queue": "builds", "receipt": receipt}),
    ):
        with pytest.raises(Refused) as refused:
            there.do(operation, **params)
        assert refused.value.code == code


@pytest.mark.parametrize("engine", LASTING, ids=lambda engine: engine.name)
def test_what_is_encrypted_stays_so(engine: Engine, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody needs the key to copy it, and with it everything can be read."""
    source, target = SQLITE.url(user_home / "a"), engine.url(user_home / "b")
    monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", "12" * 32)
    furnish(Python(source), user_home)
    before, head = seen(Python(source)), Python(source).do("audit.verify")["head"]
    monkeypatch.delenv("ACCORD_ENCRYPTION_KEY")
    migrated(source, target)
    for wrong, code in (("", "KEY_NEEDED"), ("34" * 32, "WRONG_KEY")):
        if wrong:
            monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", wrong)
        with pytest.raises(Refused) as refused:
            Python(target).do("doc.list")
        assert refused.value.code == code
    monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", "12" * 32)
    assert seen(Python(target)) == before
    assert Python(target).do("audit.verify", head=head)["kept"]
    items = [value for _, items in held_at(target).values() for _, value in items]
    assert not any(b"green" in value for value in items)


def test_a_document_edited_by_hand_is_seen_as_such(user_home: Path) -> None:
    source, target = FILES.url(user_home / "a"), SQLITE.url(user_home / "b")
    Python(source).do("doc.write", name="plan", text="one")
    [file] = [path for path in user_home.rglob("plan*") if path.is_file() and path.read_text() == "one"]
    file.write_text("two, by hand")
    migrated(source, target)
    found = Python(target).do("doc.read", name="plan")
    assert (found["revision"], found["text"], found["by"]) == (2, "two, by hand", "by hand")


def test_the_chain_tells_of_what_was_changed_before(user_home: Path) -> None:
    """The copy's audit is compared with what witnessed the source's."""
    source, target = FILES.url(user_home / "a"), SQLITE.url(user_home / "b")
    Python(source).do("agent.register", identity="ann")
    Python(source).do("audit.verify")
    [chain] = (user_home / "accord/audit").glob("*.chain")
    chain.write_bytes(chain.read_bytes().replace(b"a", b"b"))
    migrated(source, target)
    with pytest.raises(Refused) as refused:
        Python(target).do("audit.verify")
    assert refused.value.code == "AUDIT_BROKEN"


def test_from_the_store_that_no_setting_names_and_back_to_it(user_home: Path) -> None:
    """Agents of the home's own store are known in the copy, and those of the copy in the home's own."""
    store = user_home / "accord" / "store.db"
    Python("").do("agent.register", identity="ann")
    target = FILES.url(user_home / "b")
    assert migrated(f"sqlite:{store}", target)["tokens"] == 1
    Python(target).do("agent.register", identity="ben")
    for path in store.parent.glob("store.db*"):
        path.unlink()
    for path in (user_home / "accord" / "agents").glob("*.token"):
        path.unlink()
    assert migrated(target, f"sqlite:{store}")["tokens"] == 2
    for way in (Python(""), Python(f"sqlite:{store}")):
        way.do("mail.send", sender="ben", to="ann", message="x")


def test_no_home_opens_what_is_not_finished(user_home: Path) -> None:
    source, target = SQLITE.url(user_home / "a"), FILES.url(user_home / "b")
    furnish(Python(source), user_home)
    cut_short_at_the_end(source, target, user_home)
    with pytest.raises(Refused) as refused:
        Python(target).do("agent.discover")
    assert refused.value.code == "MIGRATION_UNFINISHED"
    assert source in refused.value.text
    done = migrated(source, target)
    assert done["how"] == "resumed"
    Python(target).do("agent.discover")


def cut_short_at_the_end(source: str, target: str, user_home: Path) -> None:
    """Make a copy of which everything is there but the last word."""

    class Stop(Exception):
        pass

    def stop(epoch: str) -> None:
        raise Stop

    with closing(open_store(source)) as one, closing(open_store(target)) as other, pytest.raises(Stop):
        Migration(one, source, other, target).run(stop, lambda done, total: None)
