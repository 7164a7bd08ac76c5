"""tx."""

from accord import jsontext
from accord.cli import texts
from accord.cli.words import DASH, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def tx(line: "Line", words: "dict[str, Any]") -> None:
    text = texts.take(line, words, "steps", "file", jsontext.MAX_BYTES, "A list of steps")
    result = line.call("tx.run", {"steps": jsontext.loads(text)})
    line.answer(result, lambda: f"{len(result['results'])} changes are made, together\n")


VERBS = {
    "tx": Verb(
        tx,
        "tx.run",
        positional=("stdin",),
        extra={"file": "Path", "stdin": DASH},
        notes={"file": "a file with them; the word - alone reads standard input"},
        usage="(--steps JSON | --file PATH | -)",
    ),
}
