"""The one way services change anything: `transact(store, work)`."""

import time
from os import urandom

from accord import errors, jsontext
from accord.store.contract import (
    LOCK_WAIT_S,
    MAX_CHECKS,
    MAX_WRITES,
    Append,
    CollectionIs,
    Conflict,
    Delete,
    Head,
    Instant,
    Item,
    ItemIs,
    Moved,
    Number,
    Put,
    check_page,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from accord.store.contract import Check, Committed, Template, Write
    from accord.store.protocols import Batch, Ledger, Snapshot

    T = TypeVar("T")

REQUESTS = "requests"
REQUEST_KEPT_S = 7 * 24 * 3600.0

# One in so many requests looks at this many kept answers, and removes those that are over: two for each that is
# kept, so that they come to twice those of 7 days at most.
_TIDY_EVERY = 16
_TIDY_PAGE = 32

MOST_WRITES = MAX_WRITES - 2  # of one work: what the request was answered, and the audit, take one each

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.1


_RESULT = ',"result":'  # follows what there is to say of a kept answer


class First(Exception):
    """Before a work can go on, something else must be committed: a work of its own."""

    def __init__(self, work: "Callable[[Transaction], object]") -> None:
        self.work = work


class Transaction:
    """What a work reads and writes. Writes are buffered: a work that raises leaves nothing to undo."""

    def __init__(self, ledger: "Ledger", snapshot: "Snapshot") -> None:
        self._ledger = ledger
        self._snapshot = snapshot
        self._items_read: dict[tuple[str, str], int] = {}
        self._heads_read: dict[str, int] = {}
        self._writes: list[Write] = []
        self._buffer: dict[str, dict[str, bytes | Template | None]] = {}
        self._appends = 0
        self.notes: dict[str, Any] = {}  # what a work leaves for another in the same transaction

    def get(self, collection: str, id: str, check: bool = True) -> Item | None:
        """The item; one that this transaction wrote has revision 0. `check=False`: it may change unnoticed."""
        buffered = self._buffer.get(collection)
        if buffered is not None and id in buffered:
            return _buffered_item(id, buffered[id])
        item = self._snapshot.get(collection, id)
        if check:
            self._items_read[collection, id] = 0 if item is None else item.revision
        return item

    def list(
        self, collection: str, after: str = "", limit: int = 100, reverse: bool = False, check: bool = True
    ) -> "Sequence[Item]":
        """A page, with this transaction's own puts and deletes; what it appended has no number yet."""
        check_page(limit)
        if check:
            self.head(collection)
        buffered = self._buffer.get(collection)
        if not buffered:
            return self._snapshot.list(collection, after, limit, reverse)
        from accord.store import pages

        changes = {id: _buffered_item(id, value) for id, value in buffered.items()}
        return pages.merged(lambda *page: self._snapshot.list(collection, *page), changes, after, limit, reverse)

    def head(self, collection: str, check: bool = True) -> Head:
        """The collection's revision and last number, as before this transaction."""
        head = self._snapshot.head(collection)
        if check:
            self._heads_read[collection] = head.revision
        return head

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        """Names of collections. Never checked: check what you read in them."""
        return self._snapshot.collections(prefix, after, limit)

    def put(self, collection: str, id: str | Number, value: "bytes | Template") -> None:
        if isinstance(id, str):
            self._buffer.setdefault(collection, {})[id] = value
        self._writes.append(Put(collection, id, value))

    def delete(self, collection: str, id: str | Number) -> None:
        if isinstance(id, str):
            self._buffer.setdefault(collection, {})[id] = None
        self._writes.append(Delete(collection, id))

    def append(self, collection: str, value: "bytes | Template") -> Number:
        """The number is known after the commit; until then it may be an id, a piece of a value, or a result."""
        self._writes.append(Append(collection, value))
        self._appends += 1
        return Number(self._appends - 1)

    def count(self, collection: str) -> Number:
        """Add one to the collection's last number and store nothing, in two writes; nobody is in the way of another."""
        number = self.append(collection, b"")
        self.delete(collection, number)
        return number

    def expect(self, wanted: "Iterable[tuple[str, str]]") -> None:
        """These (collection, id), "" for a collection's head, will most likely be read; it only saves time."""
        expect: Callable[[Sequence[tuple[str, str]]], None] | None = getattr(self._snapshot, "expect", None)
        if expect is not None:
            expect(tuple(wanted))

    def was_read(self) -> "Sequence[tuple[str, str]]":
        """What was read and checked so far, to be expected by a next try."""
        return (*self._items_read, *((collection, "") for collection in self._heads_read))

    def now(self) -> "Instant":
        now: Callable[[], Instant] = getattr(self._snapshot, "now", self._ledger.now)
        return now()

    @property
    def revision(self) -> str:
        """What it reads is as of: `EPOCH.REVISION`, which somebody may keep."""
        return f"{self._snapshot.epoch}.{self._snapshot.revision}"

    @property
    def has_writes(self) -> bool:
        return bool(self._writes)

    def room_for_deletes(self) -> int:
        """How many items may still be read and deleted, besides what others add to a commit: the answer, the audit."""
        checks = len(self._items_read) + len(self._heads_read)
        return max(0, min(MOST_WRITES - len(self._writes), MAX_CHECKS - 1 - checks))

    def commit(self, timeout_s: float) -> "Committed | None":
        """Commit what was written; None when that is nothing, since the snapshot was consistent by itself."""
        if not self._writes:
            return None
        checks: list[Check] = [ItemIs(*key, revision) for key, revision in self._items_read.items()]
        checks += [CollectionIs(collection, revision) for collection, revision in self._heads_read.items()]
        return self._ledger.commit(checks, self._writes, self._snapshot, timeout_s)


class Request:
    """A caller's own name for one change, so that asking again does not do it again."""

    __slots__ = ("collection", "fingerprint", "id", "key")

    def __init__(self, key: str, params: bytes) -> None:
        from _blake2 import blake2b

        from accord.store import names

        self.key = key
        self.collection, self.id = names.to_key(REQUESTS, key)
        self.fingerprint = blake2b(params, digest_size=16).hexdigest()

    def find(self, tx: Transaction) -> "list[object] | None":
        """The answer given before, in a list of its own since it may be None; None: not asked before."""
        item = tx.get(self.collection, self.id)
        if item is None:
            return None
        record: Any = jsontext.loads(item.value)
        if _is_over(record, tx.now()):
            return None
        if record["params"] != self.fingerprint:
            raise errors.IdReused(key=self.key)
        return [record["result"]]

    def keep(self, tx: Transaction, result: object) -> None:
        now = tx.now()
        if not sum(self.key.encode()) % _TIDY_EVERY:
            self._tidy(tx, now)
        over_at = now.plus(REQUEST_KEPT_S)
        start = (
            f'{{"params":"{self.fingerprint}","expires_at":{time.time() + REQUEST_KEPT_S:.0f},'
            f'"era":"{over_at.era}","over_at":{over_at.seconds:.0f}{_RESULT}'
        )
        tx.put(self.collection, self.id, (start.encode(), *_encoded(result), b"}"))

    def _tidy(self, tx: Transaction, now: Instant) -> None:
        """Remove what is over of the answers that follow this one's place, and after the last one those from the first.

        Keys with a time in them, which sort by it, come to the oldest so, and random ones to all in turn.
        """
        try:
            page = tx.list(self.collection, self.id, _TIDY_PAGE, check=False)
            if len(page) < _TIDY_PAGE:
                page = [*page, *tx.list(self.collection, "", _TIDY_PAGE - len(page), check=False)]
            over = [item.id for item in page if item.id != self.id and _is_over(_facts(item), now)]
        except (Moved, errors.AccordError):
            return  # no reason for a request to fail, or to run again
        for id in over[: tx.room_for_deletes()]:
            tx.get(self.collection, id)  # somebody may be asking with this key again
            tx.delete(self.collection, id)


def _is_over(record: "Any", now: Instant) -> bool:
    """By the wall clock, which somebody may set, and by the store's, unless that started anew meanwhile."""
    if record["expires_at"] > time.time():
        return False
    era = record.get("era", "")  # no old accord wrote one
    return era != now.era or Instant(era, record["over_at"]).is_over(now)


def _facts(item: Item) -> "Any":
    """Of a kept answer all but the answer, which may be long."""
    return jsontext.loads(item.value.partition(_RESULT.encode())[0] + b"}")


def transact(
    store: "Ledger",
    work: "Callable[[Transaction], T]",
    key: str | None = None,
    params: bytes = b"",
    timeout_s: float | None = None,
    rivals: bool = False,
    expected: "Sequence[tuple[str, str]]" = (),
) -> "T":
    """Run `work` and commit what it wrote, all or nothing, as if it had run alone.

    `work` may run several times and must have no side effects. Its result may be a `Number`, or dicts and lists
    with Numbers in them: they come back as ints. With a `key` the result, which must then be JSON, is kept
    for 7 days, and the same key with the same `params` answers it without running `work` to an end again.
    With `rivals`, who most likely change the same things, it does not try without the lock first, where there is one.
    What is `expected` to be read (`Transaction.expect`) saves an engine on another machine round trips.
    """
    request = None if key is None else Request(key, params)
    exclusive: Callable[[float], Batch] | None = getattr(store, "exclusive", None)
    if timeout_s is None:
        timeout_s = getattr(store, "patience_s", LOCK_WAIT_S)
    deadline = time.monotonic() + timeout_s
    unknown: errors.OutcomeUnknown | None = None  # of a try before, which nothing has told since
    wanted = list(expected)
    if request is not None:
        wanted.append((request.collection, request.id))
    tries = 0
    while True:
        left_s = deadline - time.monotonic()
        if tries and left_s <= 0:
            raise unknown or errors.Contention(tries=tries, timeout_seconds=timeout_s)
        tries += 1
        try:
            if exclusive is None or (tries == 1 and not rivals):
                return _run(store, work, request, left_s, wanted)
            # Under the lock nobody can come first again.
            with exclusive(left_s) as batch:
                result = _run(batch, work, request, left_s, wanted)
            return result
        except (Conflict, Moved):
            if exclusive is None:
                time.sleep(max(0.0, min(left_s, _pause_s(tries))))
        except errors.AccordError as error:
            if unknown is not None and _is_of_the_store(error):
                raise unknown from error
            # With a key, asking again tells; without, only the caller can know.
            if request is None or not isinstance(error, errors.OutcomeUnknown):
                raise
            unknown = error


def _run(
    ledger: "Ledger",
    work: "Callable[[Transaction], T]",
    request: Request | None,
    timeout_s: float,
    wanted: "list[tuple[str, str]]",
) -> "T":
    """One try; one in vain leaves in `wanted` what it read."""
    with ledger.snapshot() as snapshot:
        tx = Transaction(ledger, snapshot)
        tx.expect(wanted)
        try:
            if request is not None and (answer := request.find(tx)):
                # Whoever committed it may have died before it was durable.
                ledger.sync()
                return answer[0]  # type: ignore[return-value]
            result = work(tx)
            if request is not None and tx.has_writes:
                request.keep(tx, result)
            done = tx.commit(timeout_s)
        except (Conflict, Moved):
            wanted[:] = tx.was_read()
            raise
    return _numbered(result, done.numbers) if done is not None and done.numbers else result


def _is_of_the_store(error: errors.AccordError) -> bool:
    """Whether the store could not do what it was asked, which tells nothing of a try before."""
    return isinstance(
        error,
        errors.OutcomeUnknown
        | errors.LockTimeout
        | errors.StorageFull
        | errors.StorageFailing
        | errors.StoreDamaged
        | errors.StoreClosed
        | errors.DataDirError
        | errors.NotAStore
        | errors.EngineUnreachable
        | errors.EngineRefused
        | errors.EngineTooOld
        | errors.EngineUnfit,
    )


def _pause_s(tries: int) -> float:
    """Twice as long each time, and between none and all of it, so that rivals do not meet again."""
    longest = min(_FIRST_PAUSE_S * (1 << min(tries, 10)), _LONGEST_PAUSE_S)
    return longest * (int.from_bytes(urandom(2)) / 65535)


def _numbered(result: "T", numbers: "Sequence[int]") -> "T":
    if isinstance(result, Number):
        return numbers[result.append]  # type: ignore[return-value]
    if isinstance(result, dict):
        return {key: _numbered(value, numbers) for key, value in result.items()}  # type: ignore[return-value]
    if isinstance(result, list):
        return [_numbered(value, numbers) for value in result]  # type: ignore[return-value]
    return result


def _encoded(result: object) -> "Template":
    """The result as JSON, in pieces around the numbers that the commit will give."""
    if isinstance(result, Number):
        return (result,)
    if isinstance(result, dict):
        inside = [(_key(key), *_encoded(value)) for key, value in result.items()]
        return (b"{", *_joined(inside), b"}")
    if isinstance(result, list):
        return (b"[", *_joined([_encoded(value) for value in result]), b"]")
    return (jsontext.dumps(result).encode(),)


def _key(key: object) -> bytes:
    if not isinstance(key, str):
        raise errors.InvalidJson(reason=f"the key {key!r} is no text")
    return f"{jsontext.dumps(key)}:".encode()


def _joined(parts: "Sequence[Template]") -> "Template":
    """With commas between them."""
    pieces: list[bytes | Number] = []
    for part in parts:
        pieces += [b",", *part] if pieces else part
    return tuple(pieces)


def _buffered_item(id: str, value: "bytes | Template | None") -> Item | None:
    if isinstance(value, tuple):
        raise ValueError(f"the value of {id} holds a number that only the commit will give")
    return None if value is None else Item(id, value, 0)
