"""doc import, doc export."""

import os

from accord import errors
from accord.cli import tree
from accord.cli.words import FLAG, Verb
from accord.services.documents import MAX_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

# What is wrong with one document, and says nothing of the others.
_OF_ONE = (
    OSError,
    tree.Refused,
    errors.InvalidName,
    errors.InvalidEncoding,
    errors.TooLarge,
    errors.StoreDamaged,
    errors.DocumentNotFound,
)


def bring_in(line: "Line", words: "dict[str, Any]") -> int:
    if not all(words.get("path") or [""]):
        raise line.words.wrong("PATH is missing")
    done = _Done(line)
    for path in words["path"]:
        for file in tree.find(path, _place(line, path), done.fail):
            try:
                name = words.get("prefix", "") + file.relative
                written = line.call("doc.write", {"name": name, "text": file.read(MAX_BYTES)})
                done.add(name, written["revision"], file.path)
            except _OF_ONE as error:
                done.fail(file.path, _reason(error))
    return done.tell()


def take_out(line: "Line", words: "dict[str, Any]") -> int:
    if not words.get("folder"):
        raise line.words.wrong("FOLDER is missing")
    folder = _place(line, words["folder"])
    done = _Done(line)
    for name in [one["name"] for one in line.call("doc.list", {"prefix": words.get("prefix", "")})["documents"]]:
        path = os.path.join(words["folder"], name)
        try:
            found = line.call("doc.read", {"name": name})
            tree.put(folder, name, found["text"], "force" in words)
            done.add(name, found["revision"], path)
        except _OF_ONE as error:
            done.fail(path, _reason(error))
    return done.tell()


class _Done:
    """What came of each: one that fails keeps nobody from the others."""

    def __init__(self, line: "Line") -> None:
        self._line = line
        self._done: list[dict[str, Any]] = []
        self._failed: list[dict[str, str]] = []

    def add(self, name: str, revision: int, path: str) -> None:
        self._done.append({"name": name, "revision": revision, "path": path})

    def fail(self, path: str, reason: str) -> None:
        path = path.encode("utf-8", "backslashreplace").decode()  # it may be no text
        self._failed.append({"path": path, "reason": reason})

    def tell(self) -> int:
        """Say it all; the exit code."""
        from accord.cli.run import safe

        lines = [f"{one['name']}  revision {one['revision']}  {one['path']}\n" for one in self._done]
        self._line.answer({"documents": self._done, "failed": self._failed}, lambda: "".join(lines) or "nothing done\n")
        if not self._line.json:
            self._line.io.err("".join(safe(f"accord: {one['path']}: {one['reason']}\n") for one in self._failed))
        return 1 if self._failed else 0


def _place(line: "Line", path: str) -> str:
    """Where that is, whatever the working directory is."""
    if not line.io.cwd and not os.path.isabs(path):
        raise errors.FileUnreadable(path=path, reason="the working directory is gone")
    return os.path.join(line.io.cwd, path)


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


VERBS = {
    "doc import": Verb(
        bring_in,
        positional=("path",),
        extra={"path": "Paths", "prefix": "Text"},
        notes={"path": "a file, or a folder with files; what is hidden in it is left out, and links are refused"},
        usage="PATH... [--prefix TEXT]",
        help="Make documents of files of text; what cannot be one is named, and the others are taken all the same.",
    ),
    "doc export": Verb(
        take_out,
        positional=("folder",),
        extra={"folder": "Folder", "prefix": "Text", "force": FLAG},
        notes={"folder": "where the files are to be", "force": "replace files with another text"},
        usage="DIR [--prefix TEXT] [--force]",
        help="Make files of documents; a file with another text is left alone, and named.",
    ),
}
