"""hub keys make, hub keys list, hub keys revoke."""

from accord.cli.show import table
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def make(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("hub.keys_make", words)
    line.answer(result, lambda: f"made {result['name']}: {result['path']}\n")


def show(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("hub.keys_list", words)
    rows = [(key["name"],) for key in result["keys"]]
    line.answer(result, lambda: table(line, ("name",), rows) if rows else "no keys\n", styled=True)


def revoke(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("hub.keys_revoke", words)
    line.answer(result, lambda: f"revoked {result['name']}\n")


VERBS = {
    "hub keys make": Verb(make, "hub.keys_make", positional=("name",)),
    "hub keys list": Verb(show, "hub.keys_list"),
    "hub keys revoke": Verb(revoke, "hub.keys_revoke", positional=("name",)),
}
