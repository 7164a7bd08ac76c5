"""Items in their order, page by page, and what heads and names tell."""

from typing import TYPE_CHECKING

from accord.store.contract import PLAIN, Append, Delete, Head, Item, Put, number_id
from accord.store.protocols import Ledger, Snapshot
from accord.testing.conformance.tools import Opener, all_items, append, contents, opened, put, revision_of

if TYPE_CHECKING:
    from accord.store.contract import Write

# Ids that sort otherwise by letter case rules, by number or by punctuation.
IDS = ["-", "--", "-a", "0", "00", "0a", "10", "9", "_", "_-", "__", "a", "a-", "a-z", "a0", "a_", "aa", "b", "z" * 100]


def check_a_new_store_is_empty(open_store: Opener) -> None:
    with opened(open_store) as store, store.snapshot() as snapshot:
        assert snapshot.revision == 0
        assert snapshot.epoch
        assert list(snapshot.collections()) == []
        assert snapshot.head("mail") == Head(0, 0)
        assert snapshot.get("mail", "a") is None
        assert list(snapshot.list("mail")) == []


def check_items_come_in_the_order_of_their_ids(open_store: Opener) -> None:
    with opened(open_store) as store:
        for id in reversed(IDS):
            put(store, "c", id, id.encode())
        with store.snapshot() as snapshot:
            assert [item.id for item in snapshot.list("c")] == IDS
            assert [item.id for item in snapshot.list("c", reverse=True)] == IDS[::-1]
            assert all(item.value == item.id.encode() for item in snapshot.list("c"))


def check_numbers_and_names_share_one_order(open_store: Opener) -> None:
    with opened(open_store) as store:
        for number in range(1, 13):
            store.commit([], [Append("c", b"%d" % number)])
        for id in IDS:
            put(store, "c", id)
        with store.snapshot() as snapshot:
            ids = [item.id for item in snapshot.list("c")]
            assert ids == sorted([*IDS, *map(number_id, range(1, 13))])
            assert [item.id for item in snapshot.list("c", reverse=True)] == ids[::-1]


def check_pages_cover_a_collection_up_and_down(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.commit([], [*[Append("c", b"") for _ in range(30)], *[Put("c", id, b"") for id in IDS]])
        with store.snapshot() as snapshot:
            every = list(snapshot.list("c"))
            assert len(every) == 30 + len(IDS)
            for limit in (1, 2, 7, 48, 49, 50, 1000):
                assert all_items(snapshot, "c", limit) == every
                assert all_items(snapshot, "c", limit, reverse=True) == every[::-1]


def check_a_page_starts_beyond_after_whether_or_not_that_is_there(open_store: Opener) -> None:
    ids = ["b", "b-", "b0", "d", number_id(1), number_id(2)]
    with opened(open_store) as store:
        store.commit([], [Append("c", b""), Append("c", b""), *[Put("c", id, b"") for id in ids[:4]]])
        with store.snapshot() as snapshot:
            for after in [*ids, "-", "a", "b--", "bz", "c", "z", "z" * 100, number_id(0), number_id(9)]:
                for limit in (1, 3, 10):
                    up = [item.id for item in snapshot.list("c", after, limit)]
                    assert up == sorted(id for id in ids if id > after)[:limit], after
                    down = [item.id for item in snapshot.list("c", after, limit, reverse=True)]
                    assert down == sorted((id for id in ids if id < after), reverse=True)[:limit], after


def check_long_collections_are_paged_whole(open_store: Opener) -> None:
    with opened(open_store) as store:
        for _ in range(50):
            store.commit([], [Append("c", b"")] * 50)
        with store.snapshot() as snapshot:
            every = [number_id(number) for number in range(1, 2501)]
            assert [item.id for item in all_items(snapshot, "c")] == every
            assert [item.id for item in all_items(snapshot, "c", limit=999, reverse=True)] == every[::-1]
            assert len(snapshot.list("c")) == 100


def check_many_names_are_paged_whole(open_store: Opener) -> None:
    """Names that begin alike, more of them than a page or a folder holds."""
    ids = sorted([*[f"{start}{number:03d}" for start in ("a", "a-", "ab", "b0") for number in range(600)], *IDS])
    with opened(open_store) as store:
        store.load([("c", 0, (Item(id, b"", 1) for id in ids[::2]))])
        for start in range(1, len(ids), 100):
            store.commit([], [Put("c", id, b"") for id in ids[start : start + 100 : 2]])
        store.commit([], [Delete("c", id) for id in ids[:40]])
        ids = ids[40:]
        with store.snapshot() as snapshot:
            for limit in (1000, 90):
                assert [item.id for item in all_items(snapshot, "c", limit)] == ids
                assert [item.id for item in all_items(snapshot, "c", limit, reverse=True)] == ids[::-1]
            for after in (
                "a",
                "a-",
                "a-1",
                "a0",
                "a05",
                "a050",
                "a399",
                "a3999",
                "aa",
                "ab",
                "ab2",
                "b",
                "b0",
                "b01",
                "z",
            ):
                up = [item.id for item in snapshot.list("c", after, 5)]
                assert up == [id for id in ids if id > after][:5], after
                down = [item.id for item in snapshot.list("c", after, 5, reverse=True)]
                assert down == [id for id in ids[::-1] if id < after][:5], after


def check_an_empty_collection_has_empty_pages(open_store: Opener) -> None:
    with opened(open_store) as store:
        put(store, "emptied", "a")
        store.commit([], [Delete("emptied", "a")])
        with store.snapshot() as snapshot:
            for collection in ("emptied", "never"):
                for after in ("", "a", number_id(1)):
                    assert list(snapshot.list(collection, after)) == []
                    assert list(snapshot.list(collection, after, reverse=True)) == []


def check_a_collection_keeps_its_items_to_itself(open_store: Opener) -> None:
    """Names that begin alike, or lie below one another, are strangers."""
    names = ["a", "a-", "a-b", "a/0", "a/b", "a/b/c", "a0", "a_", "ab", "b", "b/a"]
    with opened(open_store) as store:
        for name in names:
            store.commit([], [Put(name, "a", name.encode()), Put(name, "b", name.encode()), Append(name, b"")])
        store.commit([], [Delete("a/b", "a"), Delete("a", "b")])
        found = contents(store)
        assert list(found.items) == names
        for name in names:
            gone = {"a/b": "a", "a": "b"}.get(name)
            assert [item.id for item in found.items[name]] == [id for id in (number_id(1), "a", "b") if id != gone]
            assert all(item.value in (name.encode(), b"") for item in found.items[name])


def check_an_item_tells_the_revision_that_wrote_it(open_store: Opener) -> None:
    with opened(open_store) as store:
        first = put(store, "c", "a", b"1")
        second = store.commit([], [Put("c", "b", b"2"), Append("c", b"3")])
        third = put(store, "c", "a", b"4")
        expected = [
            Item(number_id(1), b"3", second.revision),
            Item("a", b"4", third.revision),
            Item("b", b"2", second.revision),
        ]
        with store.snapshot() as snapshot:
            assert list(snapshot.list("c")) == expected
            assert [snapshot.get("c", item.id) for item in expected] == expected
        assert first.revision < second.revision < third.revision


def check_a_head_tells_the_last_touch_and_the_last_number(open_store: Opener) -> None:
    with opened(open_store) as store:

        def head_after(*writes: "Write") -> tuple[Head, int]:
            revision = store.commit([], writes).revision
            with store.snapshot() as snapshot:
                return snapshot.head("c"), revision

        head, revision = head_after(Put("c", "a", b""))
        assert head == Head(revision, 0)
        for last in (1, 2, 3):
            head, revision = head_after(Append("c", b""))
            assert head == Head(revision, last)
        others: list[Write] = [Put("c", "a", b""), Delete("c", number_id(3)), Delete("c", "a"), Delete("c", "absent")]
        for write in others:
            head, revision = head_after(write)
            assert head == Head(revision, 3)
        head, revision = head_after(Put("d", "a", b""), Append("c/d", b""))
        assert head == Head(revision - 1, 3)


def check_collections_are_listed_by_prefix_in_order(open_store: Opener) -> None:
    names = ["a", "a-b", "a/b", "a/b/c", "a0", "ab", "b", "b/a", "z" * 100, "zz"]
    with opened(open_store) as store:
        for name in reversed(names):
            put(store, name, "a")
        with store.snapshot() as snapshot:
            for prefix in ["", "a", "a/", "a/b", "a/b/c", "b", "b/", "c", "z", "zz", "zzz", "a-", "a_"]:
                begin_so = [name for name in sorted(names) if name.startswith(prefix)]
                assert list(snapshot.collections(prefix)) == begin_so
                for after in [*names, "0", "a/a", "b/", "zzzz"]:
                    beyond = [name for name in begin_so if name > after]
                    assert list(snapshot.collections(prefix, after)) == beyond, (prefix, after)
                    assert list(snapshot.collections(prefix, after, 2)) == beyond[:2], (prefix, after)


def check_emptied_collections_are_still_listed(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.commit([], [Put("a", "x", b""), Append("b", b"")])
        store.commit([], [Delete("a", "x"), Delete("b", number_id(1)), Delete("never/had/one", "x")])
        with store.snapshot() as snapshot:
            assert list(snapshot.collections()) == ["a", "b", "never/had/one"]
            assert snapshot.head("b").last == 1


def check_many_collections_are_listed_page_by_page(open_store: Opener) -> None:
    names = [f"c/{number:04d}" for number in range(1500)]
    with opened(open_store) as store:
        for start in range(0, len(names), 50):
            store.commit([], [Put(name, "a", b"") for name in names[start : start + 50]])
        found = contents(store)
        assert list(found.heads) == names
        with store.snapshot() as snapshot:
            assert list(snapshot.collections("c/")) == names[:100]


def check_impossible_names_are_not_found(open_store: Opener) -> None:
    """Nothing can be stored under them: they are looked for nowhere, and no error either."""
    with opened(open_store) as store:
        put(store, "c/d", "e", b"secret")
        put(store, f"{PLAIN}/d", "e", b"secret")
        _look_for_impossible_names(store)
        if exclusive := getattr(store, "exclusive", None):
            with exclusive() as batch:
                _look_for_impossible_names(batch)
        assert revision_of(store) == 2


def _look_for_impossible_names(ledger: Ledger) -> None:
    names = ["", ".", "..", "A", "a b", "é", "a\0", "\ud800", "/", "a" * 101, "/".join("abcdefghi")]
    with ledger.snapshot() as snapshot:
        for top in ("c", PLAIN):
            for collection, id in [(top, "d/e"), (f"{top}/d/", "e"), (f"{top}/x/../d", "e"), (f"{top}/d", "../d/e")]:
                assert snapshot.get(collection, id) is None, (collection, id)
            for collection in (f"{top}/d/", f"/{top}/d", f"{top}//d", f"{top}/x/../d", top.upper(), f"{top}/\ud800"):
                _is_nowhere(snapshot, collection)
        for name in names:
            _is_nowhere(snapshot, name)
            assert snapshot.get("c/d", name) is None, name
            assert snapshot.get(name, "e") is None, name
            assert name == "" or list(snapshot.collections(name)) == [], name


def _is_nowhere(snapshot: Snapshot, collection: str) -> None:
    assert list(snapshot.list(collection)) == list(snapshot.list(collection, reverse=True)) == [], collection
    assert snapshot.head(collection) == Head(0, 0), collection


def check_reading_changes_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c", b"1")
        with store.snapshot() as snapshot:
            snapshot.get("d", "a")
            snapshot.list("e")
            snapshot.head("f")
        assert list(contents(store).heads) == ["c"]
        assert revision_of(store) == 1
