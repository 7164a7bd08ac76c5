"""halt, unhalt, engage."""

import os

from accord import errors, place
from accord.cli.words import Verb
from accord.services.halt import Halt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def halt(line: "Line", words: "dict[str, Any]") -> None:
    if words.get("status"):
        found = line.call("halt.status", {})
        line.answer(found, lambda: f"halted: {found['halted']}\n" if found["halted"] else "nothing is halted\n")
        return
    # However it is typed, it halts.
    reason = " ".join(words.get("reason") or []).encode("utf-8", "replace").decode()
    try:
        result = line.call("halt.set", {"reason": reason})
    except errors.HaltUnwritable:
        raise
    except errors.AccordError:  # of a home, a port, a name or settings that cannot be: it needs none of them
        if not os.path.isabs(place.user_home(line.io.env)):
            raise
        file = Halt(place.user_home(line.io.env))
        file.set(reason)
        result = {"halted": file.reason(), "path": file.path}
    line.answer(result, lambda: f"halted: {result['halted']}\n")


def unhalt(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("halt.lift", words)
    text = "lifted; agents that were there wait for: accord engage NAME, or --all\n"
    line.answer(result, lambda: text if result["lifted"] else "nothing was halted\n")


def engage(line: "Line", words: "dict[str, Any]") -> None:
    if words.get("identities") == ["all"]:
        words = {"all": True}
    result = line.call("halt.engage", words)
    line.answer(result, lambda: f"engaged: {', '.join(result['engaged']) or 'nobody was waiting'}\n")


VERBS = {
    "halt": Verb(
        halt,
        positional=("reason",),
        extra={"reason": "Words", "status": "Flag"},
        notes={"status": "only say whether everything is halted"},
        help="Halt everything, in every home of yours.",
        any_words=True,
    ),
    "unhalt": Verb(unhalt, "halt.lift"),
    "engage": Verb(engage, "halt.engage", positional=("identities",)),
}
