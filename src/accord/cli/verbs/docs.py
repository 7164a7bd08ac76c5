"""doc read, doc write, doc history, doc restore, doc list, doc rm."""

from accord import errors
from accord.cli import texts
from accord.cli.show import table
from accord.cli.words import DASH, Verb
from accord.services.documents import MAX_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def read(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("doc.read", words)
    line.answer(result, lambda: str(result["text"]), styled=not line.io.is_terminal(1))  # a file gets every byte of it


def write(line: "Line", words: "dict[str, Any]") -> None:
    is_elsewhere = "text" in words or words.get("file", "-") != "-"
    text = texts.take(line, words, "text", "file", MAX_BYTES, "A document")
    try:
        result = line.call("doc.write", {**words, "text": text})
    except errors.Conflict as conflict:
        if not is_elsewhere:
            _keep(line, conflict, text)
        raise
    line.answer(result, lambda: f"{result['name']} is at revision {result['revision']}\n")


def _keep(line: "Line", conflict: "errors.Conflict", text: str) -> None:
    """What came through a pipe is nowhere else: a program gets it back, a person finds it in a private file."""
    if line.json:
        conflict.details["mine"] = text
        return
    import tempfile

    fd, path = tempfile.mkstemp(prefix="accord-", suffix=".txt")
    with open(fd, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    conflict.details["path"] = path
    name, revision = conflict.details["name"], conflict.details["revision"]
    theirs = f"theirs is shown by: accord doc read {name} --revision {revision}" if revision else "theirs is removed"
    conflict.args = (f"{conflict} Your text is kept in {path}; {theirs}",)


def history(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("doc.history", words)
    rows = [
        (one["revision"], one["at"], one["by"], "removed" if one["deleted"] else f"{one['size']} bytes")
        for one in result["versions"]
    ]
    line.answer(result, lambda: table(line, ("revision", "when", "by", "what"), rows), styled=True)


def restore(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("doc.restore", words)
    line.answer(result, lambda: f"{result['name']} is at revision {result['revision']}\n")


def show(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("doc.list", words)
    rows = [
        (one["name"], one["revision"], one["size"], one["at"], one["by"] or one["problem"])
        for one in result["documents"]
    ]
    head = ("document", "revision", "bytes", "when", "by")
    line.answer(result, lambda: table(line, head, rows) if rows else "no documents\n", styled=True)


def rm(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("doc.rm", words)
    again = "; accord doc restore brings it back" if line.context.settings["backup_count"] else ""
    line.answer(result, lambda: f"{result['name']} is removed{again}\n")


VERBS = {
    "doc read": Verb(read, "doc.read", positional=("name",)),
    "doc write": Verb(
        write,
        "doc.write",
        positional=("name", "stdin"),
        extra={"file": "Path", "stdin": DASH},
        notes={"file": "a file with the text; the word - alone reads standard input"},
        usage="NAME (--text TEXT | --file PATH | -) [--base REVISION] [OPTION...]",
    ),
    "doc history": Verb(history, "doc.history", positional=("name",)),
    "doc restore": Verb(restore, "doc.restore", positional=("name", "revision")),
    "doc list": Verb(show, "doc.list", positional=("prefix",)),
    "doc rm": Verb(rm, "doc.rm", positional=("name",)),
}
