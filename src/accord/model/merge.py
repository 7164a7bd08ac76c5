"""Three texts made one: what two made of a common one, line by line, as diff3 does it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Lines = Sequence[str]

_MARK = 7  # as many signs as everybody's tools know

YOURS, COMMON, BETWEEN, THEIRS = ("<" * _MARK, "|" * _MARK, "=" * _MARK, ">" * _MARK)


class Merged:
    """`text` has both changes; where they meet, both and what was there before, between marks."""

    def __init__(self, text: str, conflicts: int) -> None:
        self.text = text
        self.conflicts = conflicts


def merge(
    common: str, yours: str, theirs: str, names: "tuple[str, str, str]" = ("yours", "common", "theirs")
) -> Merged:
    """The text with what both changed. The names say at the marks whose is what."""
    old, mine, other = _lines(common), _lines(yours), _lines(theirs)
    marks = [f"{mark} {name}\n" for mark, name in zip((YOURS, COMMON, THEIRS), names, strict=True)]
    merged: list[str] = []
    conflicts = 0
    at = (0, 0, 0)
    for sync in _common_places(old, mine, other):
        *starts, size = sync
        was, my, your = (text[a:b] for text, a, b in zip((old, mine, other), at, starts, strict=True))
        if my == your or your == was:
            merged += my
        elif my == was:
            merged += your
        else:
            conflicts += 1
            merged += [marks[0], *_ended(my), marks[1], *_ended(was), f"{BETWEEN}\n", *_ended(your), marks[2]]
        merged += old[starts[0] : starts[0] + size]
        at = (starts[0] + size, starts[1] + size, starts[2] + size)
    return Merged("".join(merged), conflicts)


def has_marks(text: str, names: "tuple[str, str, str]") -> bool:
    """Whether a conflict under these names is still in it."""
    lines = {line.rstrip() for line in text.split("\n")}
    return any(f"{mark} {name}" in lines for mark, name in zip((YOURS, COMMON, THEIRS), names, strict=True))


def _common_places(old: "Lines", mine: "Lines", other: "Lines") -> "Iterator[tuple[int, int, int, int]]":
    """Where lines of all three are the same: where they start in each, and how many; the last are none, at the end."""
    ours, theirs = _matches(old, mine), _matches(old, other)
    while ours and theirs:
        (a, in_mine, a_size), (b, in_other, b_size) = ours[0], theirs[0]
        start, end = max(a, b), min(a + a_size, b + b_size)
        if start < end:
            yield start, in_mine + start - a, in_other + start - b, end - start
        (ours if a + a_size < b + b_size else theirs).pop(0)
    yield len(old), len(mine), len(other), 0


def _matches(old: "Lines", new: "Lines") -> "list[tuple[int, int, int]]":
    """Where the same lines start in both, and how many; what both begin and end with needs no search."""
    from difflib import SequenceMatcher

    first = _same(zip(old, new, strict=False))
    left = min(len(old), len(new)) - first
    last = min(left, _same(zip(reversed(old), reversed(new), strict=False)))
    ends = len(old) - last, len(new) - last
    middle = SequenceMatcher(None, old[first : ends[0]], new[first : ends[1]]).get_matching_blocks()
    found = [(0, 0, first), *[(first + a, first + b, size) for a, b, size in middle], (*ends, last)]
    return [match for match in found if match[2]]


def _same(pairs: "Iterable[tuple[str, str]]") -> int:
    """How many pairs of equals come first."""
    count = 0
    for a, b in pairs:
        if a != b:
            break
        count += 1
    return count


def _lines(text: str) -> list[str]:
    """With their ends; a line ends at a line feed and nowhere else."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _ended(lines: "Lines") -> "Lines":
    """With an end after the last one too, so that a mark can follow."""
    return [*lines[:-1], f"{lines[-1]}\n"] if lines and not lines[-1].endswith("\n") else lines
