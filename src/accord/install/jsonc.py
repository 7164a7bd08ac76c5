"""JSON text that a person wrote, changed in places: comments, order, indents and all else stay as they are.

Each change reads the text anew, so that a place is never one of an earlier text.
"""

import json
import re
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE_AND_COMMENTS = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')
# What a vendor reads besides JSON.
STRICT = ""
COMMENTS = "//"
COMMAS = "//,"  # and one behind the last element

_DEFAULT_INDENT = "  "
_DEEPEST = 200

Path = tuple[str | int, ...]


class NotJson(ValueError):
    """What the text is not, or does not have where a change needs it."""


class _Node(NamedTuple):
    start: int
    end: int
    value: Any
    children: "list[_Child] | None"  # of an object or an array


class _Child(NamedTuple):
    start: int  # of the key, if it has one
    key: str | int
    node: _Node


def value(text: str, dialect: str) -> Any:
    """What the text says."""
    return _read(text, dialect).value


def put(text: str, path: Path, new: Any, dialect: str) -> str:
    """The text with `new` as the member of an object, which is made if it is not there."""
    node, left = _walk(_read(text, dialect), path)
    if not left:
        return text[: node.start] + _shown(new, text, _indent_at(text, node.start)) + text[node.end :]
    for key in reversed(left[1:]):
        new = {key: new}
    return _add(text, node, left[0], new, dialect)


def append(text: str, path: Path, new: Any, dialect: str) -> str:
    """The text with one more element in an array, which is made if it is not there."""
    node, left = _walk(_read(text, dialect), path)
    if left:
        return put(text, path, [new], dialect)
    if not isinstance(node.value, list):
        raise NotJson(f"has {_dotted(path)} that is no list")
    return _add(text, node, None, new, dialect)


def remove(text: str, path: Path, dialect: str) -> str:
    """The text without a member or an element."""
    above, left = _walk(_read(text, dialect), path[:-1])
    children = above.children or []
    places = [at for at, child in enumerate(children) if child.key == path[-1]]
    if left or not places:
        return text
    at = places[-1]
    start, end = children[at].start, children[at].node.end
    begin = len(text[:start].rstrip())
    comma = _comma_after(text, end, dialect)
    head, tail = text[:begin], text[comma or end :]
    if len(children) == 1 and not (head[above.start + 1 :] + text[comma or end : above.end - 1]).strip():
        return text[: above.start + 1] + text[above.end - 1 :]
    if not comma and at:
        before = _comma_after(text, children[at - 1].node.end, dialect)
        head = head[: before - 1] + head[before:]
    if "\n" in text[begin:start] and not tail.lstrip(" \t").startswith(("\n", "\r")):
        head += text[begin:start]  # what ends the line before may be a comment, and would go on
    return head + tail


def _read(text: str, dialect: str) -> _Node:
    reader = _Reader(text, dialect)
    node = reader.node(reader.skip(0))
    end = reader.skip(node.end)
    if end != len(text):
        raise NotJson(f"has something behind its end, in line {_line(text, end)}")
    return node


def _walk(node: _Node, path: Path) -> "tuple[_Node, Path]":
    """The last node of a path that is there, and what of the path is not."""
    for done, key in enumerate(path):
        if not isinstance(node.value, dict if isinstance(key, str) else list):
            raise NotJson(f"has {_dotted(path[:done])} that is no {'object' if isinstance(key, str) else 'list'}")
        found = [child.node for child in node.children or [] if child.key == key]
        if not found:
            return node, path[done:]
        node = found[-1]  # of a key that is there twice, the last one counts
    return node, ()


class _Reader:
    def __init__(self, text: str, dialect: str) -> None:
        self._text = text
        self._space = _SPACE_AND_COMMENTS if dialect else _SPACE
        self._dialect = dialect
        self._depth = 0

    def skip(self, at: int) -> int:
        found = self._space.match(self._text, at)
        assert found is not None  # noqa: S101 - it matches nothing, too
        return found.end()

    def node(self, at: int) -> _Node:
        first = self._text[at : at + 1]
        if first in ("{", "["):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise NotJson("is nested too deeply")
            found = self._children(at, first == "{")
            self._depth -= 1
            return found
        scalar = _SCALAR.match(self._text, at)
        try:
            if scalar:
                return _Node(at, scalar.end(), json.loads(scalar[0]), None)
        except ValueError:
            pass
        raise self._wrong(at)

    def _children(self, start: int, has_keys: bool) -> _Node:
        close = "}" if has_keys else "]"
        children: list[_Child] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != close:
            child = self._child(at, len(children), has_keys)
            children.append(child)
            at = self.skip(child.node.end)
            if self._text[at : at + 1] == ",":
                comma, at = at, self.skip(at + 1)
                if self._text[at : at + 1] == close and "," not in self._dialect:
                    raise self._wrong(comma)
            elif self._text[at : at + 1] != close:
                raise self._wrong(at)
        values = [child.node.value for child in children]
        found = dict(zip([child.key for child in children], values, strict=True)) if has_keys else values
        return _Node(start, at + 1, found, children)

    def _child(self, at: int, number: int, has_keys: bool) -> _Child:
        if not has_keys:
            return _Child(at, number, self.node(at))
        key = self.node(at)
        colon = self.skip(key.end)
        if not isinstance(key.value, str) or self._text[colon : colon + 1] != ":":
            raise self._wrong(at)
        return _Child(at, key.value, self.node(self.skip(colon + 1)))

    def _wrong(self, at: int) -> NotJson:
        also = self._dialect or not self._text.startswith(("//", "/*"), at)
        return NotJson(f"is no JSON, in line {_line(self._text, at)}" + ("" if also else ", which has a comment"))


def _add(text: str, node: _Node, key: str | int | None, new: Any, dialect: str) -> str:
    """One more child at the end of an object or an array."""
    children = node.children or []
    named = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    last = children[-1].node.end if children else 0
    comma = _comma_after(text, last, dialect) if children else 0
    close = "," if comma else ""  # a text with a comma behind the last one keeps it
    if children and "\n" not in text[node.start : node.end]:  # all on one line, and so it stays
        at = comma or last
        return f"{text[:at]}{'' if comma else ','} {named}{json.dumps(new, ensure_ascii=False)}{close}{text[at:]}"
    indent = _indent_at(text, children[-1].start if children else node.start)
    body, end = text[: node.end - 1].rstrip(), text[node.end - 1 :]
    if children:
        space = text[len(body) : node.end - 1]
        body = body if comma else f"{body[:last]},{body[last:]}"
    else:
        space = _newline(text) + indent
        indent += _unit(text)
    return f"{body}{_newline(text)}{indent}{named}{_shown(new, text, indent)}{close}{space}{end}"


def _comma_after(text: str, at: int, dialect: str) -> int:
    """Just behind the comma that follows; 0 when none does."""
    at = _Reader(text, dialect).skip(at)
    return at + 1 if text[at : at + 1] == "," else 0


def _shown(new: Any, text: str, indent: str) -> str:
    """A value over several lines, as the rest of the text is."""
    unit = _unit(text)
    return json.dumps(new, indent=unit, ensure_ascii=False).replace("\n", _newline(text) + indent)


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _unit(text: str) -> str:
    """By how much the text indents: as its first member does that begins a line."""
    found = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return found[1] if found else _DEFAULT_INDENT


def _indent_at(text: str, at: int) -> str:
    """The blanks that the line begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _dotted(path: Path) -> str:
    return f"a {'.'.join(map(str, path))}" if path else "a top level"
