"""`load`: an empty store filled at once, as its revision 1."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from accord import errors
from accord.store.contract import PLAIN, Change, Delete, Head, Item, ItemIs, Put, number_id
from accord.store.protocols import Ledger
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
    from accord.store.contract import Content

# As another store may have had them: numbers with gaps, revisions of its own, a collection that was emptied.
LOADED: "list[Content]" = [
    ("emptied", 5, []),
    ("mail/ann", 7, [Item(number_id(3), b"three", 90), Item(number_id(7), b"\0\n\xff", 12), Item("name", b"", 4)]),
    (PLAIN, 0, [Item("readme", b"text\r\nwithout end", 3)]),
    ("tasks", 0, [Item("a", b"1", 7)]),
]


def check_loaded_items_are_there_as_of_revision_1(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        store.load(iter(LOADED))
        for handle in (store, other):
            _assert_loaded(handle)
    with opened(open_store) as store:
        _assert_loaded(store)


def check_a_loaded_store_goes_on(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.load(LOADED)
        assert append(store, "mail/ann", b"eight").numbers == (8,)
        assert append(store, "emptied", b"six").numbers == (6,)
        assert append(store, "new", b"one").numbers == (1,)
        store.commit([ItemIs("tasks", "a", 1)], [Put("tasks", "a", b"2"), Delete("mail/ann", number_id(3))])
        store.commit([], [Put("mail/ann", number_id(5), b"in a gap")])
        assert revision_of(store) == 6
        assert values_of(store, "mail/ann") == [b"in a gap", b"\0\n\xff", b"eight", b""]
        assert value_of(store, "tasks", "a") == b"2"


def check_a_watch_from_before_a_load_is_refused(open_store: Opener) -> None:
    """What was loaded has no history: whoever follows must list."""
    with opened(open_store) as store, opened(open_store) as other, other.watch([""], 0) as early:
        store.load(LOADED)
        for handle in (store, other):
            with raises(errors.HistoryGone):
                handle.watch([""], 0)
        with raises(errors.HistoryGone):
            early.next(2.0)
        with other.watch([""], 1) as watch:
            assert is_quiet(watch)
            put(store, "tasks", "b")
            assert take(watch, 1) == [Change(2, (("tasks", "b"),))]


def check_only_an_empty_store_can_be_loaded(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c", b"1")
        before = contents(store)
        with raises(errors.StoreNotEmpty):
            store.load(LOADED)
        assert contents(store) == before


def check_a_store_is_loaded_once(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.load(LOADED)
        for handle in (store, open_store()):
            with raises(errors.StoreNotEmpty):
                handle.load([("other", 1, [])])
            _assert_loaded(handle)
            handle.close()


def check_a_load_cut_short_can_be_done_again(open_store: Opener) -> None:
    def cut_short() -> "Iterator[Content]":
        yield "half", 2, [Item(number_id(1), b"", 1), Item(number_id(2), b"", 2)]
        yield "tasks", 9, [Item("z", b"", 2)]
        raise KeyError("on purpose")

    with opened(open_store) as store, raises(KeyError):
        store.load(cut_short())
    with opened(open_store) as store:
        store.load(LOADED)
        _assert_loaded(store)


def check_what_no_commit_could_have_stored_is_not_loaded(open_store: Opener) -> None:
    """Keys outside the alphabet, and numbers beyond the last one: a later append would write over them."""
    impossible: list[Content] = [
        ("BAD", 0, []),
        ("a//b", 0, [Item("a", b"", 1)]),
        ("c", 0, [Item("BAD", b"", 1)]),
        ("c", 2, [Item(number_id(3), b"", 1)]),
    ]
    for content in impossible:
        with opened(open_store) as store, raises(errors.InvalidKey, f"by {content}"):
            store.load([LOADED[1], content])
    with opened(open_store) as store:
        store.load(LOADED)
        _assert_loaded(store)


def check_more_can_be_loaded_than_one_commit_holds(open_store: Opener) -> None:
    numbered = ("big", 3000, (Item(number_id(number), b"%d" % number, 1) for number in range(1, 3001)))
    heavy = ("heavy", 0, (Item(f"i{number}", bytes(1 << 20), 1) for number in range(3)))
    with opened(open_store) as store:
        store.load([numbered, heavy])
        assert values_of(store, "big") == [b"%d" % number for number in range(1, 3001)]
        assert [len(value) for value in values_of(store, "heavy")] == [1 << 20] * 3
        assert append(store, "big").numbers == (3001,)


def _assert_loaded(store: Ledger) -> None:
    found = contents(store)
    assert found.revision == 1
    assert found.heads == {name: Head(1, last) for name, last, _ in LOADED}
    assert found.items == {name: [Item(item.id, item.value, 1) for item in items] for name, _, items in LOADED}
