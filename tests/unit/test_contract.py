"""The contract's own functions: keys, limits, numbers, values."""

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord import errors
from accord.store import contract
from accord.store.contract import (
    MAX_BYTES,
    MAX_CHECKS,
    MAX_PAGE,
    MAX_WRITES,
    Append,
    CollectionIs,
    Committed,
    Conflict,
    Delete,
    Head,
    Instant,
    Item,
    ItemIs,
    Number,
    Put,
    number_id,
)
from accord.testing.model import Model
from tests.often import often

if TYPE_CHECKING:
    from accord.store.contract import Check, Content, Write

pytestmark = pytest.mark.covers("S1")

quick = settings(max_examples=often(300), derandomize=True)

TEXTS = st.text(max_size=12) | st.text("ab9_-/A. \n", max_size=12) | st.integers(98, 102).map(lambda size: "a" * size)


@given(TEXTS)
@example("a\n")
@example("\n")
@example("aAa")
@example("²")
@quick
def test_an_id_is_1_to_100_letters_of_the_alphabet(id: str) -> None:
    assert accepts(contract.check_id, id) == bool(re.fullmatch(r"[a-z0-9_-]{1,100}", id))


@given(TEXTS | st.lists(st.sampled_from(["a", "b" * 100, "", "A"]), max_size=10).map("/".join))
@example("/".join("abcdefgh"))
@example("/".join("abcdefghi"))
@quick
def test_a_collection_is_1_to_8_such_parts(collection: str) -> None:
    valid = bool(re.fullmatch(r"[a-z0-9_-]{1,100}(/[a-z0-9_-]{1,100}){0,7}", collection))
    for _ in range(2):  # what was found right is remembered
        assert accepts(contract.check_collection, collection) == valid


@given(
    st.text(max_size=17) | st.text("0123456789", min_size=15, max_size=17) | st.text("01²٣_-", min_size=16, max_size=16)
)
@quick
def test_sixteen_digits_are_a_number(id: str) -> None:
    assert contract.is_number(id) == bool(re.fullmatch(r"[0-9]{16}", id))


@given(st.lists(st.integers(0, 10**16 - 1), min_size=2))
@quick
def test_the_ids_of_numbers_sort_as_the_numbers_do(numbers: list[int]) -> None:
    assert [int(id) for id in sorted(map(number_id, numbers))] == sorted(numbers)
    assert all(contract.is_number(number_id(number)) for number in numbers)


@pytest.mark.parametrize("limit", [1, 100, MAX_PAGE])
def test_a_page_in_its_limits_is_accepted(limit: int) -> None:
    contract.check_page(limit)


@pytest.mark.parametrize("limit", [0, -1, MAX_PAGE + 1])
def test_a_page_beyond_its_limits_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=f"not {limit}"):
        contract.check_page(limit)


def test_what_a_commit_may_hold() -> None:
    contract.check_commit([ItemIs("c", "a", 0)] * MAX_CHECKS, [Put("c", "a", b"")] * MAX_WRITES)
    contract.check_commit([], [Append("c", bytes(MAX_BYTES - 16)), Put("c", Number(0), (Number(0),))])
    contract.check_commit([], [])


@pytest.mark.parametrize(
    ("checks", "writes", "what", "found"),
    [
        ([CollectionIs("c", 0)] * 101, [], "checks", 101),
        ([], [Delete("c", "a")] * 51, "writes", 51),
        ([], [Put("c", "a", bytes(MAX_BYTES)), Append("c", b"x")], "bytes", MAX_BYTES + 1),
        ([], [Append("c", b""), Put("c", "a", (bytes(MAX_BYTES - 15), Number(0)))], "bytes", MAX_BYTES + 1),
        ([], [Append("c", b""), Put("c", "a", (Number(0),) * 81_921)], "bytes", MAX_BYTES + 16),
    ],
)
def test_what_is_too_much_for_a_commit(checks: "list[Check]", writes: "list[Write]", what: str, found: int) -> None:
    with pytest.raises(errors.CommitTooLarge) as refused:
        contract.check_commit(checks, writes)
    assert (refused.value.details["what"], refused.value.details["found"]) == (what, found)


@pytest.mark.parametrize(
    "writes",
    [
        [Put("c", Number(0), b"")],
        [Put("c", Number(0), b""), Append("c", b"")],
        [Append("c", b""), Put("c", Number(1), b"")],
        [Append("c", b""), Put("c", Number(-1), b"")],
        [Append("c", b""), Delete("c", Number(1))],
        [Append("c", (Number(0),))],
        [Append("c", b""), Append("c", (b"x", Number(1)))],
        [Put("c", "a", (Number(0),)), Append("c", b"")],
    ],
    ids=str,
)
def test_a_number_names_an_earlier_append(writes: "list[Write]") -> None:
    with pytest.raises(ValueError, match="earlier append"):
        contract.check_commit([], writes)


@pytest.mark.parametrize(
    "write", [Put("C", "a", b""), Put("c", "A", b""), Delete("c", ""), Delete("", "a"), Append("c/", b"")], ids=str
)
def test_an_impossible_key_is_refused_and_named(write: "Write") -> None:
    with pytest.raises(errors.InvalidKey) as refused:
        contract.check_commit([], [Put("c", "a", b""), write])
    assert "of a-z, 0-9, _ and -" in str(refused.value)


@pytest.mark.parametrize("check", [ItemIs("C", "a", 0), ItemIs("c", "A", 0), CollectionIs("c//d", 0)], ids=str)
def test_an_impossible_key_of_a_check_is_refused(check: "Check") -> None:
    with pytest.raises(errors.InvalidKey):
        contract.check_commit([CollectionIs("c", 0), check], [])


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ([("c", 0, []), ("c", 0, [])], "The collection 'c' is refused: it comes twice"),
        ([("c", 0, [Item("b", b"", 1), Item("a", b"", 1)])], "The id 'a' is refused: it does not sort after 'b'"),
        ([("c", 1, [Item(number_id(2), b"", 1)])], "no append of the collection gave it"),
    ],
)
def test_a_key_that_cannot_be_loaded_says_why(contents: "list[Content]", reason: str) -> None:
    with pytest.raises(errors.InvalidKey, match=reason):
        [list(items) for _, _, items in contract.check_contents(contents)]


def test_a_number_that_no_append_gave_says_so() -> None:
    with pytest.raises(errors.InvalidKey, match="no append of the collection gave it"):
        contract.assign_numbers([Put("c", number_id(9), b"")], lambda name: 0)


def names_an_earlier_append(write: "Write", before: "list[Write]") -> bool:
    number = getattr(write, "id", None)
    return not isinstance(number, Number) or number.append < sum(isinstance(other, Append) for other in before)


COLLECTIONS = st.sampled_from(["c", "d"])
WRITES = st.lists(
    st.builds(Append, COLLECTIONS, st.just(b"v"))
    | st.builds(Put, COLLECTIONS, st.sampled_from(["a", *map(number_id, range(6))]), st.just(b"v"))
    | st.builds(Delete, COLLECTIONS, st.sampled_from(["a", *map(number_id, range(6))]))
    | st.builds(Put, COLLECTIONS, st.integers(0, 3).map(Number), st.just(b"v"))
    | st.builds(Delete, COLLECTIONS, st.integers(0, 3).map(Number)),
    max_size=8,
).map(lambda writes: [write for at, write in enumerate(writes) if names_an_earlier_append(write, writes[:at])])


@given(st.integers(0, 3), st.integers(0, 3), WRITES)
@quick
def test_numbers_are_given_as_the_model_gives_them(last_of_c: int, last_of_d: int, writes: "list[Write]") -> None:
    model = Model()
    model.load([("c", last_of_c, []), ("d", last_of_d, [])])
    try:
        done = model.commit([], writes)
    except errors.InvalidKey:
        with pytest.raises(errors.InvalidKey):
            contract.assign_numbers(writes, lambda name: model.snapshot().head(name).last)
        return
    before = model.views[1]
    numbers, lasts = contract.assign_numbers(writes, lambda name: before.head(name).last)
    assert tuple(numbers) == done.numbers
    assert all(model.snapshot().head(name).last == last for name, last in lasts.items())
    resolved = contract.resolve(writes, numbers)
    for (collection, id), value in resolved.items():
        item = model.snapshot().get(collection, id)
        assert (item.value if item else None) == value


def test_templates_are_filled_with_plain_numbers() -> None:
    assert contract.fill((), []) == b""
    assert contract.fill((b'{"n":', Number(1), b",", Number(0), b"}"), [12, 3]) == b'{"n":3,12}'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Item("a", b"1", 2), Item("a", b"1", 3)),
        (Head(1, 2), Head(2, 1)),
        (Committed(1, (1,)), Committed(1, ())),
        (ItemIs("c", "a", 1), ItemIs("c", "b", 1)),
        (Put("c", "a", b""), Delete("c", "a")),
        (Number(0), Number(1)),
        (CollectionIs("c", 1), Instant("c", 1)),
    ],
)
def test_values_are_equal_by_kind_and_fields(one: contract.Value, other: contract.Value) -> None:
    assert one != other
    again = type(one)(**{name: getattr(one, name) for name in one.__slots__})
    assert again == one
    assert hash(again) == hash(one)
    assert repr(again) == repr(one)
    assert eval(repr(one), vars(contract)) == one


def test_an_instant_is_over_when_its_seconds_or_its_era_are() -> None:
    now = Instant("boot", 10.0)
    assert now.is_over(now)
    assert Instant("boot", 9.9).is_over(now)
    assert not Instant("boot", 10.1).is_over(now)
    assert Instant("another", 99.0).is_over(now)
    assert now.plus(2.5) == Instant("boot", 12.5)


def test_epochs_are_random_names() -> None:
    epochs = {contract.new_epoch() for _ in range(100)}
    assert len(epochs) == 100
    assert all(re.fullmatch("[0-9a-f]{16}", epoch) for epoch in epochs)


def test_the_model_refuses_what_engines_must_refuse() -> None:
    """A model that let everything pass would prove nothing."""
    model = Model()
    assert model.commit([], [Append("c", b"1")]) == Committed(1, (1,))
    for check in (ItemIs("c", number_id(1), 0), ItemIs("c", "a", 1), CollectionIs("c", 0), CollectionIs("d", 1)):
        with pytest.raises(Conflict):
            model.commit([check], [Append("c", b"2")])
    with pytest.raises(errors.InvalidKey):
        model.commit([], [Put("c", number_id(2), b"")])
    assert model.revision == 1
    assert model.commit([CollectionIs("c", 1), ItemIs("c", number_id(1), 1)], []) == Committed(1, ())


def accepts(check: object, text: str) -> bool:
    try:
        check(text)  # type: ignore[operator]
    except errors.InvalidKey:
        return False
    return True
