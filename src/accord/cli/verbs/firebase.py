"""firebase rules."""

from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def rules(line: "Line", words: "dict[str, Any]") -> None:
    import json

    result = line.call("firebase.rules", words)
    line.answer(result, lambda: json.dumps({"rules": result["rules"]["rules"]}, indent=2) + "\n")


VERBS = {
    "firebase rules": Verb(
        rules,
        "firebase.rules",
        notes={"path": "of the store in the database", "uid": "who may come there, as the rules see it"},
    ),
}
