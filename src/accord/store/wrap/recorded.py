"""A store that writes down what is asked of it and what it answers, for `accord.testing.histories` to judge.

Each read and commit leaves two lines of JSON in a file: the call, before it is made, and the return, after it.
Several stores, in whatever processes, may write into one file. A process that dies leaves a call without
a return, whose outcome nobody knows. Instants are `time.monotonic_ns`, which processes of a machine share.
"""

import errno
import os
import time
from itertools import count

from accord import errors, jsontext
from accord.store.contract import LOCK_WAIT_S, Append, CollectionIs, Conflict, Delete, Moved, Number
from accord.store.local import folder
from accord.store.wrap.around import AroundLedger, AroundSnapshot, AroundStore, inner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from accord.store.contract import Check, Committed, Head, Item, Template, Write
    from accord.store.protocols import Batch, Ledger, Snapshot, Store
    from accord.store.wrap.around import Lockable

    T = TypeVar("T")

OK = "ok"
CONFLICT = "conflict"
MOVED = "moved"
UNDONE = "undone"  # what a batch did before it was given up


def recorded(store: "Store", path: str, who: str) -> "Store":
    """`store`, with all that `who` does in it appended to the file at `path`."""
    log = _Log(path, who)
    return _RecordedLockable(store, log) if hasattr(store, "exclusive") else _Recorded(store, log)


class _Log:
    counts_at_once = True

    def __init__(self, path: str, who: str) -> None:
        self._fd = folder.open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._who = who
        self._run = os.urandom(6).hex()  # several stores may record under one name
        self._numbers = count(1)

    def call(self, what: str, called: int, **facts: object) -> str:
        """Write down that something is asked for; the name by which its return will be known."""
        id = f"{self._run}.{next(self._numbers)}"
        self._write({"id": id, "who": self._who, "call": what, "called": called, **facts})
        return id

    def answer(self, id: str, outcome: str, **facts: object) -> None:
        self._write({"id": id, "outcome": outcome, "returned": time.monotonic_ns(), **facts})

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _write(self, record: dict[str, object]) -> None:
        if self._fd < 0:
            return  # the store is closed too, and refuses whatever is asked
        # The line's end comes first: what follows half a line, of a process that was killed, stays readable.
        line = f"\n{jsontext.dumps(record)}".encode()
        if os.write(self._fd, line) != len(line):
            raise OSError(errno.ENOSPC, "half a record was written")


class _BatchLog:
    """Keeps the answers back: what is done in a batch has happened when its block is left, or never."""

    counts_at_once = False

    def __init__(self, log: _Log) -> None:
        self.call = log.call
        self._log = log
        self._kept: list[tuple[str, str, dict[str, object]]] = []

    def answer(self, id: str, outcome: str, **facts: object) -> None:
        self._kept.append((id, outcome, facts))

    def settle(self, verdict: str) -> None:
        for id, outcome, facts in self._kept:
            if outcome == OK and verdict != OK:
                self._log.answer(id, verdict)
            else:
                self._log.answer(id, outcome, **facts)


class _Recorder(AroundLedger):
    """What is written down of a store and of a batch alike."""

    def __init__(self, ledger: "Ledger", log: "_Log | _BatchLog") -> None:
        super().__init__(ledger)
        self._log = log

    def snapshot(self) -> "_Snapshot":
        called = time.monotonic_ns()
        return _Snapshot(self._ledger.snapshot(), self._log, called)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        inner = inner_of(snapshot)
        id = self._log.call(
            "commit",
            time.monotonic_ns(),
            checks=[_check_facts(check) for check in checks],
            writes=[_write_facts(write) for write in writes],
        )
        done = _answered(self._log, id, lambda: self._ledger.commit(checks, writes, inner, timeout_s))
        self._log.answer(id, OK, revision=done.revision, numbers=list(done.numbers))
        return done


class _Recorded(_Recorder, AroundStore):
    _log: _Log

    def close(self) -> None:
        super().close()
        self._log.close()


class _RecordedLockable(_Recorded):
    _ledger: "Lockable"

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "_Batch":
        return _Batch(self._ledger.exclusive(timeout_s), _BatchLog(self._log))


class _Batch(_Recorder):
    _ledger: "Batch"
    _log: _BatchLog

    def __enter__(self) -> "_Batch":
        self._ledger.__enter__()
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        try:
            self._ledger.__exit__(kind, *exc)
        except BaseException as error:
            self._log.settle(_outcome(error))
            raise
        self._log.settle(OK if kind is None else UNDONE)


class _Snapshot(AroundSnapshot):
    def __init__(self, inner: "Snapshot", log: "_Log | _BatchLog", called: int) -> None:
        super().__init__(inner)
        self._log = log
        self._called = called
        self._known = inner.epoch, inner.revision  # which fixes its view before the moment that is noted
        self._taken = time.monotonic_ns() if log.counts_at_once else None

    def get(self, collection: str, id: str) -> "Item | None":
        call = self._call("get", collection, item=_text(id))
        item = _answered(self._log, call, lambda: self.inner.get(collection, id))
        self._log.answer(call, OK, items=[] if item is None else [_item_facts(item)])
        return item

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        call = self._call("list", collection, after=after, limit=limit, reverse=reverse)
        items = _answered(self._log, call, lambda: self.inner.list(collection, after, limit, reverse))
        self._log.answer(call, OK, items=[_item_facts(item) for item in items])
        return items

    def head(self, collection: str) -> "Head":
        call = self._call("head", collection)
        head = _answered(self._log, call, lambda: self.inner.head(collection))
        self._log.answer(call, OK, revision=head.revision, last=head.last)
        return head

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        return self.inner.collections(prefix, after, limit)

    def _call(self, what: str, collection: str, **facts: object) -> str:
        """A read tells of the moment when its snapshot was taken; in a batch, of one before the block is left."""
        epoch, revision = self._known
        place = {"collection": _text(collection), "epoch": epoch, "snapshot": revision, "taken": self._taken}
        return self._log.call(what, self._called, **place, **facts)


def _answered(log: "_Log | _BatchLog", id: str, operation: "Callable[[], T]") -> "T":
    """The operation's answer, which the caller writes down; an error is written down here."""
    try:
        return operation()
    except BaseException as error:
        log.answer(id, _outcome(error))
        raise


def _outcome(error: BaseException) -> str:
    if isinstance(error, Conflict):
        return CONFLICT
    if isinstance(error, Moved):
        return MOVED
    return error.code if isinstance(error, errors.AccordError) else type(error).__name__


def _check_facts(check: "Check") -> list[object]:
    if isinstance(check, CollectionIs):
        return [_text(check.collection), None, check.revision]
    return [_text(check.collection), _text(check.id), check.revision]


def _write_facts(write: "Write") -> list[object]:
    collection = _text(write.collection)
    if isinstance(write, Append):
        return ["append", collection, _value_facts(write.value)]
    id = write.id.append if isinstance(write.id, Number) else _text(write.id)
    if isinstance(write, Delete):
        return ["delete", collection, id]
    return ["put", collection, id, _value_facts(write.value)]


def _text(key: str) -> str:
    """Half a character, which a key may hold that is going to be refused, as its escape."""
    return key.encode(errors="backslashreplace").decode()


def _value_facts(value: "bytes | Template") -> object:
    """Bytes as the text of their Latin-1 letters; a template as its pieces, with a number for each append."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [piece.append if isinstance(piece, Number) else piece.decode("latin-1") for piece in value]


def _item_facts(item: "Item") -> list[object]:
    return [item.id, item.value.decode("latin-1"), item.revision]
