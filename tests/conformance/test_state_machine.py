"""Random use of every engine, compared with the model step by step."""

import itertools
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accord import errors
from accord.store.contract import (
    Append,
    Change,
    CollectionIs,
    Conflict,
    Delete,
    Item,
    ItemIs,
    Moved,
    Number,
    Put,
    number_id,
)
from accord.store.names import to_key
from accord.store.protocols import Batch, Ledger, Snapshot, Watch
from accord.store.transaction import REQUESTS, Transaction, transact
from accord.testing.conformance.tools import contents, contents_of
from accord.testing.model import Model
from tests.conformance.engines import ENGINES, Engine
from tests.often import often

if TYPE_CHECKING:
    from accord.store.contract import Check, Content, Write

# Few names, so that most steps meet what earlier ones did. Below "doc" an engine may store in another way.
EVERY_COLLECTION = ["a", "a/b", "a-b", "doc", "doc/b"]
COLLECTIONS = st.sampled_from(EVERY_COLLECTION)
EVERY_ID = ["x", "y", "y-", "0", *[number_id(number) for number in range(1, 5)]]
IDS = st.sampled_from([*EVERY_ID[:5] * 3, *EVERY_ID])  # most numbers are refused until they were given
PREFIXES = st.sampled_from(["", "a", "a/", "doc", "doc/b", "z"])
VALUES = st.sampled_from([b"", b"1", b"\0\n\xff", b"long " * 50])
LOADED: "list[Content]" = [("a", 3, [Item(number_id(2), b"2", 8), Item("x", b"x", 9)]), ("doc", 0, [Item("y", b"", 4)])]


@st.composite
def commits(draw: st.DrawFn) -> "list[Write]":
    """The writes of a commit; numbers name appends that come before."""
    writes: list[Write] = []
    appends = 0
    for kind in draw(st.lists(st.sampled_from("pppdaann"), min_size=draw(st.sampled_from([0, 1, 1, 1])), max_size=5)):
        collection = draw(COLLECTIONS)
        number = Number(draw(st.integers(0, appends - 1))) if appends else None
        if kind == "p":
            writes.append(Put(collection, draw(IDS), draw(VALUES)))
        elif kind == "d":
            writes.append(Delete(collection, number if number and draw(st.booleans()) else draw(IDS)))
        elif kind == "a":
            writes.append(Append(collection, (b"after ", number) if number else draw(VALUES)))
            appends += 1
        elif number:
            writes.append(Put(collection, number, (number, b" ", number)))
    return writes


# What to check: a collection or, with an id, an item of it; and the revision to expect, None for the true one.
Place = tuple[str, str | None]
PLACES = st.tuples(COLLECTIONS, st.none() | IDS)
Wanted = list[tuple[Place, int | None]]
CHECKS = st.lists(st.tuples(PLACES, st.sampled_from([None] * 12 + [0, 1, 2, 5])), max_size=3)


class Undo(Exception):
    """Ends a batch without committing it."""


class Comparison(RuleBasedStateMachine):
    engine: Engine
    folder: Path
    runs = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.place = self.folder / f"run{next(self.runs)}"
        self.place.mkdir()
        self.model = Model()
        self.answers: dict[str, tuple[bytes, object]] = {}
        self.open()

    def open(self) -> None:
        open_store = self.engine.at(self.place)
        self.stores = [open_store(), open_store()]
        self.snapshots: list[Snapshot] = []
        self.watches: list[tuple[Watch, list[str]]] = []

    @rule()
    def reopen(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        for snapshot in self.snapshots:
            snapshot.__exit__(None, None, None)
        for watch, _ in self.watches:
            watch.close()
        for store in self.stores:
            store.close()

    def teardown(self) -> None:
        try:
            self.read_everything()
            for index in range(len(self.watches)):
                self.follow(index)
        finally:
            self.close()
            shutil.rmtree(self.place)

    @initialize(loaded=st.booleans())
    def load(self, loaded: bool) -> None:
        if loaded:
            self.stores[0].load(LOADED)
            self.model.load(LOADED)

    # Commits.

    @rule(handle=st.integers(0, 1), wanted=CHECKS, writes=commits())
    def commit(self, handle: int, wanted: Wanted, writes: "list[Write]") -> None:
        self.commit_both(self.stores[handle], self.checks(wanted), writes)

    @rule(read=st.lists(PLACES, min_size=1, max_size=3), others=st.lists(commits(), max_size=2), writes=commits())
    def commit_after_others(self, read: list[Place], others: "list[list[Write]]", writes: "list[Write]") -> None:
        """What was read in a snapshot becomes checks, and others commit before this one does."""
        with self.stores[0].snapshot() as snapshot:
            checks = [check_of(snapshot, place) for place in read]
            for other in others:
                self.commit_both(self.stores[1], [], other)
            self.commit_both(self.stores[0], checks, writes, snapshot)

    @precondition(lambda self: self.engine.exclusive)
    @rule(handle=st.integers(0, 1), works=st.lists(st.tuples(CHECKS, commits()), max_size=4), fails=st.booleans())
    def commit_in_a_batch(self, handle: int, works: "list[tuple[Wanted, list[Write]]]", fails: bool) -> None:
        before = self.model.revision
        store: Any = self.stores[handle]
        with suppress(Undo):
            batch: Batch
            with store.exclusive() as batch:
                for wanted, writes in works:
                    self.commit_both(batch, self.checks(wanted), writes)
                    assert contents(batch) == contents_of(self.model.snapshot())
                if fails:
                    raise Undo
        if fails:
            self.model.go_back_to(before)

    @rule(
        handle=st.integers(0, 1),
        key=st.sampled_from([None, "k", "K", "key two"]),
        params=st.sampled_from([b"1", b"2"]),
        collection=COLLECTIONS,
        id=IDS,
    )
    def transact(self, handle: int, key: str | None, params: bytes, collection: str, id: str) -> None:
        def work(tx: Transaction) -> dict[str, object]:
            item = tx.get(collection, id)
            number = tx.append(collection, b"by transact")
            tx.put("a", "x", (b"number ", number))
            return {"number": number, "seen": item.value.hex() if item else None, "names": list(tx.collections())}

        found = outcome(lambda: transact(self.stores[handle], work, key, params))
        if key in self.answers:
            kept_params, answer = self.answers[key]
            assert found == (answer if params == kept_params else errors.IdReused)
            return
        now = self.model.snapshot()
        item = now.get(collection, id)
        expected = {
            "number": now.head(collection).last + 1,
            "seen": item.value.hex() if item else None,
            "names": now.collections(),
        }
        assert found == expected
        writes: list[Write] = [Append(collection, b"by transact"), Put("a", "x", (b"number ", Number(0)))]
        if key is not None:
            self.answers[key] = params, expected
            writes.append(self.kept_answer(key))
        self.model.commit([], writes)

    def kept_answer(self, key: str) -> Put:
        """What the transaction keeps is its own affair; from now on it must stay."""
        where, id = to_key(REQUESTS, key)
        with self.stores[0].snapshot() as snapshot:
            item = snapshot.get(where, id)
        assert item is not None
        return Put(where, id, item.value)

    # Reads.

    @rule()
    def read_everything(self) -> None:
        for store in self.stores:
            assert contents(store) == contents_of(self.model.snapshot())

    @precondition(lambda self: len(self.snapshots) < 4)
    @rule(handle=st.integers(0, 1))
    def take_snapshot(self, handle: int) -> None:
        snapshot = self.stores[handle].snapshot()
        assert snapshot.revision == self.model.revision
        self.snapshots.append(snapshot)

    @precondition(lambda self: self.snapshots)
    @rule(index=st.integers(0, 3))
    def read_a_snapshot(self, index: int) -> None:
        for collection in EVERY_COLLECTION:
            for id in EVERY_ID:
                self.read_both(index, methodcaller("get", collection, id))
            self.read_both(index, methodcaller("head", collection))
            self.read_both(index, methodcaller("list", collection))
        self.read_both(index, methodcaller("collections"))

    @precondition(lambda self: self.snapshots)
    @rule(
        index=st.integers(0, 3),
        collection=COLLECTIONS,
        after=st.just("") | IDS | st.just("m"),
        limit=st.sampled_from([1, 2, 3, 100]),
        reverse=st.booleans(),
    )
    def list_page(self, index: int, collection: str, after: str, limit: int, reverse: bool) -> None:
        self.read_both(index, methodcaller("list", collection, after, limit, reverse))

    @precondition(lambda self: self.snapshots)
    @rule(index=st.integers(0, 3), prefix=PREFIXES, after=st.just("") | COLLECTIONS, limit=st.sampled_from([1, 2, 100]))
    def list_collections(self, index: int, prefix: str, after: str, limit: int) -> None:
        self.read_both(index, methodcaller("collections", prefix, after, limit))

    # Watches.

    @precondition(lambda self: len(self.watches) < 3)
    @rule(handle=st.integers(0, 1), prefixes=st.lists(PREFIXES, max_size=2), back=st.integers(0, 10))
    def watch(self, handle: int, prefixes: list[str], back: int) -> None:
        since = max(0, self.model.revision - back)
        if since < self.model.floor:
            assert outcome(lambda: self.stores[handle].watch(prefixes, since)) == errors.HistoryGone
        else:
            self.watches.append((self.stores[handle].watch(prefixes, since), prefixes))

    @precondition(lambda self: self.watches)
    @rule(index=st.integers(0, 2))
    def follow(self, index: int) -> None:
        watch, prefixes = self.watches[index % len(self.watches)]
        since = watch.revision
        found: list[Change] = []
        while (change := watch.next(0.0)) and len(found) <= self.model.revision:
            found.append(Change(change.revision, tuple(sorted(change.keys))))
        assert found == [*self.model.history(prefixes, since)]
        assert watch.revision == self.model.revision

    @precondition(lambda self: self.watches)
    @rule(index=st.integers(0, 2))
    def stop_watching(self, index: int) -> None:
        self.watches.pop(index % len(self.watches))[0].close()

    @invariant()
    def has_the_same_revision(self) -> None:
        with self.stores[0].snapshot() as snapshot:
            assert snapshot.revision == self.model.revision

    # Helpers.

    def checks(self, wanted: Wanted) -> "list[Check]":
        now = self.model.snapshot()
        return [check_of(now, place, revision) for place, revision in wanted]

    def commit_both(
        self, ledger: Ledger, checks: "list[Check]", writes: "list[Write]", snapshot: Snapshot | None = None
    ) -> None:
        expected = outcome(lambda: self.model.commit(checks, writes))
        assert outcome(lambda: ledger.commit(checks, writes, snapshot)) == expected

    def read_both(self, index: int, read: Callable[[Snapshot], object]) -> None:
        snapshot = self.snapshots[index % len(self.snapshots)]
        try:
            found = read(snapshot)
        except Moved:
            assert snapshot.revision < self.model.revision
            return
        expected = read(self.model.views[snapshot.revision])
        assert (list(found) if isinstance(found, Sequence) else found) == expected


def check_of(snapshot: Snapshot, place: Place, revision: int | None = None) -> "Check":
    """A check that holds in the snapshot, unless it is given another revision."""
    collection, id = place
    if id is None:
        return CollectionIs(collection, snapshot.head(collection).revision if revision is None else revision)
    item = snapshot.get(collection, id)
    true = item.revision if item else 0
    return ItemIs(collection, id, true if revision is None else revision)


def outcome(work: Callable[[], object]) -> object:
    try:
        return work()
    except (Conflict, errors.AccordError) as error:
        return type(error)


def compare(engine: Engine, folder: Path, how: settings) -> None:
    machine = type(f"Comparison_{engine.name}", (Comparison,), {"engine": engine, "folder": folder})
    run_state_machine_as_test(machine, settings=how)


# The same examples each time: whoever meets a failure caused it. New ones are for the long test.
SHORT = settings(max_examples=often(120), stateful_step_count=30, derandomize=True, report_multiple_bugs=False)
LONG = settings(max_examples=1000, stateful_step_count=50, print_blob=True)


@pytest.mark.covers("S1", "S2")
@pytest.mark.parametrize(
    "engine",
    [pytest.param(engine, id=engine.name, marks=[pytest.mark.more] if engine.server else []) for engine in ENGINES],
)
def test_engine_does_what_the_model_does(engine: Engine, tmp_path: Path) -> None:
    compare(engine, tmp_path, SHORT)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_engine_does_what_the_model_does_for_long(engine: Engine, tmp_path: Path) -> None:
    compare(engine, tmp_path, LONG)
