"""Snapshots keep their view or say that they cannot, and commits that were overtaken are refused."""

from functools import partial
from typing import TYPE_CHECKING

from accord.store.contract import Append, CollectionIs, Conflict, Delete, Item, ItemIs, Moved, Put, number_id
from accord.store.protocols import Snapshot, Store
from accord.testing.conformance.tools import (
    Contents,
    Opener,
    append,
    contents,
    contents_of,
    opened,
    put,
    raises,
    revision_of,
    unless_moved,
    value_of,
    values_of,
)

if TYPE_CHECKING:
    from accord.store.contract import Check, Write

# What others may do to collection "c", which holds "a", "b" and number 1.
OTHERS: "list[list[Write]]" = [
    [Put("c", "a", b"other")],
    [Put("c", "new", b"other")],
    [Delete("c", "a")],
    [Delete("c", number_id(1))],
    [Append("c", b"other")],
    [Delete("c", "a"), Put("c", "aa", b"other"), Put("new", "a", b"other")],
]


def check_a_snapshot_keeps_its_view_or_says_that_it_moved(open_store: Opener) -> None:
    for others in OTHERS:
        with opened(open_store) as store, opened(open_store) as other:
            _fill(store)
            with store.snapshot() as snapshot:
                revision = snapshot.revision
                items = {id: snapshot.get("c", id) for id in ("a", "b", number_id(1), "new", "aa")}
                page = list(snapshot.list("c"))
                head = snapshot.head("c")
                names = list(snapshot.collections())
                other.commit([], others)
                for id, item in items.items():
                    unless_moved(partial(snapshot.get, "c", id), item)
                unless_moved(lambda: list(snapshot.list("c")), page)
                unless_moved(lambda: list(snapshot.list("c", reverse=True)), page[::-1])
                unless_moved(lambda: snapshot.head("c"), head)
                unless_moved(lambda: list(snapshot.collections()), names)
                unless_moved(lambda: len(snapshot.list("new")), 0)
                assert snapshot.revision == revision
            assert revision_of(store) == revision + 1


def check_the_first_read_fixes_the_view(open_store: Opener) -> None:
    """Whatever is read first, if only the revision: what is read later is as of that."""
    with opened(open_store) as store, opened(open_store) as other:
        _fill(store)
        revision = revision_of(store)
        with store.snapshot() as snapshot:
            assert snapshot.revision == revision
            other.commit([], [Put("c", "a", b"other"), Put("c", "new", b""), Delete("c", "b"), Append("d", b"")])
            unless_moved(lambda: snapshot.get("c", "new"), None)
            unless_moved(lambda: snapshot.head("d").last, 0)
            unless_moved(lambda: [item.id for item in snapshot.list("c")], [number_id(1), "a", "b"])
            unless_moved(lambda: list(snapshot.collections()), ["c"])
            for id in ("a", "b"):
                try:
                    item = snapshot.get("c", id)
                except Moved:
                    continue
                assert item is not None
                assert item.value == b"old"


def check_a_snapshot_answers_while_nobody_commits(open_store: Opener) -> None:
    with opened(open_store) as store:
        _fill(store)
        with store.snapshot() as one, store.snapshot() as two:
            for snapshot in (one, two, one):
                assert len(snapshot.list("c")) == 3
                assert snapshot.get("c", "a") is not None
                assert snapshot.head("c").last == 1
                assert list(snapshot.collections()) == ["c"]


def check_a_commit_is_seen_by_the_next_snapshot_of_every_handle(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        for number in range(20):
            writer, reader = (store, other) if number % 2 else (other, store)
            put(writer, "c", "a", b"%d" % number)
            assert value_of(reader, "c", "a") == value_of(writer, "c", "a") == b"%d" % number


def check_a_lost_update_is_refused(open_store: Opener) -> None:
    replaced: list[Write] = [Delete("c", "a"), Put("c", "a", b"old")]
    for others in (replaced, replaced[:1], replaced[1:]):
        with opened(open_store) as store, opened(open_store) as other:
            _fill(store)
            with store.snapshot() as snapshot:
                item = snapshot.get("c", "a")
                assert item is not None
                other.commit([], others)
                after = contents(other)
                with raises(Conflict):
                    store.commit([ItemIs("c", "a", item.revision)], [Put("c", "a", b"mine")], snapshot)
            assert contents(store) == after


def check_a_second_creation_is_refused(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        with store.snapshot() as snapshot:
            assert snapshot.get("c", "a") is None
            put(other, "c", "a", b"other")
            with raises(Conflict):
                store.commit([ItemIs("c", "a", 0)], [Put("c", "a", b"mine")], snapshot)
        assert values_of(store, "c") == [b"other"]


def check_write_skew_is_refused(open_store: Opener) -> None:
    """Two each read both items and write one: the second may not go on from what is no longer so."""
    with opened(open_store) as store, opened(open_store) as other:
        _fill(store)
        with store.snapshot() as mine, other.snapshot() as theirs:
            my_checks, their_checks = _checks_of(mine), _checks_of(theirs)
            other.commit(their_checks, [Put("c", "a", b"theirs")], theirs)
            with raises(Conflict):
                store.commit(my_checks, [Put("c", "b", b"mine")], mine)
        assert value_of(store, "c", "b") == b"old"


def check_a_phantom_is_refused(open_store: Opener) -> None:
    """Who listed a collection may not commit once something appeared in it, vanished or changed."""
    for others in OTHERS:
        with opened(open_store) as store, opened(open_store) as other:
            _fill(store)
            with store.snapshot() as snapshot:
                head = snapshot.head("c")
                snapshot.list("c")
                other.commit([], others)
                with raises(Conflict, f"though others did {others}"):
                    store.commit([CollectionIs("c", head.revision)], [Put("sum", "of-c", b"")], snapshot)
            assert value_of(store, "sum", "of-c") is None


def check_a_phantom_in_a_collection_never_written_to_is_refused(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other, store.snapshot() as snapshot:
        assert snapshot.head("c").revision == 0
        append(other, "c")
        with raises(Conflict):
            store.commit([CollectionIs("c", 0)], [Put("sum", "of-c", b"")], snapshot)


def check_what_was_not_checked_does_not_conflict(open_store: Opener) -> None:
    """An old snapshot alone is no reason to refuse: only its checks are."""
    for others in OTHERS:
        with opened(open_store) as store, opened(open_store) as other:
            _fill(store)
            with store.snapshot() as snapshot:
                revision = snapshot.revision
                item = snapshot.get("c", "b")
                assert item is not None
                snapshot.get("c", "a")
                other.commit([], others)
                checks: list[Check] = [ItemIs("c", "b", item.revision), CollectionIs("d", 0)]
                done = store.commit(checks, [Put("c", "b", b"mine"), Append("c", b"mine")], snapshot)
            assert done.revision == revision + 2
            assert value_of(store, "c", number_id(done.numbers[0])) == b"mine"
            assert value_of(store, "c", "b") == b"mine"


def check_a_check_can_be_newer_than_the_snapshot(open_store: Opener) -> None:
    with opened(open_store) as store:
        _fill(store)
        with store.snapshot() as snapshot:
            newer = put(store, "c", "a", b"newer").revision
            store.commit([ItemIs("c", "a", newer), CollectionIs("c", newer)], [Put("c", "a", b"newest")], snapshot)
        assert value_of(store, "c", "a") == b"newest"


def check_checks_are_looked_at_when_the_snapshot_is_over(open_store: Opener) -> None:
    """Its commit was made, or refused, or its block was left: what it showed may have changed since."""
    for ending in ("committed", "refused", "left"):
        with opened(open_store) as store, opened(open_store) as other:
            _fill(store)
            with store.snapshot() as snapshot:
                checks = _checks_of(snapshot)
                if ending == "committed":
                    store.commit(checks, [Put("c", "a", b"mine")], snapshot)
                elif ending == "refused":
                    other.commit([], [Put("c", "a", b"other")])
                    with raises(Conflict):
                        store.commit(checks, [Put("c", "a", b"mine")], snapshot)
                if ending != "left":
                    _is_looked_at(store, other, checks, snapshot)
            if ending == "left":
                _is_looked_at(store, other, checks, snapshot)


def check_a_snapshot_that_is_over_keeps_its_view_or_says_that_it_moved(open_store: Opener) -> None:
    for is_left in (False, True):
        for writes in ([], [Put("d", "a", b"mine")]):
            with opened(open_store) as store, opened(open_store) as other:
                _fill(store)
                with store.snapshot() as snapshot:
                    before = contents_of(snapshot)
                    store.commit([], writes, snapshot)
                    if not is_left:
                        _overtake_and_read(other, snapshot, before)
                if is_left:
                    _overtake_and_read(other, snapshot, before)


def _is_looked_at(store: Store, other: Store, checks: "list[ItemIs]", snapshot: Snapshot) -> None:
    other.commit([], [Put("c", "a", b"other")])
    after = contents(other)
    for writes in ([Put("c", "b", b"mine")], []):
        with raises(Conflict, f"by {writes}"):
            store.commit(checks, writes, snapshot)
    assert contents(store) == after
    fresh = [ItemIs("c", item.id, item.revision) for item in after.items["c"]]
    assert store.commit(fresh, [Put("c", "b", b"mine")], snapshot).revision == after.revision + 1


def _overtake_and_read(other: Store, snapshot: Snapshot, before: Contents) -> None:
    for number in range(20):  # enough for an engine to tidy up
        other.commit([], [Put("c", "a", b"%d" % number), Put("c", "new", b""), Delete("c", "b"), Append("e", b"")])
        unless_moved(lambda: list(snapshot.list("c")), before.items["c"])
        items: dict[str, Item | None] = {item.id: item for item in before.items["c"]}
        for id, item in {**items, "new": None}.items():
            unless_moved(partial(snapshot.get, "c", id), item)
        unless_moved(lambda: snapshot.head("c"), before.heads["c"])
        unless_moved(lambda: list(snapshot.collections()), list(before.heads))


def _fill(store: Store) -> None:
    """Collection "c" as it was at first, and nothing else in any; the rounds of a check share a place."""
    found = contents(store)
    writes: list[Write] = [Delete(name, item.id) for name, items in found.items.items() for item in items]
    last = found.heads["c"].last if "c" in found.heads else 0
    numbered = Put("c", number_id(1), b"old") if last else Append("c", b"old")
    store.commit([], [*writes, Put("c", "a", b"old"), Put("c", "b", b"old"), numbered])


def _checks_of(snapshot: Snapshot) -> list[ItemIs]:
    items = [snapshot.get("c", "a"), snapshot.get("c", "b")]
    return [ItemIs("c", item.id, item.revision) for item in items if item is not None]
