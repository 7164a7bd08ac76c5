"""doc edit."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile

from accord import errors
from accord.cli.words import Verb
from accord.model.merge import has_marks, merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def edit(line: "Line", words: "dict[str, Any]") -> None:
    if "name" not in words:
        raise line.words.wrong("name is missing")
    command = _editor(line)
    text, base = _read(line, words["name"])
    editor = _Editor(command, words["name"], text)
    try:
        edit = _Edit(line, words, editor)
        found = edit.run(text, base)
    except (Exception, KeyboardInterrupt) as failure:
        if editor.holds_nothing_new():
            editor.remove()
            raise
        reason = str(failure) if isinstance(failure, errors.AccordError) else f"{failure!r}."
        raise errors.NotWritten(name=words["name"], path=editor.path, reason=reason, base=edit.base) from failure
    editor.remove()
    said = f"is at revision {found['revision']}" if found["changed"] else "was not changed"
    line.answer(found, lambda: f"{found['name']} {said}\n")


class _Edit:
    """A document between reading and writing; it may move on any number of times meanwhile."""

    def __init__(self, line: "Line", words: "dict[str, Any]", editor: "_Editor") -> None:
        self._line = line
        self._words = words if "ttl" in words else {**words, "keep_ttl": True}
        self._name = words["name"]
        self._editor = editor
        self.base = 0  # the revision that the text is made from

    def run(self, text: str, base: int) -> "dict[str, Any]":
        """Have the text edited, and write it; what came of it."""
        self.base = base
        mine = self._editor.edited()
        if mine == text:
            return {"name": self._name, "revision": base, "changed": False}
        while True:
            try:
                written = self._line.call("doc.write", {**self._words, "text": mine, "base": base})
                return {**written, "changed": True}
            except errors.Conflict as conflict:
                self.base = _theirs(conflict)[1]
                mine = self._merged(text, mine, conflict)
                text, base = _theirs(conflict)

    def _merged(self, text: str, mine: str, conflict: errors.Conflict) -> str:
        theirs, revision = _theirs(conflict)
        now = f"revision {revision}" if revision else "removed"
        names = ("yours", f"revision {conflict.details['base']}", now)
        merged = merge(text, mine, theirs, names)
        if not merged.conflicts:
            self._line.io.err(f"accord: {self._name} is at {now} by now; both changes are in it\n")
            return merged.text
        self._line.io.err(f"accord: {self._name} is at {now} by now; where both changed it, choose\n")
        self._editor.put(merged.text)
        before, chosen = merged.text, self._editor.edited()
        while has_marks(chosen, names):
            if chosen == before or not self._line.io.is_terminal(0):
                raise self._editor.failed("both texts are still in it, between marks")
            before, chosen = chosen, self._editor.edited()
        return chosen


class _Editor:
    """A program, and a file that only its user can read. The file is there until it is told to go."""

    def __init__(self, command: list[str], name: str, text: str) -> None:
        self._command = command
        self._first = text
        ending = os.path.splitext(name)[1]  # by which editors know what it is
        try:
            self._folder = tempfile.mkdtemp(prefix="accord-")
            self.path = f"{self._folder}/text{ending if ending.isascii() and len(ending) < 20 else ''}"
            self.put(text)
        except OSError as error:
            raise self.failed(f"there is no room for a file ({error.strerror})") from None

    def put(self, text: str) -> None:
        """Make this the text of the file, or leave it as it is."""
        with open(f"{self.path}.new", "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(f"{self.path}.new", self.path)

    def edited(self) -> str:
        """The text, after the program has ended."""
        # An interrupt is the editor's; a handler, since what is ignored here would be ignored there.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            code = subprocess.run([*self._command, self.path], check=False).returncode
        except OSError as error:
            raise self.failed(error.strerror or str(error)) from None
        finally:
            signal.signal(signal.SIGINT, before)
        if code:
            raise self.failed(f"it ended with {code}")
        return self._text()

    def failed(self, reason: str) -> errors.EditorFailed:
        return errors.EditorFailed(command=self._command[0], reason=reason)

    def holds_nothing_new(self) -> bool:
        try:
            return self._text() == self._first
        except errors.AccordError:
            return not os.path.exists(self.path)

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _text(self) -> str:
        try:
            with open(self.path, "rb") as file:
                return file.read().decode()
        except UnicodeDecodeError as error:
            raise errors.InvalidEncoding(what="The text", at=error.start) from None
        except OSError as error:
            raise errors.FileUnreadable(path=self.path, reason=error.strerror) from None


def _editor(line: "Line") -> list[str]:
    """The user's own; without one, vi, which nobody can use but at a terminal."""
    env = line.io.env
    try:
        command = shlex.split(env.get("VISUAL") or env.get("EDITOR") or "")
    except ValueError as error:
        raise line.words.wrong(f"$VISUAL or $EDITOR cannot be read ({error})") from None
    if not command and not (line.io.is_terminal(0) and line.io.is_terminal(1)):
        raise line.words.wrong("There is no terminal for an editor; name one that needs none in $EDITOR")
    return command or ["vi"]


def _read(line: "Line", name: str) -> "tuple[str, int]":
    """The document and its revision; nothing, of revision 0, where there is none yet."""
    try:
        found = line.call("doc.read", {"name": name})
    except errors.DocumentNotFound:
        return "", 0
    return found["text"], found["revision"]


def _theirs(conflict: errors.Conflict) -> "tuple[str, int]":
    text: Any = conflict.details["text"]
    revision: Any = conflict.details["revision"]
    return text or "", revision


VERBS = {
    "doc edit": Verb(
        edit,
        positional=("name",),
        extra={"name": "Name", "ttl": "Seconds", "fence": "Fence"},
        usage="NAME [--ttl SECONDS] [--fence FENCE]",
        help="Change a document in $VISUAL or $EDITOR; what others wrote meanwhile is merged.",
    ),
}
