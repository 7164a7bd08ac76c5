"""halt, unhalt, engage."""

from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def halt(line: "Line", words: "dict[str, Any]") -> None:
    # However it is typed, it halts.
    reason = " ".join(words.get("reason") or []).encode("utf-8", "replace").decode()
    result = line.call("halt.set", {"reason": reason})
    line.answer(result, lambda: f"halted: {result['halted']}\n")


def unhalt(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("halt.lift", words)
    text = "lifted; agents that were there wait for: accord engage NAME, or --all\n"
    line.answer(result, lambda: text if result["lifted"] else "nothing was halted\n")


def engage(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("halt.engage", words)
    line.answer(result, lambda: f"engaged: {', '.join(result['engaged']) or 'nobody was waiting'}\n")


VERBS = {
    "halt": Verb(halt, positional=("reason",), extra={"reason": "Words"}, help="Halt everything, in every home."),
    "unhalt": Verb(unhalt, "halt.lift"),
    "engage": Verb(engage, "halt.engage", positional=("identities",)),
}
