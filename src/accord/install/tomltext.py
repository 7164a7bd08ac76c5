"""TOML text that a person wrote, with one table added, changed or taken out; all else stays as it is.

Lines are found by their looks, and then it is made sure that the new text says what it should, and nothing else.
"""

import re
import tomllib
from typing import Any

_HEADER = re.compile(r"^[ \t]*\[")
_VALUE = r"(?m)^([ \t]*{key}[ \t]*=[ \t]*)[^\r\n]*"


class NotToml(ValueError):
    """What the text is not, or has in a form that is not changed here."""


def value(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotToml(f"is no TOML: {error}") from None


def put(text: str, table: tuple[str, ...], new: dict[str, Any]) -> str:
    """The text with a table that has at least these members."""
    wanted = value(text)
    there = _place(wanted, table)
    changed = {key: one for key, one in new.items() if there.get(key) != one}
    if not changed:
        return text
    there.update(new)
    newline = "\r\n" if "\r\n" in text else "\n"
    ranges = _ranges(text, table)
    if ranges:
        start, end = ranges[0]
        made = text[:start] + _changed(text[start:end], changed, newline) + text[end:]
    else:
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        lines = [f"[{'.'.join(table)}]", *(f"{key} = {_shown(one)}" for key, one in new.items())]
        made = text + gap + "".join(line + newline for line in lines)
    return _checked(made, wanted, table)


def remove(text: str, table: tuple[str, ...]) -> str:
    """The text without a table, and all that is in it."""
    wanted = value(text)
    above = wanted
    for key in table[:-1]:
        above = above.get(key, {})
    if above.pop(table[-1], None) is None:
        return text
    for start, end in reversed(_ranges(text, table)):
        # The empty line before it came with it.
        start -= 2 if text[:start].endswith("\r\n\r\n") else 1 if text[:start].endswith("\n\n") else 0
        text = text[:start] + text[end:]
    if not above and table[0] not in value(text):
        del wanted[table[0]]  # it was there only by what was in it
    return _checked(text, wanted, table)


def _place(wanted: dict[str, Any], table: tuple[str, ...]) -> dict[str, Any]:
    for key in table:
        wanted = wanted.setdefault(key, {})
        if not isinstance(wanted, dict):
            raise NotToml(f"has a {'.'.join(table)} that is no table")
    return wanted


def _ranges(text: str, table: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where the table and those in it stand: from the header to the last line that says something."""
    found = []
    start = None
    at = 0
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    for line in [*lines, ""]:
        is_ours = _name(line)[: len(table)] == table
        # What comes before a header is TOML too, unless it stands within a value.
        if (is_ours or start is not None) and (not line or _HEADER.match(line)) and _is_toml(text[:at]):
            if start is not None:
                found.append((start, start + _said(text[start:at])))
            start = at if is_ours else None
        at += len(line)
    return found


def _said(lines: str) -> int:
    """How long it is without empty lines and comments at its end: they belong to what comes next."""
    return len(re.sub(r"(?:\n[ \t\r]*(?:#[^\n]*)?)+\Z", "\n", lines))


def _name(line: str) -> tuple[str, ...]:
    """Of the table that a line may be the header of."""
    try:
        found: Any = tomllib.loads(line) if _HEADER.match(line) else {}
    except tomllib.TOMLDecodeError:
        return ()
    name: list[str] = []
    while found:
        if isinstance(found, list):
            found = found[0]
            continue
        (key,) = found
        name.append(key)
        found = found[key]
    return tuple(name)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _changed(lines: str, changed: dict[str, Any], newline: str) -> str:
    for key, one in changed.items():
        shown = _shown(one).replace("\\", "\\\\")
        lines, count = re.subn(_VALUE.format(key=re.escape(key)), rf"\g<1>{shown}", lines, count=1)
        if not count:
            header, _, rest = lines.partition(newline)
            lines = f"{header}{newline}{key} = {_shown(one)}{newline}{rest}"
    return lines


def _shown(one: Any) -> str:
    if isinstance(one, list):
        return f"[{', '.join(map(_shown, one))}]"
    escaped = one.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\u{ord(char):04x}" if char < " " or char == "\x7f" else char for char in escaped) + '"'


def _checked(text: str, wanted: dict[str, Any], table: tuple[str, ...]) -> str:
    if not _is_toml(text) or tomllib.loads(text) != wanted:
        above = ".".join(table[:-1])
        raise NotToml(f"has {above} in a form that accord does not change, and not as [{above}.NAME]")
    return text
