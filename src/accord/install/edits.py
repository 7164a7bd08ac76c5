"""What is to stand in one file, as an edit that can be made, made again and taken back.

An edit is a value with a `path`, and two functions of the file's text (None: there is no file):

    put(text)            the text with accord's entries, the same if they are there
    drop(text, before)   the text without them; `before` is what was there before, where that is known
"""

import os
import shlex

from accord.install import jsonc, tomltext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Edit(Protocol):
        path: str
        is_whole: bool  # the file is accord's from beginning to end

        def put(self, text: str | None) -> str: ...

        def drop(self, text: str | None, before: str | None) -> str | None: ...


MARK = "Written by accord install"  # in every file that is accord's as a whole
NAME = "accord"  # of its MCP server

_BOM = "\ufeff"


class Unusable(ValueError):
    """What stands in a file in the way of an edit, as the end of a sentence that begins with the file's name."""


class Foreign(Unusable):
    """Something of another with accord's name."""


class Json:
    """Entries of a settings file: `parts` are `Server` and `Hook`."""

    is_whole = False

    def __init__(self, path: str, parts: "list[Server | Hook]", dialect: str = jsonc.STRICT) -> None:
        self.path = path
        self._parts = parts
        self._dialect = dialect

    def put(self, text: str | None) -> str:
        def work(text: str) -> str:
            for part in self._parts:
                text = part.put(text, self._dialect)
            return text

        return _with(text or "", work, empty="{}\n")

    def drop(self, text: str | None, before: str | None) -> str | None:
        def work(text: str) -> str:
            for part in self._parts:
                text = part.drop(text, self._dialect, known)
            return text

        if text is None or not text.strip():
            return text
        known = self._known(before)
        left = _with(text, work, empty="{}\n")
        is_empty = left.removeprefix(_BOM).split() in (["{}"], ["{", "}"])  # without a comment, too
        return None if before is None and left != text and is_empty else left

    def _known(self, before: str | None) -> "Any":
        """What a text says, for comparing."""
        try:
            return jsonc.value((before or "").removeprefix(_BOM).strip() or "{}", self._dialect)
        except jsonc.NotJson:
            return {}


class Server:
    """An MCP server: one member of an object."""

    def __init__(self, path: tuple[str, ...], value: "dict[str, Any]") -> None:
        self._path = (*path, NAME)
        self._value = value

    def put(self, text: str, dialect: str) -> str:
        there = _at(jsonc.value(text, dialect), self._path)
        if there is None:
            return jsonc.put(text, self._path, self._value, dialect)
        if not is_own_server(there):
            raise Foreign(f"has another {'.'.join(self._path)}")
        for key, value in self._value.items():  # what a person added besides stays
            if there.get(key) != value:
                text = jsonc.put(text, (*self._path, key), value, dialect)
        return text

    def drop(self, text: str, dialect: str, before: "Any") -> str:
        if is_own_server(_at(jsonc.value(text, dialect), self._path)):
            text = jsonc.remove(text, self._path, dialect)
            text = _prune(text, self._path[:-1], dialect, before)
        return text


class Hook:
    """A command for an event, in the form that Claude Code began with and others took over."""

    def __init__(self, event: str, brain: str, hook: "dict[str, Any]", matcher: str | None = None) -> None:
        self._path = ("hooks", event)
        self._brain = brain
        self._group = {**({} if matcher is None else {"matcher": matcher}), "hooks": [hook]}
        self._command = hook["command"]

    def put(self, text: str, dialect: str) -> str:
        places = self._places(text, dialect)
        if not places:
            return jsonc.append(text, self._path, self._group, dialect)
        for place in reversed(places[1:]):
            text = self._remove(text, place, dialect, None)
        there = _at(jsonc.value(text, dialect), places[0])
        if there["command"] == self._command:
            return text
        return jsonc.put(text, (*places[0], "command"), self._command, dialect)

    def drop(self, text: str, dialect: str, before: "Any") -> str:
        places = self._places(text, dialect)
        for place in reversed(places):
            text = self._remove(text, place, dialect, before)
        if places:
            text = _prune(text, self._path, dialect, before)
        return text

    def _places(self, text: str, dialect: str) -> "list[jsonc.Path]":
        """Where accord's own are."""
        groups = _at(jsonc.value(text, dialect), self._path)
        if not isinstance(groups, list):
            return []
        return [
            (*self._path, at, "hooks", number)
            for at, group in enumerate(groups)
            if isinstance(group, dict) and isinstance(group.get("hooks"), list)
            for number, hook in enumerate(group["hooks"])
            if isinstance(hook, dict) and is_own_hook(hook.get("command"), self._brain)
        ]

    def _remove(self, text: str, place: "jsonc.Path", dialect: str, before: "Any") -> str:
        text = jsonc.remove(text, place, dialect)
        group = place[:-2]
        return text if _at(jsonc.value(text, dialect), place[:-1]) else jsonc.remove(text, group, dialect)


class Toml:
    """A table in a TOML file."""

    is_whole = False

    def __init__(self, path: str, table: tuple[str, ...], value: "dict[str, Any]") -> None:
        self.path = path
        self._table = table
        self._value = value

    def put(self, text: str | None) -> str:
        def work(text: str) -> str:
            there = _at(tomltext.value(text), self._table)
            if there is not None and not is_own_server(there):
                raise Foreign(f"has another {'.'.join(self._table)}")
            return tomltext.put(text, self._table, self._value)

        return _with(text or "", work)

    def drop(self, text: str | None, before: str | None) -> str | None:
        def work(text: str) -> str:
            is_own = is_own_server(_at(tomltext.value(text), self._table))
            return tomltext.remove(text, self._table) if is_own else text

        if text is None:
            return None
        left = _with(text, work)
        return None if before is None and left != text and not left.strip() else left


class Whole:
    """A file that is accord's."""

    is_whole = True

    def __init__(self, path: str, content: str) -> None:
        self.path = path
        self._content = content

    def put(self, text: str | None) -> str:
        if text is not None and MARK not in text:
            raise Foreign("is a file of another")
        return self._content

    def drop(self, text: str | None, before: str | None) -> str | None:
        return before if text == self._content or text is None else text


def is_own_server(there: "Any") -> bool:
    """Whether an MCP server is accord's, whatever its path was then."""
    if not isinstance(there, dict):
        return False
    command, args = there.get("command"), there.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [args])]
    return len(words) > 1 and isinstance(words[0], str) and _is_accord(words[0]) and words[1] == "mcp"


def is_own_hook(command: "Any", brain: str) -> bool:
    """Whether a command is accord's hook for this vendor."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    own = ["--brain", brain]
    return len(words) > 4 and _is_accord(words[0]) and words[1] == "hook" and words[3:5] == own


def _is_accord(path: str) -> bool:
    return os.path.basename(path) == NAME


def _with(text: str, work: "Callable[[str], str]", empty: str = "") -> str:
    """A text after work on it, without what may stand before it; a blank one as `empty`, if that is given."""
    bom = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(bom)
    try:
        return bom + work(text if text.strip() else empty or text)
    except (jsonc.NotJson, tomltext.NotToml) as error:
        raise Unusable(str(error)) from None


def _at(value: "Any", path: "jsonc.Path") -> "Any":
    """What stands at a path; None where nothing does."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _prune(text: str, path: "jsonc.Path", dialect: str, before: "Any") -> str:
    """Take out what is empty by now, and was not there before."""
    while path and _at(jsonc.value(text, dialect), path) in ({}, []) and _at(before, path) is None:
        text = jsonc.remove(text, path, dialect)
        path = path[:-1]
    return text
