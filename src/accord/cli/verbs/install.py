"""install, uninstall."""

import os
import sys

from accord import errors
from accord.cli.show import one_line
from accord.cli.words import Verb
from accord.install import NAMES
from accord.operations import OPERATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line
    from accord.install.changes import Change
    from accord.install.site import Site

_PROJECT, _USER = "project", "user"


def install(line: "Line", words: "dict[str, Any]") -> None:
    _run(line, words, is_install=True)


def uninstall(line: "Line", words: "dict[str, Any]") -> None:
    _run(line, words, is_install=False)


def _run(line: "Line", words: "dict[str, Any]", is_install: bool) -> None:
    name = words.get("name", "")
    if name not in NAMES:
        raise line.words.wrong(f"Name one of {', '.join(NAMES)}")
    if words.get("project") and words.get("user"):
        raise line.words.wrong("Give either --project or --user")
    _check_right(line, is_dry=bool(words.get("dry_run")))
    site = _site(line, _PROJECT if words.get("project") else _USER)
    if not site.is_user and site.project == os.path.realpath(site.user_home):
        raise line.words.wrong("The project here is your home, whose settings are your own. Leave out --project")
    from accord.install import doing

    home = line.context.home
    if words.get("dry_run"):
        changes = doing.look(name, site, home, is_install)
    else:
        changes = doing.do(name, site, home, is_install, line.context.settings["lock_timeout_s"])
    _answer(line, words, name, site, changes, doing.notes(name, site) if is_install else [])


def _check_right(line: "Line", is_dry: bool) -> None:
    """Agents may not change what starts agents. Looking makes no home, as asking for the operator's token would."""
    if line.context.agent or (not is_dry and line.context.right != OPERATOR):
        raise errors.NotPermitted(
            operation=f"accord {line.words.verb}", agent=line.context.agent or "without its token"
        )


def _site(line: "Line", scope: str) -> "Site":
    from accord.install.site import Site

    if not line.io.cwd:
        raise errors.FileUnreadable(path=".", reason="the working directory is gone")
    home = line.words.globals.get("--home")
    options = ["--home", os.path.abspath(os.path.join(line.io.cwd, home))] if home else []
    return Site(scope, _top(os.path.realpath(line.io.cwd)), line.io.env, _command(line), options)


def _top(folder: str) -> str:
    """The top of the git work tree that a folder is in; where there is none, the folder."""
    from accord.cli.verbs.reserving import _top

    return _top(folder)


def _command(line: "Line") -> str:
    """The absolute path of the command that was called, or else of the one on the PATH.

    Links stay: they outlive upgrades.
    """
    import shutil

    named = sys.argv[0]
    beside = os.path.join(os.path.dirname(sys.executable), "accord")
    for path in (named if "/" in named else "", shutil.which("accord", path=line.io.env.get("PATH")) or "", beside):
        if os.path.basename(path) == "accord" and os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    raise errors.CommandNotFound(command="accord", reason="it is not on the PATH")


def _answer(
    line: "Line", words: "dict[str, Any]", name: str, site: "Site", changes: "list[Change]", notes: list[str]
) -> None:
    is_dry = bool(words.get("dry_run"))
    diffs = [change.diff() for change in changes] if is_dry else []
    result = {
        "name": name,
        "scope": site.scope,
        "folder": site.folder,
        "dry_run": is_dry,
        "files": [change.to_json() for change in changes],
        "notes": notes,
        **({"diff": "".join(diffs)} if is_dry else {}),
    }
    would = "would be " if is_dry else ""
    lines = [f"{would}{change.did:9}  {one_line(change.path)}\n" for change in changes]
    line.answer(result, lambda: "".join([*diffs, *lines, *(f"{note}\n" for note in notes)]))


_EXTRA = {"name": "Vendor", "project": "Flag", "user": "Flag", "dry_run": "Flag"}
_NOTES = {
    "name": f"one of {', '.join(NAMES)}",
    "project": "in the settings of the project that the working directory is in",
    "user": "in your own settings, for all projects; so it is unless --project is given",
    "dry_run": "show what would change, and write nothing",
}
_USAGE = f"({' | '.join(NAMES)}) [--project | --user] [--dry-run]"

VERBS = {
    "install": Verb(
        install,
        positional=("name",),
        extra=_EXTRA,
        notes=_NOTES,
        usage=_USAGE,
        help="Have an agent use accord by itself: its hooks, its MCP servers, or a skill.",
    ),
    "uninstall": Verb(
        uninstall,
        positional=("name",),
        extra=_EXTRA,
        notes=_NOTES,
        usage=_USAGE,
        help="Take back what `accord install` added, and nothing else.",
    ),
}
