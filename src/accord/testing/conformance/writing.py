"""Commits: all or nothing, what each write does, the numbers that appends get, revisions."""

from typing import TYPE_CHECKING

from accord import errors
from accord.store.contract import (
    Append,
    CollectionIs,
    Committed,
    Conflict,
    Delete,
    ItemIs,
    Number,
    Put,
    number_id,
)
from accord.store.protocols import Store
from accord.testing.conformance.tools import (
    Opener,
    append,
    contents,
    is_quiet,
    opened,
    put,
    raises,
    revision_of,
    take,
    value_of,
    values_of,
)

if TYPE_CHECKING:
    from accord.store.contract import Check, Write

# Every kind of write, to what is there and to what is not.
WRITES: "list[Write]" = [
    Put("c", "there", b"new"),
    Put("c", "new", b"new"),
    Put("new", "new", b"new"),
    Put("c", number_id(1), b"new"),
    Delete("c", "there"),
    Delete("c", number_id(1)),
    Delete("c", "absent"),
    Delete("new", "absent"),
    Append("c", b"new"),
    Append("new", b"new"),
]


def check_a_commit_with_a_failing_check_leaves_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        first = store.commit([], [Put("c", "there", b"old"), Append("c", b"old")]).revision
        last = put(store, "c", "there", b"old").revision
        failing: list[Check] = [
            ItemIs("c", "there", first),
            ItemIs("c", "there", 0),
            ItemIs("c", "there", last + 1),
            ItemIs("c", "absent", last),
            CollectionIs("c", first),
            CollectionIs("c", 0),
            CollectionIs("never", last),
        ]
        holding: list[Check] = [ItemIs("c", "there", last), ItemIs("c", "absent", 0), CollectionIs("c", last)]
        for check in failing:
            for writes in (*[[write] for write in WRITES], WRITES):
                _refuse_whole(store, [*holding, check], writes, Conflict)
                _refuse_whole(store, [check, *holding], writes, Conflict)


def check_an_impossible_write_leaves_nothing_of_its_commit(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.commit([], [Put("c", "there", b"old"), Append("c", b"old")])
        for wrong in (Put("c", "WRONG", b""), Put("WRONG", "a", b""), Delete("c", ""), Append("a//b", b"")):
            _refuse_whole(store, [], [*WRITES, wrong], errors.InvalidKey)
        for missing in (Put("c", Number(2), b""), Put("c", "a", (b"x", Number(2))), Delete("c", Number(-1))):
            _refuse_whole(store, [], [*WRITES, missing], ValueError)


def check_checks_that_hold_let_a_commit_through(open_store: Opener) -> None:
    with opened(open_store) as store:
        first = put(store, "c", "a", b"1").revision
        second = put(store, "d", "a", b"1").revision
        absent: list[Check] = [ItemIs("c", "b", 0), ItemIs("never", "a", 0), CollectionIs("never", 0)]
        present: list[Check] = [ItemIs("c", "a", first), CollectionIs("c", first), CollectionIs("d", second)]
        store.commit([*absent, *present], [Put("c", "a", b"2")])
        assert value_of(store, "c", "a") == b"2"


def check_put_replaces_and_delete_removes(open_store: Opener) -> None:
    with opened(open_store) as store:
        for value in (b"1", b"", b"longer than before", b"2"):
            put(store, "c", "a", value)
            assert value_of(store, "c", "a") == value
            assert values_of(store, "c") == [value]
        store.commit([], [Delete("c", "a")])
        assert value_of(store, "c", "a") is None
        assert values_of(store, "c") == []
        again = put(store, "c", "a", b"3")
        store.commit([ItemIs("c", "a", again.revision)], [Delete("c", "a")])
        store.commit([ItemIs("c", "a", 0)], [Put("c", "a", b"4")])
        assert values_of(store, "c") == [b"4"]


def check_deleting_what_is_not_there_is_a_change_like_any_other(open_store: Opener) -> None:
    with opened(open_store) as store:
        before = put(store, "c", "a").revision
        done = store.commit([], [Delete("c", "absent"), Delete("never", "absent")])
        assert done == Committed(before + 1, ())
        with store.snapshot() as snapshot:
            assert snapshot.head("c").revision == snapshot.head("never").revision == done.revision
        with store.watch([""], before) as watch:
            assert take(watch, 1)[0].keys == (("c", "absent"), ("never", "absent"))
        with raises(Conflict):
            store.commit([CollectionIs("c", before)], [Put("c", "b", b"")])


def check_the_last_write_of_an_item_counts(open_store: Opener) -> None:
    with opened(open_store) as store:
        put(store, "c", "there", b"0")
        store.commit([], [Put("c", "a", b"1"), Put("c", "a", b"2"), Put("d", "a", b"3"), Put("c", "a", b"4")])
        store.commit([], [Put("c", "b", b"1"), Delete("c", "b")])
        done = store.commit([], [Delete("c", "there"), Put("c", "there", b"1")])
        store.commit([], [Delete("c", "absent"), Put("c", "absent", b"2"), Delete("c", "absent")])
        found = {item.id: item.value for item in contents(store).items["c"]}
        assert found == {"a": b"4", "there": b"1"}
        assert value_of(store, "d", "a") == b"3"
        with store.watch(["c"], done.revision - 1) as watch:
            assert take(watch, 1)[0].keys == (("c", "there"),)


def check_an_append_gives_the_next_number(open_store: Opener) -> None:
    with opened(open_store) as store:
        assert append(store, "c", b"1") == Committed(1, (1,))
        assert append(store, "c", b"2").numbers == (2,)
        assert append(store, "d", b"1").numbers == (1,)
        more = [Append("c", b"3"), Append("d", b"2"), Append("c", b"4")]
        assert store.commit([], [Put("c", "name", b""), *more, Delete("d", "x")]).numbers == (3, 2, 4)
        found = contents(store)
        assert [item.id for item in found.items["c"]] == [*[number_id(number) for number in range(1, 5)], "name"]
        assert [item.value for item in found.items["c"]][:4] == [b"1", b"2", b"3", b"4"]
        assert [item.value for item in found.items["d"]] == [b"1", b"2"]
        assert (found.heads["c"].last, found.heads["d"].last) == (4, 2)


def check_a_number_is_never_given_again(open_store: Opener) -> None:
    with opened(open_store) as store:
        for number in range(1, 4):
            append(store, "c", b"%d" % number)
        store.commit([], [Delete("c", number_id(3)), Delete("c", number_id(2))])
        assert append(store, "c", b"4").numbers == (4,)
        store.commit([], [Delete("c", number_id(number)) for number in (1, 4)])
        assert store.commit([], [Append("c", b"5"), Delete("c", number_id(5))]).numbers == (5,)
    with opened(open_store) as store:
        assert values_of(store, "c") == []
        assert append(store, "c", b"6").numbers == (6,)


def check_a_refused_append_uses_no_number(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c")
        with raises(Conflict):
            store.commit([ItemIs("c", "absent", 1)], [Append("c", b"refused")])
        assert append(store, "c").numbers == (2,)


def check_a_numbered_item_can_be_written_again(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.commit([], [Append("c", b"1"), Append("c", b"2")])
        store.commit([], [Put("c", number_id(1), b"1 again"), Delete("c", number_id(2))])
        store.commit([], [Put("c", number_id(2), b"2 again")])
        assert values_of(store, "c") == [b"1 again", b"2 again"]
        assert append(store, "c", b"3").numbers == (3,)
        done = store.commit([], [Append("c", b"4"), Put("c", number_id(4), b"4 again"), Append("c", b"5")])
        assert done.numbers == (4, 5)
        assert values_of(store, "c") == [b"1 again", b"2 again", b"3", b"4 again", b"5"]


def check_a_number_that_no_append_gave_is_refused(open_store: Opener) -> None:
    """Else a later append would meet an item under its number."""
    with opened(open_store) as store:
        append(store, "c")
        for id in (number_id(2), number_id(10**16 - 1)):
            for write in (Put("c", id, b""), Delete("c", id)):
                _refuse_whole(store, [], [Put("c", "a", b""), write], errors.InvalidKey)
                _refuse_whole(store, [], [write, Append("c", b"")], errors.InvalidKey)
        _refuse_whole(store, [], [Put("never", number_id(1), b"")], errors.InvalidKey)


def check_a_number_can_be_an_id_and_part_of_a_value(open_store: Opener) -> None:
    with opened(open_store) as store:
        for _ in range(11):
            append(store, "mail")
        writes: list[Write] = [
            Append("mail", (b"before its own append there is none",)),
            Put("place", "x", (b'{"number":', Number(0), b"}")),
            Put("place", Number(0), b"by number"),
            Append("log", (b"mail ", Number(0))),
            Append("mail", (Number(1), b" and ", Number(0), Number(0))),
            Put("place", "y", (Number(2),)),
            Put("place", "z", ()),
            Put("mail", Number(2), (b"over ", Number(2))),
        ]
        assert store.commit([], writes).numbers == (12, 1, 13)
        assert value_of(store, "place", "x") == b'{"number":12}'
        assert value_of(store, "place", number_id(12)) == b"by number"
        assert [item.id for item in contents(store).items["place"]] == [number_id(12), "x", "y", "z"]
        assert value_of(store, "place", "y") == b"13"
        assert value_of(store, "place", "z") == b""
        assert values_of(store, "log") == [b"mail 12"]
        assert values_of(store, "mail")[11:] == [b"before its own append there is none", b"over 13"]
        done = store.commit([], [Append("mail", b""), Delete("mail", Number(0))])
        assert done.numbers == (14,)
        assert value_of(store, "mail", number_id(14)) is None
        with store.watch(["place"], done.revision - 2) as watch:
            assert take(watch, 1)[0].keys == tuple(("place", id) for id in (number_id(12), "x", "y", "z"))


def check_a_number_used_elsewhere_is_not_given_there(open_store: Opener) -> None:
    """A put under it raises the other collection's last number, so that no append meets the item."""
    with opened(open_store) as store:
        for _ in range(4):
            append(store, "mail")
        store.commit([], [Append("mail", b""), Put("place", Number(0), b"by number"), Append("place", b"next")])
        assert append(store, "place", b"after").numbers == (7,)
        store.commit([], [Append("mail", b""), Delete("seen", Number(0)), Put("mail", Number(0), b"")])
        found = contents(store)
        assert {name: head.last for name, head in found.heads.items()} == {"mail": 6, "place": 7, "seen": 0}
        assert [item.id for item in found.items["place"]] == [number_id(number) for number in (5, 6, 7)]
        assert append(store, "seen").numbers == (1,)


def check_each_writing_commit_has_the_next_revision(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        for revision, write in enumerate(WRITES[:3] + WRITES[4:5] + WRITES[6:], start=1):
            done = (store if revision % 2 else other).commit([], [write, Put("d", "a", b"")])
            assert done.revision == revision
            assert revision_of(store) == revision_of(other) == revision


def check_writing_the_same_value_is_a_change(open_store: Opener) -> None:
    with opened(open_store) as store:
        first = put(store, "c", "a", b"same")
        second = put(store, "c", "a", b"same")
        assert second.revision == first.revision + 1
        with raises(Conflict):
            store.commit([ItemIs("c", "a", first.revision)], [Put("c", "b", b"")])
        with store.watch(["c"], first.revision) as watch:
            assert take(watch, 1)[0].revision == second.revision


def check_a_commit_without_writes_checks_and_makes_no_revision(open_store: Opener) -> None:
    with opened(open_store) as store:
        revision = put(store, "c", "a").revision
        before = contents(store)
        assert store.commit([], []) == Committed(revision, ())
        assert store.commit([ItemIs("c", "a", revision), CollectionIs("c", revision)], []).revision == revision
        for failing in (ItemIs("c", "a", 0), CollectionIs("c", revision + 1)):
            with raises(Conflict):
                store.commit([failing], [])
        assert contents(store) == before
        with store.watch([""], revision) as watch:
            assert is_quiet(watch)


def _refuse_whole(store: Store, checks: "list[Check]", writes: "list[Write]", kind: type[Exception]) -> None:
    """The commit raises, and neither a snapshot nor a watch shows anything of it."""
    before = contents(store)
    with raises(kind, f"by {checks} and {writes}"):
        store.commit(checks, writes)
    assert contents(store) == before
    with store.watch([""], before.revision) as watch:
        assert watch.next(0.0) is None
