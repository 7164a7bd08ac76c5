"""The chain of hashes over the entries of the audit, as a file of the home that is made longer after the commits.

HOME/audit/EPOCH.chain  a line for each entry: the hash of the line before it and the entry

Whoever comes first goes on from where it ends. It is not flushed; what a power cut takes of it is made again.
"""

import fcntl
import os
import time
from _blake2 import blake2b

from accord import errors
from accord.services.audited import AUDIT
from accord.store.contract import MAX_PAGE, number_id
from accord.store.local import folder
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.store.contract import Item
    from accord.store.protocols import Store
    from accord.store.transaction import Transaction

DIGITS = 64  # of a hash
FIRST = b"0" * DIGITS  # what comes before the first
PATIENCE_S = 10.0  # of one who wants to see the end of it, with those who make it longer
OFTEN_S = 0.05  # it is not made longer more often than that

_LOOK_S = 0.01
_LINE = DIGITS + 1


class Keeper:
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


def extend(home: str, store: "Store", wait_s: float = 0.0, upto: int = 0) -> str:
    """Make the chain as long as the audit; where it ends, as NUMBER:HASH. Whoever is at it already does it for all.

    Nothing is witnessed that a power cut could take back: with `upto` no more than to that entry, known to be durable.
    """
    if not upto:
        store.sync()
    with Chain(home, epoch_of(store), wait_s) as chain:
        last = chain.last()
        for item in entries(store, chain.length):
            if int(item.id) != chain.length + 1 or (upto and chain.length >= upto):
                break  # one is missing, which `verify` says, or that was all
            last = hashed(last, item.value)
            chain.add(last)
        return f"{chain.length}:{last.decode()}"


def entries(store: "Store", after: int) -> "Iterator[Item]":
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


def epoch_of(store: "Store") -> str:
    with store.snapshot() as snapshot:
        return snapshot.epoch


def hashed(before: bytes, entry: bytes) -> bytes:
    return blake2b(before + entry, digest_size=DIGITS // 2).hexdigest().encode()


def carry_on(home: str, before: str, epoch: str) -> None:
    """What witnessed the audit in the epoch before witnesses it in this one: its entries were copied."""
    if not os.path.exists(f"{home}/audit/{before}.chain"):
        return
    with Chain(home, before, PATIENCE_S) as old, Chain(home, epoch, PATIENCE_S) as new:
        if new.lines() != old.lines()[: new.length]:
            new.clear()
        for line in old.lines()[new.length :]:
            new.add(line)


class Chain:
    """The file, for one process at a time."""

    def __init__(self, home: str, epoch: str, wait_s: float) -> None:
        self._wait_s = wait_s
        self.path = f"{home}/audit/{epoch}.chain"
        self.length = 0  # lines, with those that are not written yet
        self._new: list[bytes] = []

    def __enter__(self) -> "Chain":
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
        return self._line(self.length) if self.length else FIRST

    def lines(self) -> list[bytes]:
        data = os.pread(self._fd, self.length * _LINE, 0)
        return [data[at : at + DIGITS] for at in range(0, len(data), _LINE)]

    def add(self, line: bytes) -> None:
        self._new.append(line + b"\n")
        self.length += 1

    def clear(self) -> None:
        os.ftruncate(self._fd, 0)
        self.length = 0

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
        return os.pread(self._fd, DIGITS, (number - 1) * _LINE)
