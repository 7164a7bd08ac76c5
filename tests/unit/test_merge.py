"""Three texts made one: what either side did is in it, or both are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.model.merge import has_marks, merge

pytestmark = pytest.mark.covers("S5")

NAMES = ("yours", "common", "theirs")

# Few lines, so that they meet; ends of lines that are none, and a last line without one.
LINES = st.lists(st.sampled_from(["a", "b", "c", "", " a", "\r", "x\u2028y", "="]), max_size=8)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
# Each line once, so that it is known which is which.
UNIQUE = st.lists(st.integers(0, 12), unique=True, max_size=9).map(lambda lines: "".join(f"{n}\n" for n in lines))


@pytest.mark.parametrize(
    ("common", "yours", "theirs", "expected"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n", "a\nc\nd\n"),
        ("a\nb\nc\n", "x\na\nb\nc\n", "a\nb\nc", "x\na\nb\nc"),
        ("", "a\n", "a\n", "a\n"),
        ("a\nb\n", "", "a\nb\n", ""),
    ],
)
def test_what_does_not_meet(common: str, yours: str, theirs: str, expected: str) -> None:
    merged = merge(common, yours, theirs)
    assert (merged.text, merged.conflicts) == (expected, 0)


def test_what_meets_is_shown_with_what_was_there() -> None:
    merged = merge("a\nb\nc", "a\nmine", "a\ntheirs\nc", ("me", "revision 1", "revision 2"))
    assert merged.conflicts == 1
    assert merged.text == ("a\n<<<<<<< me\nmine\n||||||| revision 1\nb\nc\n=======\ntheirs\nc\n>>>>>>> revision 2\n")
    assert has_marks(merged.text, ("me", "revision 1", "revision 2"))
    assert not has_marks(merged.text, ("me too", "revision 3", "revision 4"))


def test_one_is_removed_and_the_other_changed() -> None:
    assert merge("a\n", "b\n", "").conflicts == 1


@given(TEXTS, TEXTS)
def test_one_side_unchanged_gives_the_other(common: str, other: str) -> None:
    for merged in (merge(common, common, other), merge(common, other, common), merge(common, other, other)):
        assert (merged.text, merged.conflicts) == (other, 0)


@given(TEXTS, TEXTS, TEXTS)
def test_sides_are_equals(common: str, yours: str, theirs: str) -> None:
    one, other = merge(common, yours, theirs), merge(common, theirs, yours)
    assert one.conflicts == other.conflicts
    assert one.conflicts or one.text == other.text


@given(TEXTS, TEXTS, TEXTS)
def test_no_new_line_is_lost(common: str, yours: str, theirs: str) -> None:
    merged = merge(common, yours, theirs).text.split("\n")
    for line in {*yours.split("\n"), *theirs.split("\n")} - {*common.split("\n"), ""}:
        assert line in merged


@given(UNIQUE, UNIQUE, UNIQUE)
def test_a_clean_merge_has_what_both_did(common: str, yours: str, theirs: str) -> None:
    """A line is there if both kept it, or one of them added it; it is gone if neither has it."""
    found = merge(common, yours, theirs)
    was, mine, other, merged = (set(text.split()) for text in (common, yours, theirs, found.text))
    assert mine & other <= merged
    assert (mine | other) - was <= merged
    if not found.conflicts:
        assert not merged - mine - other


@given(TEXTS, TEXTS, TEXTS)
def test_merging_again_changes_nothing(common: str, yours: str, theirs: str) -> None:
    """What was merged, against the same theirs: the common text is theirs by then."""
    merged = merge(common, yours, theirs)
    if not merged.conflicts:
        assert merge(theirs, merged.text, theirs).text == merged.text


@given(TEXTS, TEXTS, TEXTS)
def test_both_sides_can_be_taken_from_a_conflict(common: str, yours: str, theirs: str) -> None:
    """Whoever chooses yours, or theirs, at each mark has a text in which only what did not meet is from the other."""
    names = ("Y", "C", "T")
    text = merge(common, yours, theirs, names).text
    for part, only in (("yours", yours), ("theirs", theirs)):
        chosen = choose(text, part)
        other = theirs if part == "yours" else yours
        assert {line for line in only.split("\n") if line not in common.split("\n")} <= set(chosen)
        assert set(chosen) <= {*yours.split("\n"), *theirs.split("\n"), *common.split("\n"), ""}
        if other == common:
            assert "\n".join(chosen) == only


def choose(text: str, part: str) -> list[str]:
    """The lines without the marks, and of what is between them only one part."""
    marks = {"<<<<<<< Y": "yours", "||||||| C": "common", "=======": "theirs", ">>>>>>> T": ""}
    inside, chosen = "", []
    for line in text.split("\n"):
        if line in marks:
            inside = marks[line]
        elif inside in ("", part):
            chosen.append(line)
    return chosen


def test_large_texts_are_merged_in_no_time() -> None:
    """As large as documents get, of lines that come again and again."""
    common = "".join(f"{n % 50}\n\n" for n in range(80_000))
    merged = merge(common, "first\n" + common, common + "last\n")
    assert (merged.text, merged.conflicts) == (f"first\n{common}last\n", 0)
