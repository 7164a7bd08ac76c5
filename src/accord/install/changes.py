"""Edits of several files, all or none: planned first, remembered, then written one after another."""

import difflib
import errno
import glob
import os
import stat

from accord import errors
from accord.install.edits import Foreign, Unusable
from accord.install.record import File, hash_of
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.install.edits import Edit
    from accord.install.record import Record

CREATED, CHANGED, UNCHANGED, REMOVED, RESTORED, KEPT = (
    "created", "changed", "unchanged", "removed", "restored", "kept",
)  # fmt: skip


class Change:
    """One file: what is there, and what is to be."""

    def __init__(self, path: str, old: bytes | None, new: bytes | None, did: str = "", secret: bool = False) -> None:
        self.path = path
        self.old = old
        self.new = new
        self.mode = _mode(path) if old is not None else 0o600 if secret else None  # None: as the umask has it
        self.did = did or (UNCHANGED if old == new else CREATED if old is None else REMOVED if new is None else CHANGED)

    def to_json(self) -> "dict[str, Any]":
        return {"path": self.path, "done": self.did}

    def diff(self) -> str:
        """What changes, as `diff -u` shows it."""
        old, new = ((data or b"").decode("utf-8", "replace").splitlines(keepends=True) for data in (self.old, self.new))
        before, after = (self.path if data is not None else "/dev/null" for data in (self.old, self.new))
        lines = difflib.unified_diff(old, new, before, after)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def plan_install(edits: "list[Edit]", record: "Record", secret: bool) -> list[Change]:
    """What installing changes; the record then says so too."""
    changes = []
    files: dict[str, File] = {}
    for edit in edits:
        old = read(edit.path)
        new = _put(edit, old)
        known = record.files.get(edit.path)
        before = _before(edit, old, known)
        if edit.is_whole and before is not None and old != new:
            if known:
                raise errors.SettingsTaken(path=edit.path, reason="was changed by hand")
            before = None  # it has accord's mark, and what it was before is not known any more
        if new != old:
            _check_writable(edit.path)
        files[edit.path] = File(before, hash_of(new))
        changes.append(Change(edit.path, old, new, secret=secret))
    changes += [_restored(path, one) for path, one in record.files.items() if path not in files]
    record.files = files
    return changes


def plan_uninstall(edits: "list[Edit]", record: "Record") -> list[Change]:
    """What uninstalling changes."""
    changes = []
    for edit in edits:
        old = read(edit.path)
        new = _before(edit, old, record.files.get(edit.path))
        if new != old:
            _check_writable(edit.path)
        was = record.files.get(edit.path)
        did = RESTORED if was and old != new and new is not None and new == was.before else ""
        if edit.is_whole and new is not None and new == old:
            did = KEPT
        changes.append(Change(edit.path, old, new, did))
    known = {edit.path for edit in edits}
    return changes + [_restored(path, one) for path, one in record.files.items() if path not in known]


def make(changes: list[Change], record: "Record", is_install: bool) -> None:
    """Write what was planned. When one file fails, those before it become again what they were."""
    done: list[Change] = []
    made: list[str] = []
    _sweep(changes)
    try:
        if is_install:
            record.folders += [path for path in _missing(changes) if path not in record.folders]
            record.write()
        for change in changes:
            if change.new != change.old:
                _make_folders(os.path.dirname(change.path), made)
                done.append(change)
                _write(change)
        if not is_install:
            for path in reversed(record.folders):
                _remove_folder(path)
            record.folders = [path for path in record.folders if os.path.isdir(path)]
            record.forget()
    except BaseException:
        for change in reversed(done):
            _undo(change)
        for path in reversed(made):
            _remove_folder(path)
        try:
            record.undo()
        except errors.AccordError:
            pass  # what it says of the files is found out by comparing
        raise


def read(path: str) -> bytes | None:
    """A file; None where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None


def _put(edit: "Edit", old: bytes | None) -> bytes:
    try:
        return edit.put(_text(old)).encode()
    except Foreign as error:
        raise errors.SettingsTaken(path=edit.path, reason=str(error)) from None
    except Unusable as error:
        raise _unusable(edit.path, str(error)) from None


def _before(edit: "Edit", old: bytes | None, known: File | None) -> bytes | None:
    """The file as it was before accord came to it, or would be if what a person did since had been done without it."""
    if known and old is not None and hash_of(old) == known.wrote:
        return known.before
    try:
        text = edit.drop(_text(old), _text(known.before) if known else None)
    except Unusable as error:
        raise _unusable(edit.path, str(error)) from None
    return None if text is None else text.encode()


def _restored(path: str, known: File) -> Change:
    """A file that is accord's no more; one that was changed since stays."""
    old = read(path)
    if old is None or hash_of(old) != known.wrote:
        return Change(path, old, old, UNCHANGED if old is None else KEPT)
    return Change(path, old, known.before)


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        raise Unusable(f"is not UTF-8, at byte {error.start}") from None


def _check_writable(path: str) -> None:
    """Refuse a file that nobody may write to: a rename would not have noticed. Its owner has a reason."""
    real = os.path.realpath(path)
    try:
        mode = os.stat(real).st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise _unusable(path, "is no file")
    if not mode & 0o222 or not os.access(real, os.W_OK):
        raise _unusable(path, "is read-only")


def _missing(changes: list[Change]) -> list[str]:
    """The folders that must be made, the upper ones first."""
    found: list[str] = []
    for change in changes:
        above = os.path.dirname(change.path)
        new = []
        while change.new is not None and above not in found and not os.path.lexists(above):
            new.append(above)
            above = os.path.dirname(above)
        found += reversed(new)
    return found


def _make_folders(path: str, made: list[str]) -> None:
    if os.path.isdir(path):
        return
    _make_folders(os.path.dirname(path), made)
    try:
        os.mkdir(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    made.append(path)


def _remove_folder(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        pass  # something else is in it by now, or it is gone


def _write(change: Change) -> None:
    """All of it or nothing: whoever reads the file meanwhile reads the old one. What a link leads to is written."""
    real = os.path.realpath(change.path)
    try:
        if read(change.path) != change.old:
            raise _unusable(change.path, "was changed by another program just now")
        if change.new is None:
            os.unlink(real)
        else:
            _replace(real, change.new, change.mode)
        folder.flush_folder(os.path.dirname(real))
    except OSError as error:
        raise _unwritable(change.path, error) from None


def _sweep(changes: list[Change]) -> None:
    """Drop what one that was killed has left beside the files: new ones that never got their names."""
    for change in changes:
        for path in glob.glob(f"{glob.escape(_unnamed(os.path.realpath(change.path)))}*"):
            folder.unlink_if_there(path)


def _unnamed(path: str) -> str:
    """What a new file is called, with something behind it, until it is whole."""
    return f"{os.path.dirname(path)}/.{os.path.basename(path)}.accord-"


def _replace(path: str, data: bytes, mode: int | None) -> None:
    mine = f"{_unnamed(path)}{os.urandom(4).hex()}"
    fd = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else 0o600)
    try:
        with open(fd, "wb") as file:
            _keep_owner(path, fd)
            if mode is not None:
                os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.replace(mine, path)
    except BaseException:
        folder.unlink_if_there(mine)
        raise


def _keep_owner(path: str, fd: int) -> None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(fd, found.st_uid, found.st_gid)


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def _undo(change: Change) -> None:
    """Best effort: what cannot be undone is not what the error is about, and the record still knows it."""
    try:
        real = os.path.realpath(change.path)
        if read(change.path) == change.new:
            if change.old is None:
                os.unlink(real)
            elif change.new is not None or not os.path.lexists(real):
                os.makedirs(os.path.dirname(real), exist_ok=True)
                _replace(real, change.old, change.mode)
    except (OSError, errors.AccordError):
        pass


def _unusable(path: str, reason: str) -> errors.AccordError:
    return errors.SettingsUnusable(path=path, reason=reason)


def _unwritable(path: str, error: OSError) -> errors.AccordError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.StorageFull(path=path)
    return _unusable(path, f"cannot be written: {error.strerror}")
