"""audit."""

from accord.cli.run import as_json
from accord.cli.show import one_line
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

_WAIT_S = 3600.0


def audit(line: "Line", words: "dict[str, Any]") -> None:
    verify, follow = words.pop("verify", False), words.pop("follow", False)
    head = words.pop("head", None)
    if verify or head:
        _verify(line, head)
        return
    result = line.call("audit.list", words)
    if not follow:
        text = "".join(_entry(entry) for entry in result["entries"])
        line.answer(result, lambda: text or "nothing was changed since\n", styled=True)
        return
    after = words.get("after") or 0
    while True:
        for entry in result["entries"]:
            line.io.out(as_json(entry) if line.json else _entry(entry))
            after = entry["number"]
        result = line.call("audit.list", {"after": after, "wait": _WAIT_S, "limit": 1000})


def _verify(line: "Line", head: "str | None") -> None:
    result = line.call("audit.verify", {"head": head})
    line.answer(result, lambda: _verdict(result))


def _verdict(result: "dict[str, Any]") -> str:
    found = f"{result['compared']} of them compared with the chain, none changed"
    if not result["compared"]:
        found = "and no chain in this home to compare them with: it starts now"
    kept = "; it holds what was kept" if result["kept"] else ""
    return (
        f"{result['entries']} entries, {found}{kept}\n"
        f"keep this elsewhere, and compare later with --head: {result['head']}\n"
    )


def _entry(entry: "dict[str, Any]") -> str:
    words = (entry["number"], entry["at"], entry["who"], entry["operation"], " ".join(entry["items"]))
    return one_line("  ".join(map(str, words))) + "\n"


VERBS = {
    "audit": Verb(
        audit,
        "audit.list",
        extra={"verify": "Flag", "follow": "Flag", "head": "Text"},
        notes={
            "after": "start after this number",
            "verify": "compare all entries with the chain that was made of them",
            "follow": "go on with what is changed from now on",
            "head": "compare with this too, which was kept elsewhere, as NUMBER:HASH",
        },
    ),
}
