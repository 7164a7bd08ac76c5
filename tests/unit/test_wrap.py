"""Stores in wrappers: they keep the contract, tell all that happens, and bring the misfortune they were asked for."""

import functools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from accord import errors
from accord.store.contract import Append, CollectionIs, Committed, Conflict, Delete, ItemIs, Moved, Number, Put
from accord.store.engines.memory import Memory
from accord.store.open import open_store
from accord.store.protocols import Ledger, Snapshot, Store
from accord.store.transaction import Transaction, transact
from accord.store.wrap.faulty import FAULTS, LATE_S, chance, faulty, plan, work_twice
from accord.store.wrap.recorded import recorded
from accord.testing import conformance
from accord.testing.histories import check_history
from accord.testing.histories.history import UNKNOWN, read_history

if TYPE_CHECKING:
    from accord.store.contract import Check, Write
    from accord.store.protocols import Batch


def open_recorded(url: str, history: str) -> Store:
    return recorded(open_store(url), history, "ada")


def open_in_both(url: str, history: str) -> Store:
    return recorded(faulty(open_store(url), plan()), history, "ada")


def exclusive(store: Store) -> "Batch":
    batch: Batch = store.exclusive()  # type: ignore[attr-defined] # not every store has it
    return batch


@pytest.mark.parametrize("check", [*conformance.checks(), *conformance.checks_without_exclusive()])
def test_a_wrapped_store_is_a_store(check: conformance.Check, tmp_path: Path) -> None:
    check(functools.partial(open_in_both, f"memory:{tmp_path}", str(tmp_path / "history")))


@pytest.mark.parametrize("check", conformance.checks_with_exclusive())
def test_a_wrapped_store_has_its_exclusive(check: conformance.Check, tmp_path: Path) -> None:
    check(functools.partial(open_in_both, f"sqlite:{tmp_path}/store", str(tmp_path / "history")))


# What is recorded.


def test_reads_and_commits_are_told(tmp_path: Path) -> None:
    store = open_recorded("memory:", str(tmp_path / "history"))
    value = bytes(range(256))
    store.commit([ItemIs("c", "a", 0), CollectionIs("c", 0)], [Put("c", "a", value), Delete("c", "b")])
    store.commit([], [Append("n", b"1"), Put("n", Number(0), (b"is ", Number(0))), Delete("d", Number(0))])
    with store.snapshot() as snapshot:
        snapshot.get("c", "a")
        snapshot.get("c", "gone")
        snapshot.head("n")
        snapshot.list("n")

    history = read_history([tmp_path / "history"])

    number = "0000000000000001"
    assert [(commit.revision, commit.checks, commit.writes) for commit in history.commits] == [
        (1, ((("c", "a"), 0), (("c", None), 0)), {("c", "a"): value, ("c", "b"): None}),
        (2, (), {("n", number): b"is 1", ("d", number): None}),
    ]
    assert [(read.place, read.value, read.revision) for read in history.reads] == [
        (("c", "a"), value, 1),
        (("c", "gone"), None, 0),
        (("n", None), None, 2),
        (("n", number), b"is 1", 2),
    ]
    assert {read.snapshot for read in history.reads} == {2}
    assert {read.epoch for read in history.reads} == {snapshot.epoch}
    first, second = history.commits
    assert first.called <= first.returned <= second.called <= second.returned <= history.reads[0].called
    assert history.unanswered == 0


def test_a_page_tells_what_is_absent(tmp_path: Path) -> None:
    store = open_recorded("memory:", str(tmp_path / "history"))
    store.commit([], [Put("c", id, b"") for id in "abdef"])
    store.commit([], [Delete("c", id) for id in "be"])
    with store.snapshot() as snapshot:
        snapshot.list("c", after="a", limit=1)
        snapshot.list("c", after="f", limit=1, reverse=True)
        snapshot.list("c")

    reads = read_history([tmp_path / "history"]).reads

    up, down, everything = reads[:2], reads[2:4], reads[4:]
    assert {(read.place[1], read.value) for read in up} == {("b", None), ("d", b"")}
    assert {(read.place[1], read.value) for read in down} == {("e", None), ("d", b"")}
    assert len(everything) == 5


def test_what_came_of_it_is_told(tmp_path: Path) -> None:
    faults = plan(commit=["", "full", "never", "lost"], read=["moved"])
    store = recorded(faulty(open_store("memory:"), faults), str(tmp_path / "history"), "ada")
    with store.snapshot() as snapshot, pytest.raises(Moved):
        snapshot.get("c", "a")
    outcomes: list[type[Exception]] = [Conflict, errors.StorageFull, errors.OutcomeUnknown, errors.OutcomeUnknown]
    for outcome in outcomes:
        with pytest.raises(outcome):
            store.commit([ItemIs("c", "a", 7 if outcome is Conflict else 0)], [Put("c", "a", b"1")])

    history = read_history([tmp_path / "history"])

    assert history.outcomes == {"moved": 1, "conflict": 1, "STORAGE_FULL": 1, "OUTCOME_UNKNOWN": 2}
    assert [(commit.returned, commit.revision) for commit in history.commits] == [(UNKNOWN, None)] * 2
    assert history.reads == []


def test_what_a_batch_did_is_told_when_it_is_left(tmp_path: Path) -> None:
    store = open_recorded(f"sqlite:{tmp_path}/store", str(tmp_path / "history"))
    with exclusive(store) as batch:
        done = batch.commit([], [Put("c", "a", b"1")])
        with batch.snapshot() as snapshot:
            snapshot.get("c", "a")
        assert read_history([tmp_path / "history"]).unanswered == 2
        left = time.monotonic_ns()
    history = read_history([tmp_path / "history"])
    [commit] = history.commits
    [read] = history.reads
    assert commit.revision == read.revision == done.revision
    assert min(commit.returned, read.returned) >= left


def test_what_an_abandoned_batch_did_is_undone(tmp_path: Path) -> None:
    store = open_recorded(f"sqlite:{tmp_path}/store", str(tmp_path / "history"))

    def abandon() -> None:
        with exclusive(store) as batch:
            batch.commit([], [Put("c", "a", b"1")])
            with batch.snapshot() as snapshot:
                snapshot.get("c", "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        abandon()
    history = read_history([tmp_path / "history"])
    assert history.outcomes == {"undone": 2}
    assert not history.commits
    assert not history.reads


def test_what_a_batch_did_with_unknown_outcome_is_unknown(tmp_path: Path) -> None:
    unfortunate = faulty(open_store(f"sqlite:{tmp_path}/store"), plan(commit=["lost"]))
    store = recorded(unfortunate, str(tmp_path / "history"), "ada")
    with pytest.raises(errors.OutcomeUnknown), exclusive(store) as batch:
        batch.commit([], [Put("c", "a", b"1"), Append("n", b"2")])
    [commit] = read_history([tmp_path / "history"]).commits
    assert (commit.returned, commit.revision) == (UNKNOWN, None)
    assert commit.writes == {("c", "a"): b"1"}
    assert commit.unsettled == {"n"}


def test_several_stores_share_a_file_and_half_a_line_harms_nobody(tmp_path: Path) -> None:
    file = tmp_path / "history"
    ada, bob = (recorded(open_store("memory:shared-file"), str(file), name) for name in ("ada", "bob"))
    ada.commit([], [Put("c", "a", b"1")])
    with file.open("ab") as torn:
        torn.write(b'\n{"id":"7","who":"cyd","call":"commit","ca')
    bob.commit([], [Put("c", "a", b"2")])
    ada.commit([], [Put("c", "a", b"3")])
    history = check_history([file])
    assert [commit.who for commit in history.commits] == ["ada", "bob", "ada"]


def test_a_store_gets_its_own_snapshot_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Snapshot | None] = []

    def commit(
        store: Memory, checks: "Sequence[Check]", writes: "Sequence[Write]", snapshot: Snapshot | None, timeout_s: float
    ) -> Committed:
        given.append(snapshot)
        return original(store, checks, writes, snapshot, timeout_s)

    original = Memory.commit
    monkeypatch.setattr(Memory, "commit", commit)
    inner = open_store("memory:")
    recorded_last = recorded(faulty(inner, plan()), str(tmp_path / "last"), "ada")
    recorded_first = faulty(recorded(inner, str(tmp_path / "first"), "ada"), plan())
    for store in (recorded_last, recorded_first):
        with store.snapshot() as snapshot:
            store.commit([], [Put("c", "a", b"1")], snapshot)
    assert [type(snapshot) for snapshot in given] == [type(inner.snapshot())] * 2


# Misfortune.


def value_of(store: Ledger) -> bytes | None:
    with store.snapshot() as snapshot:
        item = snapshot.get("c", "a")
        return item.value if item else None


@pytest.mark.parametrize(
    ("fault", "error", "is_written"),
    [
        ("conflict", Conflict, False),
        ("full", errors.StorageFull, False),
        ("failing", errors.StorageFailing, False),
        ("never", errors.OutcomeUnknown, False),
        ("lost", errors.OutcomeUnknown, True),
    ],
)
@pytest.mark.parametrize("in_batch", [False, True])
def test_a_commit_meets_its_fault(
    fault: str, error: type[Exception], is_written: bool, in_batch: bool, tmp_path: Path
) -> None:
    inner = open_store(f"sqlite:{tmp_path}/store")
    store = faulty(inner, plan(commit=["", fault]))

    def commit(value: bytes) -> None:
        if in_batch:
            with exclusive(store) as batch:
                batch.commit([CollectionIs("other", 0)], [Put("c", "a", value)])
        else:
            store.commit([CollectionIs("other", 0)], [Put("c", "a", value)])

    commit(b"first")
    with pytest.raises(error):
        commit(b"second")
    assert value_of(inner) == (b"second" if is_written else b"first")
    commit(b"third")
    assert value_of(inner) == b"third"


def test_what_checks_nothing_meets_no_conflict() -> None:
    store = faulty(open_store("memory:"), chance(1, conflict=1.0))
    store.commit([], [Put("c", "a", b"1")])
    with pytest.raises(Conflict):
        store.commit([ItemIs("c", "b", 0)], [Put("c", "b", b"1")])
    with pytest.raises(Conflict), store.snapshot() as snapshot:
        store.commit([], [Put("c", "b", b"1")], snapshot)
    store = faulty(open_store("memory:"), plan(commit=["conflict"]))
    with pytest.raises(ValueError, match="none of"):
        store.commit([], [Put("c", "a", b"1")])


@pytest.mark.parametrize("read", ["get", "list", "head", "collections"])
def test_a_read_meets_its_fault(read: str) -> None:
    store = faulty(open_store("memory:"), plan(read=["moved", "failing"]))
    arguments = {"get": ("c", "a"), "collections": ()}.get(read, ("c",))
    with store.snapshot() as snapshot:
        for error in (Moved, errors.StorageFailing):
            with pytest.raises(error):
                getattr(snapshot, read)(*arguments)
        getattr(snapshot, read)(*arguments)


def test_a_snapshot_meets_its_fault() -> None:
    store = faulty(open_store("memory:"), plan(snapshot=["failing"]))
    with pytest.raises(errors.StorageFailing):
        store.snapshot()
    with store.snapshot() as snapshot:
        assert snapshot.revision == 0


def test_what_is_late_is_done_in_the_end() -> None:
    store = faulty(open_store("memory:"), plan(snapshot=["late"], read=["late"], commit=["late"]))
    started = time.monotonic()
    store.commit([], [Put("c", "a", b"1")])
    assert value_of(store) == b"1"
    assert time.monotonic() - started >= 6 * LATE_S


def test_chance_is_as_likely_as_asked_and_the_same_for_a_seed() -> None:
    fates = [chance(seed, conflict=0.2, lost=0.1, moved=0.5) for seed in (1, 1, 2)]
    places = ["commit", "read"] * 1000
    befallen = [[fate(place, FAULTS[place]) for place in places] for fate in fates]
    assert befallen[0] == befallen[1] != befallen[2]
    counts = Counter(befallen[0])
    assert counts.keys() == {"", "conflict", "lost", "moved"}
    assert 150 < counts["conflict"] < 250
    assert 50 < counts["lost"] < 130
    assert 450 < counts["moved"] < 550


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda: chance(1, conflicts=0.1), id="no such fault"),
        pytest.param(lambda: plan(commits=["lost"]), id="no such place"),
        pytest.param(lambda: plan(read=["lost"]), id="not there"),
    ],
)
def test_faults_that_cannot_befall_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="are none of"):
        wrong()


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_every_work_runs_twice(engine: str, tmp_path: Path) -> None:
    """Also after works that the second time do not commit, and beside commits outside of transactions."""
    store = faulty(open_store(f"{engine}:{tmp_path}/store"), work_twice())
    runs = Counter[str]()

    def work(tx: Transaction, name: str, writes_until: int) -> None:
        runs[name] += 1
        item = tx.get("c", "a")
        if runs[name] <= writes_until:
            tx.put("c", "a", b"%d" % (int(item.value) + 1 if item else 1))

    store.commit([], [Put("other", "a", b"")])
    transact(store, lambda tx: work(tx, "first", 2))
    transact(store, lambda tx: work(tx, "leaves off", 1))
    transact(store, lambda tx: work(tx, "last", 2))
    assert runs == {"first": 2, "leaves off": 2, "last": 2}
    assert value_of(store) == b"2"
