"""What was in files before accord changed them, so that it can be there again: in the home, private.

    installed/NAME-SCOPE-HASH.json    {"name", "scope", "folder", "files": {path: {"before", "mode", "wrote"}}, "folders"}

`before` is the whole file as it was, in base64, or null where there was none; `wrote` is a hash of what accord made of it.
It is written before the files are: whatever happens meanwhile, it tells what to do.
"""

import base64
import contextlib
import hashlib
import json
import os

from accord.store.local import folder
from accord.store.local.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from accord.home import Home

FOLDER = "installed"


class File:
    """One file, as it was and as it became."""

    def __init__(self, before: bytes | None, wrote: str) -> None:
        self.before = before
        self.wrote = wrote


class Record:
    def __init__(self, home: "Home", name: str, scope: str, place: str) -> None:
        short = hashlib.sha256(os.fsencode(place)).hexdigest()[:12]
        self._head = {"name": name, "scope": scope, "folder": place}
        self.path = f"{home.path}/{FOLDER}/{name}-{scope}-{short}.json"
        self.files: dict[str, File] = {}
        self.folders: list[str] = []  # that were made, the upper ones first
        self._raw = self._read()

    def _read(self) -> bytes | None:
        try:
            with open(self.path, "rb") as file:
                raw = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise folder.refusal(error, self.path) from None
        found: dict[str, Any] = json.loads(raw)
        self.folders = found["folders"]
        for path, one in found["files"].items():
            before = None if one["before"] is None else base64.b64decode(one["before"])
            self.files[path] = File(before, one["wrote"])
        return raw

    def write(self) -> None:
        files = {
            path: {"before": None if one.before is None else base64.b64encode(one.before).decode(), "wrote": one.wrote}
            for path, one in self.files.items()
        }
        self._write(json.dumps({**self._head, "files": files, "folders": self.folders}, indent=1).encode())

    def forget(self) -> None:
        folder.unlink_if_there(self.path)

    def undo(self) -> None:
        """As it was when it was read."""
        if self._raw is None:
            self.forget()
        else:
            self._write(self._raw)

    def _write(self, data: bytes) -> None:
        folder.make_folder(os.path.dirname(self.path), secret=True)
        mine = f"{self.path}.{os.urandom(4).hex()}"
        try:
            fd = folder.open_private(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, secret=True)
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            os.rename(mine, self.path)
            folder.flush_folder(os.path.dirname(self.path))
        except OSError as error:
            raise folder.refusal(error, mine) from None


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def alone(home: "Home", timeout_s: float) -> "Iterator[None]":
    """For the length of an install: two at once would remember each other's half-made files."""
    place = f"{home.path}/{FOLDER}"
    folder.make_folder(place, secret=True)
    gate = Gate(f"{place}/.lock")
    try:
        gate.acquire(timeout_s)
        yield
        gate.release()
    finally:
        gate.close()
