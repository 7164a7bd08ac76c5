"""Every service on the hostile memory engine: what is asked for happens once, whatever befalls the store.

Works run twice, snapshots move, commits meet conflicts or an end of which nobody is told. Each change is a request with
a name, asked for until there is an answer.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord import operations
from accord.operations.context import Context, local
from accord.services.audit import entries
from accord.services.audited import ELSEWHERE
from accord.store.open import open_store
from accord.store.transaction import transact
from accord.store.wrap.faulty import chance, faulty, plan, work_twice
from tests.operations.people import insist
from tests.operations.test_document_races import in_threads

FATES: dict[str, Callable[[], Any]] = {
    "twice": work_twice,
    "conflicts": lambda: chance(1, conflict=0.3, moved=0.05),
    "unknown": lambda: chance(2, conflict=0.2, moved=0.02, lost=0.2, never=0.2),
}
TIMES = 12


class Callers:
    """They share a store, and each request of theirs has a name of its own."""

    def __init__(self, folder: Path, fate: Any) -> None:
        self.folder = folder
        self.quiet = open_store("memory:")
        self.store = faulty(self.quiet, fate)
        self.store.patience_s = 30.0
        self.done: set[str] = set()
        self._requests = 0

    def do(self, operation: str, request: str = "", **params: Any) -> dict[str, Any]:
        self.done.add(operation)
        self._requests += 1
        return insist(self.context(request or f"request {self._requests}"), operation, params)

    def context(self, request: str) -> Context:
        found = local({"HOME": str(self.folder)}, str(self.folder), request=request)
        found._opened.append(self.store)
        return found

    def audit(self) -> list[str]:
        """The operation of each entry; there are as many as commits."""
        found = transact(self.quiet, lambda tx: entries(tx, 0, 1000))
        with self.quiet.snapshot() as snapshot:
            assert snapshot.revision == len(found)
        return [entry["operation"] for entry in found]


def of_mail(callers: Callers) -> None:
    for name in ("ann", "ben"):
        callers.do("agent.register", identity=name)
    ids = []
    for n in range(TIMES):
        sent = callers.do("mail.send", sender="ann", to=["ben", "human"], message=f"number {n}", conversation="talk")
        ids.append(sent["message_id"])
    callers.do("mail.hand_over", identity="ben", ids=ids[:2])
    callers.do("mail.ack", identity="ben", ids=ids[::2])
    assert [one["message_id"] for one in callers.do("mail.check", identity="ben")["messages"]] == ids[1::2]
    assert [one["message_id"] for one in callers.do("mail.sent", sender="ann")["messages"]] == ids[::-1]
    thread = callers.do("mail.thread", conversation="talk")["messages"]
    assert [one["sequence"] for one in thread] == list(range(1, TIMES + 1))
    assert sorted(one["message_id"] for one in callers.do("mail.search", query="number")["messages"]) == sorted(ids)
    callers.do("agent.unregister", identity="ben")
    assert {one["identity"] for one in callers.do("agent.discover")["identities"]} == {"ann", "human"}


def of_sessions(callers: Callers) -> None:
    callers.do("agent.register", identity="ben")
    this = {"brain": "claude", "session": "one"}
    name = callers.do("hook.start", **this, project=str(callers.folder))["identity"]
    sent = [callers.do("mail.send", sender="ben", to=name, message=f"{n}")["message_id"] for n in range(TIMES)]
    taken = callers.do("hook.step", **this, event="step")["messages"]
    assert [one["message_id"] for one in taken] == sent
    assert callers.do("hook.given", **this, event="step", ids=sent)["handed_over"] == sent
    callers.do("hook.step", **this, event="stop", proves=True)
    states = [one["states"][0]["state"] for one in callers.do("mail.sent", sender="ben")["messages"]]
    assert states == ["seen"] * TIMES
    assert not callers.do("hook.wait", **this)["woken"]
    assert callers.do("hook.end", **this)["identity"] == name


def of_channels(callers: Callers) -> None:
    names = ["ann", "ben", "cat"]
    for name in names:
        callers.do("agent.register", identity=name)
        callers.do("channel.join", channel="builds", identity=name)
    callers.do("channel.leave", channel="builds", identity="cat")
    assert callers.do("channel.list")["channels"] == [{"channel": "builds", "members": ["ann", "ben"]}]
    for _ in range(TIMES):
        callers.do("mail.send", sender="ann", channel="builds", message="hello")
    counts = [callers.do("mail.check", identity=name, peek=True)["message_count"] for name in names]
    assert counts == [0, TIMES, 0]


def of_halts(callers: Callers) -> None:
    for name in ("ann", "ben"):
        callers.do("agent.register", identity=name)
    callers.do("halt.set")
    callers.do("halt.lift")
    assert set(callers.do("halt.engage", all=True)["engaged"]) <= {
        "ann",
        "ben",
    }  # some by a try that nobody was told of
    assert all(one["engaged"] for one in callers.do("agent.discover")["identities"])


def of_documents(callers: Callers) -> None:
    for n in range(TIMES):
        assert callers.do("doc.write", name="plan", text=f"{n}", base=n)["revision"] == n + 1
    assert callers.do("doc.rm", name="plan")["revision"] == TIMES + 1
    assert callers.do("doc.restore", name="plan", revision=TIMES - 1)["revision"] == TIMES + 2
    assert callers.do("doc.read", name="plan")["text"] == f"{TIMES - 2}"


def of_locks(callers: Callers) -> None:
    for n in range(TIMES):
        grant = {"name": "build", "owner": f"w{n}"}
        assert callers.do("lock.acquire", wait=0, **grant)["token"] == n + 1
        callers.do("lock.renew", token=n + 1, **grant)
        callers.do("lock.release", token=n + 1, **grant)
    assert callers.do("lock.list")["locks"] == []


def of_reservations(callers: Callers) -> None:
    project = str(callers.folder)
    for n in range(TIMES):
        assert not callers.do("reserve.add", project=project, owner="ann", globs=[f"f{n}"])["overlaps"]
    released = callers.do("reserve.release", project=project, owner="ann", globs=["f0", "f1"])["released"]
    assert sorted(released) == ["f0", "f1"]
    assert len(callers.do("reserve.list")["reservations"]) == TIMES - 2


def of_queues(callers: Callers) -> None:
    for n in range(TIMES):
        assert callers.do("queue.push", queue="work", payload=f"{n}", tries=1)["sequence"] == n + 1
    for n in range(TIMES):
        taken = callers.do("queue.pop", queue="work")
        assert (taken["sequence"], taken["payload"]) == (n + 1, f"{n}")
        callers.do("queue.fail" if n < 2 else "queue.done", queue="work", receipt=taken["receipt"])
    callers.do("queue.drop", queue="work", sequence=1)
    callers.do("queue.retry", queue="work", sequence=2)
    [found] = callers.do("queue.list")["queues"]
    assert (found["ready"]["normal"], found["in_flight"], found["dead"], found["length"]) == (1, 0, 0, 1)


def of_tasks(callers: Callers) -> None:
    for n in range(TIMES):
        assert callers.do("task.add", title="x")["id"] == f"t{n + 1}"
    callers.do("task.depend", id="t2", after=["t1"])
    callers.do("task.assign", id="t1", agent="ann")
    callers.do("task.claim", id="t1", agent="ann")
    callers.do("task.start", id="t1", agent="ann")
    callers.do("task.progress", id="t1", agent="ann", note="half of it")
    callers.do("task.done", id="t1", agent="ann")
    callers.do("task.block", id="t3", reason="later")
    callers.do("task.unblock", id="t3")
    for n in range(1, TIMES):
        taken = callers.do("task.next", agent="ben")
        assert (taken["id"], taken["token"]) == (f"t{n + 1}", 1)
        callers.do("task.release" if n == 1 else "task.done", id=taken["id"], agent="ben")
        if n == 1:
            assert callers.do("task.next", agent="ben")["token"] == 2
    assert callers.do("task.list", state="ready")["tasks"] == []


def of_topics(callers: Callers) -> None:
    for n in range(TIMES):
        assert callers.do("topic.publish", channel="builds", message=f"{n}")["sequence"] == n + 1
    found = callers.do("topic.read", channel="builds")["entries"]
    assert [(one["sequence"], one["message"]) for one in found] == [(n + 1, f"{n}") for n in range(TIMES)]
    assert callers.do("topic.last", channel="builds")["sequence"] == TIMES


def of_transactions(callers: Callers) -> None:
    """With steps of several services, which have no number of their own before the commit."""
    for n in range(1, TIMES + 1):
        results = callers.do("tx.run", steps=steps(f"{n}"))["results"]
        pushed, written, added, published = results
        assert (pushed["sequence"], written["revision"], added["id"], published["sequence"]) == (n, n, f"t{n}", n)


def steps(text: str) -> list[dict[str, str]]:
    return [
        {"operation": "queue.push", "queue": "work", "payload": text},
        {"operation": "doc.write", "name": "plan", "text": text},
        {"operation": "task.add", "title": text},
        {"operation": "topic.publish", "channel": "builds", "message": text},
    ]


SERVICES: dict[str, tuple[Callable[[Callers], None], tuple[str, ...]]] = {
    "mail": (of_mail, ("T2.1", "T2.5")),
    "sessions": (of_sessions, ("I3",)),
    "channels": (of_channels, ("T5.2",)),
    "halts": (of_halts, ("T4.1",)),
    "documents": (of_documents, ("S5",)),
    "locks": (of_locks, ("S6",)),
    "reservations": (of_reservations, ("S6",)),
    "queues": (of_queues, ("S7",)),
    "tasks": (of_tasks, ("S8",)),
    "topics": (of_topics, ("S9",)),
    "transactions": (of_transactions, ("S4",)),
}


@pytest.mark.covers("S1", "S14.3")
@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize(
    "use", [pytest.param(use, id=name, marks=pytest.mark.covers(*ids)) for name, (use, ids) in SERVICES.items()]
)
def test_misfortune_changes_nothing(use: Callable[[Callers], None], fate: str, tmp_path: Path) -> None:
    """Each commit has its entry of the audit, and there are those that there are where all goes well."""
    lucky, unlucky = Callers(tmp_path / "lucky", plan()), Callers(tmp_path / "unlucky", FATES[fate]())
    use(lucky)
    use(unlucky)
    assert unlucky.audit() == lucky.audit()
    assert unlucky.do("audit.verify")["entries"] == len(lucky.audit())


@pytest.mark.covers("S1", "S4", "S9", "S14.3", "T2.1")
@pytest.mark.parametrize("fate", FATES)
def test_many_at_once_on_a_hostile_store(fate: str, tmp_path: Path) -> None:
    callers = Callers(tmp_path, FATES[fate]())
    numbers: list[int] = []

    def work(who: int) -> None:
        for n in range(TIMES):
            callers.do("topic.publish", f"{who} {n} topic", channel="other", message=f"{who} {n}")
            callers.do("mail.send", f"{who} {n} mail", sender="human", to="human", message=f"{who} {n}")
            results = callers.do("tx.run", f"{who} {n} tx", steps=steps(f"{who} {n}"))["results"]
            numbers.append(results[0]["sequence"])
            assert results[0]["sequence"] == results[1]["revision"] == results[3]["sequence"]

    in_threads(4, work)
    assert sorted(numbers) == list(range(1, 4 * TIMES + 1))
    said = sorted(f"{who} {n}" for who in range(4) for n in range(TIMES))
    assert sorted(one["message"] for one in callers.do("topic.read", channel="other")["entries"]) == said
    assert sorted(one["message"] for one in callers.do("mail.check", identity="human")["messages"]) == said
    assert sorted(callers.audit()) == sorted(["topic.publish", "mail.send", "tx.run"] * 4 * TIMES)


@pytest.mark.covers("S1")
def test_every_change_is_among_these(tmp_path: Path) -> None:
    """An operation that somebody adds has to bear misfortune as well."""
    done: set[str] = set()
    for name, (use, _) in SERVICES.items():
        callers = Callers(tmp_path / name, plan())
        use(callers)
        done |= callers.done
    every = {f"{group}.{word}" for group, words in operations.NAMES.items() for word in words}
    changes = {name for name in every if operations.find(name).changes}  # type: ignore[attr-defined]
    of_the_home = {name for name in changes if name.startswith(("home.", "hub."))}
    assert changes - of_the_home - set(ELSEWHERE) - done == set()
