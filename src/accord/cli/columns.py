"""Texts side by side, or below each other where the terminal is too narrow."""

from unicodedata import combining, east_asian_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NARROWEST = 18  # column that still says something
_GAP = "  "
_CUT = "…"


def side_by_side(columns: "Sequence[tuple[str, Sequence[str]]]", width: int) -> str:
    """Columns, each with a head and lines; no line is wider than `width`. The texts are safe already."""
    each = (width - len(_GAP) * (len(columns) - 1)) // max(1, len(columns))
    if each < _NARROWEST:
        lines = [fit(line, width) for head, rest in columns for line in ["", head, *[f" {one}" for one in rest]]]
        return "\n".join(line.rstrip() for line in lines[1:]) + "\n"
    height = max((len(lines) for _, lines in columns), default=0)
    rows = [[head, *lines, *[""] * (height - len(lines))] for head, lines in columns]
    joined = [_GAP.join(fit(cell, each) for cell in cells) for cells in zip(*rows, strict=True)]
    return "\n".join(line.rstrip() for line in joined) + "\n"


def fit(text: str, width: int) -> str:
    """As wide as that on a terminal: filled up, or cut off."""
    size = sum(map(_cells, text))
    if size <= width:
        return text + " " * (width - size)
    kept, size = "", 0
    for letter in text:
        if size + _cells(letter) > width - len(_CUT):
            break
        kept += letter
        size += _cells(letter)
    return f"{kept}{_CUT}" + " " * (width - size - len(_CUT))


def _cells(letter: str) -> int:
    """How much room a letter takes."""
    if combining(letter) or letter in "\u200b\u200c\u200d\ufe0f":
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1
