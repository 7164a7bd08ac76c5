"""migrate."""

from accord.cli.show import one_line
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

_HOW = {
    "copied": "copied",
    "resumed": "copied, going on from where it was cut short",
    "compared": "there already, and compared",
    "counted": "to be copied",
}


def migrate(line: "Line", words: "dict[str, Any]") -> int:
    result = line.call("home.migrate", words)
    line.answer(result, lambda: _text(result))
    return 1 if result["problems"] else 0


def _text(result: "dict[str, Any]") -> str:
    amount = f"{result['items']:,} items in {result['collections']:,} collections, {result['bytes']:,} bytes"
    lines = [f"{amount}: {_HOW[result['how']]}", f"from      {result['source']}", f"to        {result['target']}"]
    lines.append(f"checksum  {result['checksum']}")
    if result["mended"]:
        lines.append(f"{result['mended']:,} writes made the same what had changed since it was read")
    if result["how"] != "counted":
        lines.append("every item was compared. To use it, write this into accord.yml, and start the hub again:")
        lines.append(f"engine: {result['target']}")
    lines += [f"it would not be done: {problem['error_message']}" for problem in result["problems"]]
    return "".join(f"{one_line(text)}\n" for text in lines)


VERBS = {
    "migrate": Verb(
        migrate,
        "home.migrate",
        names={"source": "from", "target": "to"},
        notes={
            "source": "the store that everything is copied from; it stays as it is",
            "target": "an empty place, or one that was filled from there and not used since",
            "dry_run": "only say how much there is, and what would keep it from being copied",
        },
    ),
}
