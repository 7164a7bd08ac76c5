"""What may stand for the last word of a command, as a shell asks at a TAB.

The command is read as it would be run, with a mark in the place of that word; what takes the mark says what fits.
"""

import os

from accord import errors
from accord.cli.run import GROUPS, VERBS, Line, find_verb
from accord.cli.words import GLOBALS, LISTS, REST
from accord.model import ALL, MESSAGE_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.cli.io import Io

FILES = "/"  # as the only candidate: the shell's own file names

_MARK = "\0"  # no word of a command can be this
_PLACES = dict.fromkeys([_MARK, *[f"{group} {_MARK}" for group in GROUPS]], "")


def candidates(words: list[str], io: "Io") -> list[str]:
    """Whole words, or after `--option=` whole values. What cannot be read has none: this is no time for an error."""
    *before, last = words
    option, equals, value = last.partition("=")
    try:
        if not last.startswith("-"):
            return _starting(last, _values(Line([*before, _MARK], io)))
        if equals:
            return _starting(value, _values(Line([*before, f"{option}={_MARK}"], io)))
        return _starting(last, _options(Line(before, io)) if "--" not in before else [])
    except errors.AccordError:
        return []


def _starting(start: str, found: list[str]) -> list[str]:
    return [word for word in found if word.startswith(start) or word == FILES]


def _options(line: Line) -> list[str]:
    """Those that the command may still be given."""
    words = line.words
    words.take_verb(VERBS, GROUPS)
    own: list[str] = []
    if words.verb in VERBS:
        verb = find_verb(words.verb)
        kinds, given = verb.kinds(), words.read(verb)
        own = [option for option, param in verb.options().items() if param not in given or kinds[param] in LISTS]
    return own + [option for option in GLOBALS if option not in words.globals]


def _values(line: Line) -> list[str]:
    """What fits where the mark is."""
    words = line.words
    words.take_verb({**VERBS, **_PLACES}, GROUPS)
    if words.verb in _PLACES:
        return _verbs(words.verb.removesuffix(_MARK))
    if words.verb in VERBS:
        verb = find_verb(words.verb)
        for param, value in words.read(verb).items():
            if value == _MARK or (isinstance(value, list) and _MARK in value):
                return _of_kind(verb.kinds()[param], line)
    return [FILES] if words.globals.get("--home") == _MARK else []


def _verbs(group: str) -> list[str]:
    """Verbs and groups, or the verbs of a group."""
    return list(dict.fromkeys(verb[len(group) :].partition(" ")[0] for verb in VERBS if verb.startswith(group)))


def _of_kind(kind: str, line: Line) -> list[str]:
    if kind in ("Path", "Paths", "Folder", "Globs", REST):
        return [FILES]
    if kind == "MessageType":
        return list(MESSAGE_TYPES)
    if not _has_store(line):
        return []
    if kind == "Channel":
        return [found["channel"] for found in line.call("channel.list", {})["channels"]]
    if kind in ("Identity", "OwnIdentity", "Identities", "Recipients"):
        names = [found["identity"] for found in line.call("agent.discover", {})["identities"]]
        return [*names, ALL] if kind == "Recipients" else names
    return []


def _has_store(line: Line) -> bool:
    """Asking makes no home, and no store in a folder that is something else."""
    context = line.context
    return bool(context.settings["engine"]) or os.path.exists(f"{context.home.path}/store.db")
