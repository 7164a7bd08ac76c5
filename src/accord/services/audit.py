"""The audit: who changed what and when, and a chain of hashes by which it is known that nobody changed that.

audit                   entries, one for each commit, numbered (see `audited.py`)
HOME/audit/EPOCH.chain  a line for each entry: the hash of the line before it and the entry

The chain is made after the commits, by whoever comes first: it goes on from where it ends. It is not flushed; what a
power cut takes of it is made again.
"""

import fcntl
import os
import time
from _blake2 import blake2b

from accord import errors, jsontext
from accord.services.audited import AUDIT
from accord.store.contract import MAX_PAGE, number_id
from accord.store.local import folder
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from accord.store.contract import Item
    from accord.store.protocols import Store
    from accord.store.transaction import Transaction

OFTEN_S = 0.05  # a chain is not made longer more often than that

_PATIENCE_S = 10.0  # of one who compares, with those who make it longer
_LOOK_S = 0.01
_DIGITS = 64
_LINE = _DIGITS + 1
_FIRST = b"0" * _DIGITS  # what comes before the first


class ChainKeeper:
    """Makes the chain longer after changes, now and then."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._next = 0.0
        self._behind = False

    def changed(self, store: "Store", number: int) -> None:
        """An entry was made, and is durable with all before it: the chain can be made as long without a flush."""
        self._behind = time.monotonic() < self._next
        if not self._behind and store.durability != "none":
            self._extend(store, number)
            self._next = time.monotonic() + OFTEN_S

    def catch_up(self, store: "Store") -> None:
        if self._behind and store.durability != "none":
            self._extend(store, 0)
            self._behind = False

    def _extend(self, store: "Store", upto: int) -> None:
        """It is no failure of what was done that it cannot be witnessed now; the next one goes on from there."""
        try:
            extend(self._home, store, upto=upto)
        except (OSError, errors.AccordError):
            pass


def entries(tx: "Transaction", after: "int | None", limit: int) -> "list[dict[str, Any]]":
    """The entries that follow a number, or the last ones; oldest first."""
    if after is None:
        page = list(reversed(tx.list(AUDIT, limit=limit, reverse=True)))
    else:
        page = list(tx.list(AUDIT, number_id(after) if after else "", limit))
    return [{"number": int(item.id), **jsontext.loads_own(item.value)} for item in page]  # type: ignore[dict-item]


def extend(home: str, store: "Store", wait_s: float = 0.0, upto: int = 0) -> str:
    """Make the chain as long as the audit; where it ends, as NUMBER:HASH. Whoever is at it already does it for all.

    Nothing is witnessed that a power cut could take back: with `upto` no more than to that entry, known to be durable.
    """
    if not upto:
        store.sync()
    with _Chain(home, _epoch(store), wait_s) as chain:
        last = chain.last()
        for item in _entries(store, chain.length):
            if int(item.id) != chain.length + 1 or (upto and chain.length >= upto):
                break  # one is missing, which `verify` says, or that was all
            last = _hash(last, item.value)
            chain.add(last)
        return f"{chain.length}:{last.decode()}"


def verify(home: str, store: "Store", head: str = "") -> "dict[str, Any]":
    """Compare every entry with the chain, and the chain with a line that somebody kept; then go on with it."""
    with _Chain(home, _epoch(store), _PATIENCE_S) as chain:
        path, lines = chain.path, chain.lines()
    _compare(store, lines, path)
    kept = _kept(head, lines, path)
    end = extend(home, store, _PATIENCE_S)
    return {"entries": int(end.partition(":")[0]), "compared": len(lines), "head": end, "kept": kept}


def _compare(store: "Store", lines: list[bytes], path: str) -> None:
    given = transact(store, lambda tx: tx.head(AUDIT).last)
    last, number = _FIRST, 0
    for item in _entries(store, 0):
        number += 1
        if int(item.id) != number:
            raise errors.AuditBroken(reason=f"entry {number} is missing", path=path)
        last = _hash(last, item.value)
        if number <= len(lines) and last != lines[number - 1]:
            raise errors.AuditBroken(reason=f"entry {number} was changed, or the chain was", path=path)
    if number < max(len(lines), given):
        raise errors.AuditBroken(reason=f"entry {number + 1} and what follows are missing", path=path)


def _kept(head: str, lines: list[bytes], path: str) -> bool:
    """Whether a line that was kept elsewhere is one of the chain's."""
    if not head:
        return False
    number, _, digits = head.partition(":")
    if not number.isascii() or not number.isdigit() or len(number) > _DIGITS // 4 or len(digits) != _DIGITS:
        raise errors.Usage(reason=f"{head[:100]!r} is no head of an audit, as NUMBER:HASH", see="audit.verify")
    at = int(number)
    if at > len(lines) or (at and lines[at - 1] != digits.encode()) or (not at and digits.encode() != _FIRST):
        raise errors.AuditBroken(reason=f"entry {at} is not the one that was kept", path=path)
    return True


def _entries(store: "Store", after: int) -> "Iterator[Item]":
    """They only become more, so that each page may be of another moment."""
    while page := transact(store, lambda tx, after=after: _page(tx, after)):  # type: ignore[misc]
        yield from page
        after = int(page[-1].id)
        if len(page) < MAX_PAGE:
            break


def _page(tx: "Transaction", after: int) -> "Sequence[Item]":
    if tx.head(AUDIT).last == after + 1:  # one is new, as after most commands: getting it is cheaper than a page
        newest = tx.get(AUDIT, number_id(after + 1))
        return [newest] if newest else []
    return tx.list(AUDIT, number_id(after) if after else "", MAX_PAGE)


def _epoch(store: "Store") -> str:
    with store.snapshot() as snapshot:
        return snapshot.epoch


def _hash(before: bytes, entry: bytes) -> bytes:
    return blake2b(before + entry, digest_size=_DIGITS // 2).hexdigest().encode()


class _Chain:
    """The file, for one process at a time."""

    def __init__(self, home: str, epoch: str, wait_s: float) -> None:
        self._wait_s = wait_s
        self.path = f"{home}/audit/{epoch}.chain"
        self.length = 0  # lines, with those that are not written yet
        self._new: list[bytes] = []

    def __enter__(self) -> "_Chain":
        folder.make_folder(os.path.dirname(self.path))
        self._fd = folder.open_private(self.path)
        try:
            self._lock()
            self._mend()
        except BaseException:
            os.close(self._fd)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            if self._new:
                os.pwrite(self._fd, b"".join(self._new), (self.length - len(self._new)) * _LINE)
        finally:
            os.close(self._fd)

    def last(self) -> bytes:
        return self._line(self.length) if self.length else _FIRST

    def lines(self) -> list[bytes]:
        data = os.pread(self._fd, self.length * _LINE, 0)
        return [data[at : at + _DIGITS] for at in range(0, len(data), _LINE)]

    def add(self, line: bytes) -> None:
        self._new.append(line + b"\n")
        self.length += 1

    def _lock(self) -> None:
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = "another process"
                    raise errors.LockTimeout(timeout_seconds=self._wait_s, path=self.path, holder=holder) from None
                time.sleep(_LOOK_S)

    def _mend(self) -> None:
        """Drop what a process that was killed, or a power cut, left half-written at the end."""
        self.length = os.fstat(self._fd).st_size // _LINE
        while self.length and self._line(self.length).strip(b"0123456789abcdef"):
            self.length -= 1
        os.ftruncate(self._fd, self.length * _LINE)

    def _line(self, number: int) -> bytes:
        return os.pread(self._fd, _DIGITS, (number - 1) * _LINE)
