"""Globs of files in a project, and whether two of them can match one path: decided on the patterns, not on files.

`*` is any text in one part of a path, `?` one character, `[abc]`, `[a-z]` and `[!a]` one of some, and `**` as a whole
part any number of parts. Dots are characters like others. A glob that matches a folder has everything in it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Ranges = tuple[tuple[int, int], ...]  # of code points: what one character may be
    Part = tuple[Ranges, ...]
    Glob = tuple[Part, ...]
    T = TypeVar("T", Ranges, Part)

LONGEST = 500  # characters of a glob: comparing two takes the product of their lengths
LONGEST_PATH = 4096

_SLASH = ord("/")
_ANY: "Ranges" = ((0, _SLASH - 1), (_SLASH + 1, 0x10FFFF))
_MANY: "tuple[()]" = ()  # in a part, any number of characters; in a glob, any number of parts


def read(text: str) -> "Glob":
    """A glob relative to its project; of no parts, which is everything in it, for `.`."""
    return tuple([_part(part) for part in _parts(text, LONGEST)])


def read_path(text: str) -> "Glob":
    """The glob of one path, in which no character means anything else."""
    return tuple([tuple([_one(letter) for letter in part]) for part in _parts(text, LONGEST_PATH)])


def normal(text: str) -> str:
    """The same glob, written as it is stored."""
    read(text)
    return "/".join(_parts(text, LONGEST)) or "."


def quoted(path: str) -> str:
    """A path as a glob that matches it alone, and what is in it."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def overlap(a: "Glob", b: "Glob") -> bool:
    """Whether some path is matched by both, or lies in what one of them matches."""
    return _meet(a, b, _parts_meet, to_the_end=False)


def _parts_meet(a: "Part", b: "Part") -> bool:
    """Whether some text is matched by both."""
    return _meet(a, b, _ranges_meet, to_the_end=True)


def _ranges_meet(a: "Ranges", b: "Ranges") -> bool:
    return any(max(one[0], other[0]) <= min(one[1], other[1]) for one in a for other in b)


def _meet(a: "Sequence[T]", b: "Sequence[T]", meet: "Callable[[T, T], bool]", to_the_end: bool) -> bool:
    """Whether one row of things is what both stand for; or, unless it goes to the end, the beginning of one.

    It walks through all pairs of places that can be reached by one and the same beginning.
    """
    seen: set[tuple[int, int]] = set()
    left = [(0, 0)]
    while left:
        i, j = left.pop()
        in_a, in_b = i < len(a), j < len(b)
        if not (in_a or in_b) or not (to_the_end or (in_a and in_b)):
            return True
        if (i, j) in seen:
            continue
        seen.add((i, j))
        if in_a and a[i] == _MANY:
            left += [(i + 1, j), (i, j + 1)] if in_b else [(i + 1, j)]
        elif in_b and b[j] == _MANY:
            left += [(i, j + 1), (i + 1, j)] if in_a else [(i, j + 1)]
        elif in_a and in_b and meet(a[i], b[j]):
            left.append((i + 1, j + 1))
    return False


def _parts(text: str, longest: int) -> list[str]:
    """What is between the slashes; a ValueError for what is no place in a project."""
    if not 0 < len(text) <= longest:
        raise ValueError(f"is not 1 to {longest} characters")
    if text.startswith("/"):
        raise ValueError("is not relative to the project")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError("holds ..")
    return parts


def _part(text: str) -> "Part":
    if text == "**":
        return _MANY
    found: list[Ranges] = []
    at = 0
    while at < len(text):
        if text[at] == "*":
            found.append(_MANY)
        elif text[at] == "?":
            found.append(_ANY)
        elif text[at] == "[" and (end := text.find("]", at + (3 if text[at + 1 : at + 2] in ("!", "^") else 2))) > 0:
            found.append(_class(text[at + 1 : end]))
            at = end
        else:
            found.append(_one(text[at]))
        at += 1
    return tuple(found)


def _class(text: str) -> "Ranges":
    """What stands between brackets."""
    excludes = text[0] in "!^"
    letters = text[1:] if excludes else text
    ranges = []
    at = 0
    while at < len(letters):
        is_range = letters[at + 1 : at + 2] == "-" and at + 2 < len(letters)
        ranges.append((ord(letters[at]), ord(letters[at + 2 if is_range else at])))
        at += 3 if is_range else 1
    found = _others(ranges) if excludes else tuple([one for one in ranges if one[0] <= one[1]])
    if not found:
        raise ValueError(f"holds [{text}], which is no character")
    return found


def _others(ranges: "list[tuple[int, int]]") -> "Ranges":
    """All characters but these, and the slash."""
    found = []
    start = 0
    for first, last in sorted([*ranges, (_SLASH, _SLASH), (0x110000, 0x110000)]):
        if start < first:
            found.append((start, first - 1))
        start = max(start, last + 1) if first <= last else start
    return tuple(found)


def _one(letter: str) -> "Ranges":
    return ((ord(letter), ord(letter)),)
