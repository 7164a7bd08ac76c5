"""Whether two globs overlap, against all short paths there are."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accord.model import globs

LETTERS = "ab["
NAMES = ["".join(letters) for n in (1, 2, 3) for letters in itertools.product(LETTERS, repeat=n)]
PATHS = [parts for n in (1, 2, 3) for parts in itertools.product([*NAMES[:3], "ab", "ba", "aa", "abb"], repeat=n)]

# Of these, any two that overlap at all do so in one of the paths.
pieces = st.sampled_from(["a", "b", "*", "?", "[a]", "[!a]", "[ab]", "[a-b]", "[[]", "[!b-z]"])
parts = st.lists(pieces, min_size=1, max_size=3).map("".join).filter(lambda part: part != "**")
texts = st.lists(parts | st.just("**"), min_size=1, max_size=3).map("/".join)


def matches_name(glob: str, name: str) -> bool:
    """One part, by the book."""
    if not glob:
        return not name
    if glob[0] == "*":
        return any(matches_name(glob[1:], name[at:]) for at in range(len(name) + 1))
    piece = glob[: glob.index("]", 2) + 1] if glob[0] == "[" else glob[0]
    return bool(name) and is_one_of(piece, name[0]) and matches_name(glob[len(piece) :], name[1:])


def is_one_of(piece: str, letter: str) -> bool:
    expected = {"[!a]": letter != "a", "[ab]": letter in "ab", "[a-b]": letter in "ab", "[!b-z]": letter not in "bz"}
    return piece == "?" or expected.get(piece, letter == piece.strip("]")[-1])


def matches(glob: list[str], path: tuple[str, ...]) -> bool:
    """A path, or a folder above it."""
    if not glob:
        return True
    if glob[0] == "**":
        return matches(glob[1:], path) or (bool(path) and matches(glob, path[1:]))
    return bool(path) and matches_name(glob[0], path[0]) and matches(glob[1:], path[1:])


@given(texts, texts)
@example("a*b", "ab")
@example("a?", "*b")
def test_what_one_path_shows_to_overlap_overlaps(a: str, b: str) -> None:
    seen = any(matches(a.split("/"), path) and matches(b.split("/"), path) for path in PATHS)
    assert not seen or globs.overlap(globs.read(a), globs.read(b))


@given(parts, parts)
def test_names_overlap_just_when_some_name_is_matched_by_both(a: str, b: str) -> None:
    """Two patterns of so few pieces that overlap do so in a name of at most six letters."""
    names = ("".join(letters) for n in range(1, 7) for letters in itertools.product(LETTERS, repeat=n))
    seen = any(matches_name(a, name) and matches_name(b, name) for name in names)
    assert globs.overlap(globs.read(a), globs.read(b)) == seen


few = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=4).map("/".join)
SHORT_PATHS = [path for n in range(1, 9) for path in itertools.product("ab", repeat=n)]


@given(few, few)
def test_globs_overlap_just_when_some_path_is_matched_by_both(a: str, b: str) -> None:
    seen = any(matches(a.split("/"), path) and matches(b.split("/"), path) for path in SHORT_PATHS)
    assert globs.overlap(globs.read(a), globs.read(b)) == seen


@given(texts, st.sampled_from(PATHS))
def test_a_path_is_matched_just_when_it_is(text: str, path: tuple[str, ...]) -> None:
    """Or when it is a folder with something in it that is."""
    below = any(matches(text.split("/"), (*path, *more)) for more in [(), *PATHS])
    found = globs.overlap(globs.read(text), globs.read_path("/".join(path)))
    assert found >= below
    assert globs.overlap(globs.read(text), globs.read(globs.quoted("/".join(path)))) == found


@given(texts, texts)
def test_overlapping_is_mutual_and_everything_overlaps_with_itself(a: str, b: str) -> None:
    assert globs.overlap(globs.read(a), globs.read(b)) == globs.overlap(globs.read(b), globs.read(a))
    assert globs.overlap(globs.read(a), globs.read(a))
    assert globs.overlap(globs.read(a), globs.read("."))


@pytest.mark.covers("S6")
@pytest.mark.parametrize(
    ("a", "b", "do"),
    [
        ("src/**", "src/a.py", True),
        ("src/*.py", "src/*.md", False),
        ("src/*.py", "src/test_*", True),
        ("src", "src/a/b/c", True),
        ("src", "srcs", False),
        ("**/test_*.py", "src/deep/test_a.py", True),
        ("**/test_*.py", "src/deep/a.py", True),  # which may be a folder
        ("a/**/z", "a/z", True),
        ("a/*/z", "a/b/c", False),
        (".hidden", "*", True),
        ("[a-c]x", "[d-f]x", False),
        ("[!a]", "a", False),
        ("[]]", "]", True),
        ("[a", "[a", True),  # no class
        ("[a", "a", False),
        ("é*", "*ß", True),
    ],
)
def test_examples(a: str, b: str, do: bool) -> None:
    assert globs.overlap(globs.read(a), globs.read(b)) == do


@pytest.mark.parametrize("text", ["", "/etc", "..", "a/../b", "x" * 5000, "[z-a]", "a/[!\0-\U0010ffff]"])
def test_what_is_no_glob_of_a_project(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not|holds)"):
        globs.read(text)


@pytest.mark.parametrize(("text", "normal"), [("./a//b/", "a/b"), (".", "."), ("a/./**", "a/**")])
def test_how_a_glob_is_stored(text: str, normal: str) -> None:
    assert globs.normal(text) == normal


def test_patterns_full_of_stars_cost_little() -> None:
    assert not globs.overlap(globs.read("a*" * 200 + "b"), globs.read("a*" * 200 + "c"))
    assert globs.overlap(globs.read("**/a/" * 80 + "x"), globs.read("**/b/" * 80 + "y"))
