"""What a store holds, as it is the same on every engine and after every migration."""

from contextlib import closing

from hypothesis import strategies as st

from accord.services.migrate import Done, Migration
from accord.store.contract import UNFINISHED, Append, Delete, Item, Put, number_id
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.testing.conformance.tools import contents

Held = dict[str, tuple[int, list[tuple[str, bytes]]]]

_PARTS = st.text("ab_-9", min_size=1, max_size=3)
_VALUES = st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"\0\n\xff", b"x" * 5000]))


def held(store: Store) -> Held:
    """Each collection's last number, and its items."""
    found = contents(store)
    return {
        name: (head.last, [(item.id, item.value) for item in found.items[name]])
        for name, head in found.heads.items()
        if name != UNFINISHED[0]
    }


def held_at(url: str) -> Held:
    with closing(open_store(url)) as store:
        return held(store)


@st.composite
def any_held(draw: st.DrawFn) -> Held:
    """Anything that a store can hold; never nothing."""
    names = draw(st.sets(st.lists(_PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=5))
    return {name: draw(_collection()) for name in sorted(names)}


@st.composite
def _collection(draw: st.DrawFn) -> tuple[int, list[tuple[str, bytes]]]:
    last = draw(st.integers(0, 30))
    numbers = st.sets(st.integers(1, last).map(number_id)) if last else st.just(set())
    ids = sorted(draw(numbers) | draw(st.sets(_PARTS, max_size=4)))
    return last, [(id, draw(_VALUES)) for id in ids]


def fill(store: Store, wanted: Held) -> None:
    store.load((name, last, [Item(id, value, 1) for id, value in items]) for name, (last, items) in wanted.items())


def some(store: Store) -> None:
    """A little of everything: numbers with gaps, a collection that was emptied, one that only counts."""
    for n in range(12):
        store.commit(
            [], [Append("mail/ann", b"message %d" % n), Put("tasks", f"t{n}", b"task"), Append("audit", b"{}")]
        )
    store.commit([], [Delete("mail/ann", number_id(5)), Delete("mail/ann", number_id(12)), Put("gone", "x", b"")])
    store.commit([], [Delete("gone", "x"), Put("doc", "readme", b"a text\r\n"), Put("heavy", "one", bytes(1 << 20))])


def nothing(epoch: str) -> None:
    pass


def unseen(done: int, total: int) -> None:
    pass


def migrated(source: Store, target: Store) -> Done:
    return Migration(source, "the source", target, "the target").run(nothing, unseen)


def few(store: Store) -> None:
    """What takes few writes, for a test that has a process killed at each."""
    store.commit([], [Append("mail/ann", b"one"), Append("mail/ann", b"two"), Put("tasks", "t1", b"task")])
    store.commit([], [Delete("mail/ann", number_id(2)), Put("doc", "readme", b"a text\r\n")])
