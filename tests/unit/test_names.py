"""Any name a person uses becomes a key that every engine can store, and comes back."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord import errors
from accord.store import names
from accord.store.contract import check_collection, check_id, is_number
from tests.often import often

pytestmark = pytest.mark.covers("S1")

BASES = st.sampled_from(["people", "a/b", "docs_c", "a/b/c"])
DIGITS = st.text("0123456789", min_size=14, max_size=17)

# Where names are likely to go wrong: their own escapes, digits, the ends of parts, anything at all.
NAMES = st.one_of(
    st.text(max_size=130),
    st.text("_cdeswux09aA./ -é", max_size=260),
    DIGITS,
    st.builds(lambda size, digits: "a" * size + digits, st.integers(80, 210), DIGITS),
    st.builds(lambda size, rest: "_" * size + rest, st.integers(45, 52), st.text("_cA.9", max_size=8)),
)


@given(BASES, NAMES)
@example("people", "")
@example("people", "0000000000000001")
@example("people", "a" * 98 + "1" * 16)
@example("people", "a" * 98)
@example("people", "a" * 97 + "A")
@example("people", "_c")
@example("people", "\U0010ffff\0")
@settings(max_examples=often(1000), derandomize=True)
def test_every_name_makes_a_key_and_comes_back(base: str, name: str) -> None:
    collection, id = names.to_key(base, name)
    check_collection(collection)
    check_id(id)
    assert not is_number(id)
    assert collection == base or collection.startswith(base + "/")
    assert names.from_key(base, collection, id) == name


@given(st.lists(NAMES, min_size=2, max_size=8, unique=True))
@settings(max_examples=often(200), derandomize=True)
def test_different_names_have_different_keys(different: list[str]) -> None:
    assert len({names.to_key("people", name) for name in different}) == len(different)


@given(st.text(max_size=40))
@settings(max_examples=often(200), derandomize=True)
def test_names_that_differ_in_case_differ_where_case_is_not_kept(name: str) -> None:
    variants = {name, name.upper(), name.lower()}
    keys = {"/".join(names.to_key("people", variant)).lower() for variant in variants}
    assert len(keys) == len(variants)


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("ann-2", "ann-2"),
        ("plan.md", "plan_dmd"),
        ("src/main", "src_smain"),
        ("two words", "two_wwords"),
        ("Ann", "_uann"),
        ("a_b", "a__b"),
        ("é", "_x2e9"),
        ("", "_e"),
        ("1234567890123456", "_x231234567890123456"),
    ],
)
def test_a_key_can_be_read(name: str, id: str) -> None:
    assert names.to_key("people", name) == ("people", id)


def test_a_long_name_goes_on_in_the_collection() -> None:
    assert names.to_key("docs", "a" * 98 + "b") == ("docs/" + "a" * 98 + "_c", "b")
    assert names.to_key("docs", "a" * 97 + "A") == ("docs/" + "a" * 97 + "_c", "_ua")  # no escape is cut in two


@pytest.mark.parametrize(("base", "longest"), [("a", 8 * 98), ("a/b/c", 6 * 98), ("/".join("abcdefgh"), 98)])
def test_a_name_too_long_is_refused(base: str, longest: int) -> None:
    collection, id = names.to_key(base, "x" * longest)
    check_collection(collection)
    assert names.from_key(base, collection, id) == "x" * longest
    with pytest.raises(errors.InvalidName, match="too long"):
        names.to_key(base, "x" * (longest + 1))


@pytest.mark.parametrize("name", ["\ud800", "a\udfffb", "\udc80" * 3])
def test_half_a_character_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidName, match="surrogate"):
        names.to_key("people", name)
