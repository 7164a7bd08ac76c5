"""reserve add, reserve list, reserve release, reserve check, reserve install-hook."""

import os

from accord import errors
from accord.cli.show import table
from accord.cli.verbs.mail import myself
from accord.cli.words import Verb
from accord.model import HUMAN, globs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

_MOST_SHOWN = 10  # in the message of an error


def add(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("reserve.add", _placed(line, _owned(line, words)))
    said = f"{', '.join(result['globs'])} is reserved for {result['owner']} until {result['expires_at']}\n"
    line.answer(result, lambda: said + "".join(_warning(one["wanted"], one) for one in result["overlaps"]))


def show(line: "Line", words: "dict[str, Any]") -> None:
    if "project" in words:
        words["project"] = _Place(line, words).project
    result = line.call("reserve.list", words)
    rows = [
        (one["project"], one["glob"], one["owner"], one["expires_at"], _remark(one)) for one in result["reservations"]
    ]
    head = ("project", "files", "owner", "until", "note")
    line.answer(result, lambda: table(line, head, rows) if rows else "nothing is reserved\n", styled=True)


def release(line: "Line", words: "dict[str, Any]") -> None:
    if bool(words.get("all")) == ("globs" in words):
        raise line.words.wrong("Give either globs or --all")
    result = line.call("reserve.release", _placed(line, _owned(line, words)))
    line.answer(result, lambda: f"released: {', '.join(result['released']) or 'nothing'}\n")


def check(line: "Line", words: "dict[str, Any]") -> None:
    words.setdefault("owner", line.io.env.get("ACCORD_AGENT") or HUMAN)
    staged = words.pop("staged", False)
    if staged and "paths" in words:
        raise line.words.wrong("Give either paths or --staged")
    held = _check_staged(line, words) if staged else line.call("reserve.check", _placed(line, words))["held"]
    closed = [one for one in held if not one["advisory"]]
    if closed:
        kind = errors.CommitStopped if staged else errors.Reserved
        more = [f"and {len(closed) - _MOST_SHOWN} more"] if len(closed) > _MOST_SHOWN else []
        raise kind(held="; ".join([*[_sentence(one["path"], one) for one in closed[:_MOST_SHOWN]], *more]))
    said = "".join(_warning(one["path"], one) for one in held)
    line.answer({"held": held}, lambda: said or "not reserved by others\n" * (not staged))


def _check_staged(line: "Line", words: "dict[str, Any]") -> "list[dict[str, Any]]":
    """What others have of the files that git would commit."""
    from accord.cli import githook

    place = _Place(line, words)
    paths = githook.staged(place.cwd)
    found: list[dict[str, Any]] = []
    if paths:
        found = line.call("reserve.check", {**words, "project": place.project, "paths": paths})["held"]
    return found


def install_hook(line: "Line", words: "dict[str, Any]") -> None:
    from accord.cli import githook

    path = githook.hook_path(_Place(line, words).cwd)
    if words.get("remove"):
        changed = githook.remove(path)
        text = f"{path} is as it was without accord\n" if changed else f"{path} has nothing of accord\n"
    else:
        changed = githook.install(path)
        text = f"{path} stops commits of reserved files{'' if changed else ' already'}\n"
    line.answer({"path": path, "changed": changed}, lambda: text)


class _Place:
    """The project that is worked in, and where in it: names are relative to that, as everywhere."""

    def __init__(self, line: "Line", words: "dict[str, Any]") -> None:
        if not line.io.cwd:
            raise errors.FileUnreadable(path=".", reason="the working directory is gone")
        self.cwd = os.path.realpath(line.io.cwd)
        given = words.get("project")
        self.project = os.path.realpath(os.path.join(self.cwd, given)) if given else _top(self.cwd)
        is_inside = f"{self.cwd}/".startswith(f"{self.project.rstrip('/')}/")
        self._base = self.cwd if is_inside else self.project
        self._line = line

    def relative(self, text: str, is_glob: bool) -> str:
        """A glob or a path as it is called in the project."""
        base = globs.quoted(self._base) if is_glob else self._base
        found = os.path.normpath(os.path.join(base, text))
        for top in (self.project, globs.quoted(self.project)):
            if found == top:
                return "."
            if found.startswith(f"{top.rstrip('/')}/"):
                return found[len(top.rstrip("/")) + 1 :]
        raise self._line.words.wrong(f"{text[:100]!r} is outside of the project {self.project}")


def _top(folder: str) -> str:
    """The top of the git work tree that a folder is in; where there is none, the folder."""
    above = folder
    while not os.path.lexists(f"{above}/.git"):
        if above == os.path.dirname(above):
            return folder
        above = os.path.dirname(above)
    return above


def _placed(line: "Line", words: "dict[str, Any]") -> "dict[str, Any]":
    place = _Place(line, words)
    found = {**words, "project": place.project}
    for name in ("globs", "paths"):
        if name in words:
            if "" in words[name]:
                raise line.words.wrong(f"One of the {name} is empty")
            found[name] = [place.relative(text, name == "globs") for text in words[name]]
    return found


def _owned(line: "Line", words: "dict[str, Any]") -> "dict[str, Any]":
    return words if "owner" in words else {**words, "owner": myself(line, "--owner")}


def _warning(name: str, one: "dict[str, Any]") -> str:
    return f"accord: {_sentence(name, one)}\n"


def _sentence(name: str, one: "dict[str, Any]") -> str:
    remark = _remark(one)
    return f"{name} is reserved by {one['owner']} ({one['glob']}, until {one['expires_at']}{remark and f'; {remark}'})"


def _remark(one: "dict[str, Any]") -> str:
    return "; ".join(["advisory"] * one["advisory"] + [one["note"]] * bool(one["note"]))


VERBS = {
    "reserve add": Verb(add, "reserve.add", positional=("globs",), mine=("owner", "project")),
    "reserve list": Verb(show, "reserve.list"),
    "reserve release": Verb(
        release,
        "reserve.release",
        positional=("globs",),
        usage="(GLOB... | --all) [--owner LABEL] [--project DIR]",
    ),
    "reserve check": Verb(
        check,
        "reserve.check",
        positional=("paths",),
        extra={"staged": "Flag"},
        notes={"staged": "the files that git would commit now, as the hook asks", "owner": "whose own do not count"},
        usage="(PATH... | --staged) [--owner LABEL] [--project DIR]",
    ),
    "reserve install-hook": Verb(
        install_hook,
        extra={"remove": "Flag"},
        notes={"remove": "take it out again"},
        help="Have git stop commits that touch files reserved by others.",
    ),
}
