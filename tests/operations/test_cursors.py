"""How far an inbox was acknowledged, compared with a plain set."""

from hypothesis import given
from hypothesis import strategies as st

from accord.services import cursors
from accord.services.cursors import Cursor
from accord.store.engines.memory import open_store
from accord.store.transaction import transact

NUMBERS = st.integers(1, 40)
BATCHES = st.lists(st.lists(NUMBERS, max_size=8), max_size=12)


@given(BATCHES)
def test_a_cursor_is_a_set_of_numbers(batches: list[list[int]]) -> None:
    cursor, model = Cursor(), set[int]()
    for batch in batches:
        assert cursor.add(batch) == (not set(batch) <= model)
        model |= set(batch)
        assert cursor.count == len(model)
        assert {number for number in range(1, 42) if cursor.has(number)} == model


@given(BATCHES)
def test_a_cursor_is_as_short_as_it_can_be(batches: list[list[int]]) -> None:
    """Ranges are in order and apart, and none touches what lies before all of them."""
    cursor = Cursor()
    for batch in batches:
        cursor.add(batch)
    ends = [0, cursor.upto, *[end for one in cursor.beyond for end in one]]
    assert ends == sorted(ends)
    assert all(first > before + 1 for before, first in zip(ends[1::2], ends[2::2], strict=False))


@given(BATCHES, st.text(max_size=5))
def test_a_cursor_comes_back_as_it_was_kept(batches: list[list[int]], at: str) -> None:
    cursor = Cursor()
    for batch in batches:
        cursor.add(batch)
    cursor.at = at
    store = open_store("")
    transact(store, lambda tx: cursors.write(tx, "ann", cursor))
    found = transact(store, lambda tx: cursors.read(tx, "ann"))
    assert (found.upto, found.beyond, found.at) == (cursor.upto, cursor.beyond, cursor.at)
    store.close()


def test_nobody_has_acknowledged_anything_at_first() -> None:
    cursor = transact(open_store(""), lambda tx: cursors.read(tx, "ann"))
    assert (cursor.count, cursor.has(1), cursor.add([])) == (0, False, False)


def test_a_cursor_stays_short_when_an_inbox_is_read_in_order() -> None:
    cursor = Cursor()
    for first in range(1, 100_000, 1000):
        cursor.add(range(first, first + 1000))
    assert (cursor.upto, cursor.beyond) == (100_000, [])
