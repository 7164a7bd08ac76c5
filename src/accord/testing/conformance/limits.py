"""What one commit, key, value or page may hold: the same on every engine, and nothing is left of what is refused."""

from typing import TYPE_CHECKING

from accord import errors
from accord.store import names
from accord.store.contract import (
    MAX_BYTES,
    MAX_CHECKS,
    MAX_PAGE,
    MAX_WRITES,
    PLAIN,
    Append,
    CollectionIs,
    Delete,
    ItemIs,
    Number,
    Put,
)
from accord.store.protocols import Store
from accord.testing.conformance.tools import Opener, append, contents, opened, put, raises, value_of, values_of

if TYPE_CHECKING:
    from accord.store.contract import Check, Write

BAD_PARTS = ["", " ", "A", "a b", "a.b", ".", "..", "a:b", "é", "a\n", "a\0", "~", "a" * 101, "\ud800"]
BAD_COLLECTIONS = [*BAD_PARTS, "/", "/a", "a/", "a//b", "a/../b", "a/B", "/".join("abcdefghi"), "a/" + "b" * 101]
BAD_IDS = [*BAD_PARTS, "a/b"]

NAMES = [
    "", "a", "_", "__", "_c", "_e", "A", "aA", "ann smith", "ann.smith@example.org", "../../etc/passwd", "/", "\\",
    "0000000000000001", "123456789012345", "CON", "nul", "é", "日本語", "🙂", "a\nb", "\0", "a" * 98, "a" * 99,
    "a" * 600, "é" * 120, "A" * 200,
]  # fmt: skip


def check_a_commit_may_be_full(open_store: Opener) -> None:
    with opened(open_store) as store:
        checks: list[Check] = [ItemIs("c", f"i{number}", 0) for number in range(MAX_CHECKS)]
        store.commit(checks, [Put("c", f"i{number}", b"") for number in range(MAX_WRITES)])
        assert len(values_of(store, "c")) == MAX_WRITES
        half = MAX_BYTES // 2
        store.commit([], [Put("d", "a", bytes(half)), Put("d", "b", bytes(MAX_BYTES - half))])
        assert sum(len(value) for value in values_of(store, "d")) == MAX_BYTES
        store.commit([], [Append("e", bytes(MAX_BYTES))])
        assert len(values_of(store, "e")[0]) == MAX_BYTES


def check_a_commit_over_a_limit_leaves_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        put(store, "c", "there", b"old")
        one: list[Write] = [Put("c", "there", b"new")]
        half = bytes(MAX_BYTES // 2)
        number_too_many = (bytes(MAX_BYTES - 15), Number(0))
        _refuse(store, [], [Put("c", f"i{number}", b"") for number in range(MAX_WRITES + 1)])
        _refuse(store, [], [Delete("c", "there")] * (MAX_WRITES + 1))
        _refuse(store, [ItemIs("c", f"i{number}", 0) for number in range(MAX_CHECKS + 1)], one)
        _refuse(store, [CollectionIs("d", 0)] * (MAX_CHECKS + 1), [])
        _refuse(store, [], [*one, Put("c", "big", bytes(MAX_BYTES + 1))])
        _refuse(store, [], [Put("c", "a", half), Append("c", half), Put("c", "there", b"n")])
        _refuse(store, [], [Append("c", b""), Put("c", "there", number_too_many)])


def check_keys_may_be_long(open_store: Opener) -> None:
    collection = "/".join(["c" * 100] * 8)
    with opened(open_store) as store:
        done = store.commit([], [Put(collection, "i" * 100, b"1"), Append(collection, b"2")])
        assert done.numbers == (1,)
        assert values_of(store, collection) == [b"2", b"1"]
        assert value_of(store, collection, "i" * 100) == b"1"
        with store.watch([collection], 0) as watch:
            change = watch.next(5.0)
            assert change is not None
            assert (collection, "i" * 100) in change.keys


def check_impossible_keys_are_refused(open_store: Opener) -> None:
    with opened(open_store) as store:
        put(store, "c", "there")
        before = contents(store)
        for collection in BAD_COLLECTIONS:
            for write in (Put(collection, "a", b""), Delete(collection, "a"), Append(collection, b"")):
                with raises(errors.InvalidKey, repr(write)):
                    store.commit([], [write])
        for id in BAD_IDS:
            for write in (Put("c", id, b""), Delete("c", id)):
                with raises(errors.InvalidKey, repr(write)):
                    store.commit([], [write])
        assert contents(store) == before


def check_impossible_keys_are_refused_in_checks_too(open_store: Opener) -> None:
    """Though such a check would hold for ever."""
    checks: list[Check] = [ItemIs(collection, "a", 0) for collection in BAD_COLLECTIONS]
    checks += [CollectionIs(collection, 0) for collection in BAD_COLLECTIONS]
    checks += [ItemIs("c", id, 0) for id in BAD_IDS]
    with opened(open_store) as store:
        put(store, "c", "there")
        before = contents(store)
        for check in checks:
            for writes in ([], [Put("c", "a", b"")]):
                with raises(errors.InvalidKey, repr(check)):
                    store.commit([check], writes)
        assert contents(store) == before


def check_pages_have_limits(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c")
        with store.snapshot() as snapshot:
            for limit in (0, -1, MAX_PAGE + 1):
                for collection in ("c", "never"):
                    with raises(ValueError, f"by list, limit {limit}"):
                        snapshot.list(collection, limit=limit)
                with raises(ValueError, f"by collections, limit {limit}"):
                    snapshot.collections(limit=limit)
            assert len(snapshot.list("c", limit=MAX_PAGE)) == len(snapshot.collections(limit=MAX_PAGE)) == 1


def check_a_value_may_hold_any_bytes(open_store: Opener) -> None:
    values = [bytes(range(256)), b"", b"\0", b"\n", b"\r\n", b"{}\n", b" ", b"\xff\xfe", "é".encode(), bytes(1 << 20)]
    with opened(open_store) as store:
        for number, value in enumerate(values, start=1):
            put(store, "c", f"i{number}", value)
            put(store, PLAIN, f"i{number}", value)
            append(store, "d", value)
    with opened(open_store) as store:
        for number, value in enumerate(values, start=1):
            assert value_of(store, "c", f"i{number}") == value
            assert value_of(store, PLAIN, f"i{number}") == value
        assert values_of(store, "d") == values


def check_a_value_may_grow_and_shrink(open_store: Opener) -> None:
    with opened(open_store) as store:
        for size in (0, 1, 100_000, 10, 1_000_000, 0, 5):
            for collection in ("c", PLAIN):
                put(store, collection, "a", b"x" * size)
                assert value_of(store, collection, "a") == b"x" * size


def check_any_name_can_be_stored_and_found(open_store: Opener) -> None:
    with opened(open_store) as store:
        for name in NAMES:
            store.commit([], [Put(*names.to_key("people", name), name.encode())])
    with opened(open_store) as store:
        for name in NAMES:
            assert value_of(store, *names.to_key("people", name)) == name.encode()
        found = contents(store).items
        keys = [(collection, item.id) for collection, items in found.items() for item in items]
        assert sorted(names.from_key("people", *key) for key in keys) == sorted(NAMES)


def _refuse(store: Store, checks: "list[Check]", writes: "list[Write]") -> None:
    before = contents(store)
    with raises(errors.CommitTooLarge, f"by {len(checks)} checks and {len(writes)} writes"):
        store.commit(checks, writes)
    assert contents(store) == before
