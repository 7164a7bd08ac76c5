"""What was in files before accord changed them, so that it can be there again: in the home, private.

    installed/NAME-SCOPE-HASH.json    {"name", "scope", "folder", "files": {path: {"before", "wrote"}}}
    installed/folders.json            [the folders that were made]

`before` is the whole file as it was, in base64, or null where there was none; `wrote` is a hash of what accord made
of it. It is written before the files are: whatever happens meanwhile, it tells what to do.
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
        self._path = f"{home.path}/{FOLDER}/{name}-{scope}-{short}.json"
        self._folders_path = f"{home.path}/{FOLDER}/folders.json"
        self._was = {path: _read(path) for path in (self._path, self._folders_path)}
        found = json.loads(self._was[self._path] or '{"files": {}}')
        self.files = {
            path: File(None if one["before"] is None else base64.b64decode(one["before"]), one["wrote"])
            for path, one in found["files"].items()
        }
        # That were made, the upper ones first. One may have come with another install, which this one outlives.
        self.folders: list[str] = json.loads(self._was[self._folders_path] or "[]")

    def write(self) -> None:
        files = {
            path: {"before": None if one.before is None else base64.b64encode(one.before).decode(), "wrote": one.wrote}
            for path, one in self.files.items()
        }
        self._write_folders()
        _write(self._path, json.dumps({**self._head, "files": files}, indent=1).encode())

    def forget(self) -> None:
        self._write_folders()
        _drop(self._path)

    def undo(self) -> None:
        """As it was when it was read."""
        for path, data in self._was.items():
            if data is None:
                _drop(path)
            else:
                _write(path, data)

    def _write_folders(self) -> None:
        if self.folders:
            _write(self._folders_path, json.dumps(self.folders, indent=1).encode())
        else:
            _drop(self._folders_path)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise folder.refusal(error, path) from None


def _write(path: str, data: bytes) -> None:
    mine = f"{path}.{os.urandom(4).hex()}"
    try:
        with open(folder.open_private(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, secret=True), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(mine, path)
        folder.flush_folder(os.path.dirname(path))
    except OSError as error:
        raise folder.refusal(error, mine) from None


def _drop(path: str) -> None:
    try:
        folder.unlink_if_there(path)
    except OSError as error:
        raise folder.refusal(error, path) from None


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
