"""Queues: what is pushed is taken by one worker at a time, and comes back unless that one says that it is done.

queue/NAME            each entry until it is done, by its sequence number: a line of JSON about it, then its payload
queue-high/NAME ...   the entries that can be taken, by their numbers; one collection for each priority
queue-due/NAME        those that were taken, and those that come later, in the order in which they can be taken (again)
queue-dead/NAME       those that failed too often
queue-FROM-TO/NAME    nothing; its last number counts the moves from one place to the other
"""

from os import urandom

from accord import errors, jsontext
from accord.model import PRIORITIES
from accord.services import leases, locks, named
from accord.store import names
from accord.store.contract import MAX_PAGE, Number, number_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.contract import Item, Template
    from accord.store.transaction import Transaction

    Fence = tuple[str, int]

MAX_BYTES = 1_000_000  # of a payload
WHAT = "An entry of a queue"
MOST_SHOWN = 100  # entries that are shown at once, ...
_SHOWN_CHARACTERS = 1000  # ... with as much of each payload

# Where an entry can be, besides ready with its priority. What is taken or comes later lies in `queue-due`.
_NEW, _TAKEN, _LATER, _DEAD, _GONE = "new", "taken", "later", "dead", "gone"
_USUAL = (_NEW, "normal")  # the one move that is not counted: it is what is left of all that was pushed
_MOVES = [
    (_NEW, _LATER),
    (_TAKEN, _LATER),
    (_TAKEN, _DEAD),
    (_TAKEN, _GONE),
    (_DEAD, _GONE),
    (_NEW, "high"),
    (_NEW, "low"),
    *[(origin, priority) for origin in (_LATER, _TAKEN, _DEAD) for priority in PRIORITIES],
    *[(priority, _TAKEN) for priority in PRIORITIES],
]

_ENTRIES = "queue"
_known: dict[str, str] = {}  # the collections of queues, few and met again and again
_MOST_KNOWN = 1000

_FAR = 1000  # entries below the limit: pushes that far from it need not heed each other
_MOST_BACK = 10  # entries that one commit brings back: four writes each
_NOT_IN_TIME = "it was not done in time"


class Pushing:
    """What is pushed besides the payload, and on what conditions."""

    def __init__(self, by: str, at: str, limit: int, priority: str, delay_s: float, tries: int) -> None:
        self.by = by
        self.at = at
        self.limit = limit  # entries of the queue
        self.priority = priority
        self.delay_s = delay_s  # before it can be taken
        self.tries = tries  # before it is a dead letter


class Entry:
    """How it stands with an entry; the payload lies elsewhere, and never changes."""

    def __init__(self, sequence: "int | Number", priority: str, tries: int, taken: int = 0, **more: str) -> None:
        self.sequence = sequence
        self.priority = priority
        self.tries = tries
        self.taken = taken  # how often
        self.more = more  # place: where it is, in `queue-due`; worker; of a dead letter also reason, at

    @property
    def id(self) -> "str | Number":
        return self.sequence if isinstance(self.sequence, Number) else number_id(self.sequence)

    @property
    def back(self) -> str:
        """Where it goes when it is due."""
        is_lost = self.more["place"] == _TAKEN and self.taken >= self.tries
        return _DEAD if is_lost else self.priority

    def encode(self) -> "Template":
        about = {"priority": self.priority, "tries": self.tries, "taken": self.taken, **self.more}
        sequence = self.sequence if isinstance(self.sequence, Number) else b"%d" % self.sequence
        return (b'{"sequence":', sequence, b",", jsontext.dumps(about)[1:].encode())


def push(tx: "Transaction", queue: str, payload: str, how: Pushing, fence: "Fence | None") -> "Number":
    """Add an entry; its sequence number."""
    data = payload.encode()
    if len(data) > MAX_BYTES:
        raise errors.TooLarge(what=WHAT, most=MAX_BYTES, found=len(data))
    _check_fence(tx, fence)
    _check_room(tx, queue, how.limit)
    about = {"priority": how.priority, "by": how.by, "at": how.at}
    sequence = tx.append(_place("", queue), jsontext.dumps(about).encode() + b"\n" + data)
    if how.delay_s:  # only a commit that gives a number makes room for it elsewhere
        tx.put(_place(how.priority, queue), sequence, b"")
        tx.delete(_place(how.priority, queue), sequence)
    _move(tx, queue, Entry(sequence, how.priority, how.tries), _NEW, how.priority, how.delay_s)
    return sequence


def pop(
    tx: "Transaction", queue: str, visibility_s: float, worker: str, fence: "Fence | None"
) -> "dict[str, Any] | None":
    """Take the first entry, for so long; None when there is none.

    What is due must have been brought back. Others may add to what is looked at here, but not take the same entry.
    """
    _check_fence(tx, fence)
    for priority in PRIORITIES:
        ready = _place(priority, queue)
        for first in tx.list(ready, limit=1, check=False):
            tx.get(ready, first.id)
            tx.delete(ready, first.id)
            entry = _decoded(first)
            entry.taken += 1
            entry.more = {"worker": worker}
            receipt = _move(tx, queue, entry, priority, _TAKEN, visibility_s)
            return {**_shown(entry), "receipt": receipt}
    return None


def done(tx: "Transaction", queue: str, receipt: str, fence: "Fence | None") -> "int | Number":
    """Remove what was taken; its sequence number."""
    _check_fence(tx, fence)
    entry = _taken(tx, queue, receipt)
    _remove(tx, queue, entry, _TAKEN)
    return entry.sequence


def fail(
    tx: "Transaction", queue: str, receipt: str, reason: str, at: str, delay_s: float, fence: "Fence | None"
) -> "dict[str, Any]":
    """Give back what was taken, to its place, now or later; after its last try it is a dead letter."""
    _check_fence(tx, fence)
    entry = _taken(tx, queue, receipt)
    back = entry.back
    if back == _DEAD:
        _bury(tx, queue, entry, reason, at)
    else:
        _move(tx, queue, entry, _TAKEN, back, delay_s)
    return {"sequence": entry.sequence, "dead": back == _DEAD}


def retry(tx: "Transaction", queue: str, sequence: int) -> None:
    """Put a dead letter back to its place, with all its tries before it."""
    entry = _dead(tx, queue, sequence)
    entry.taken = 0
    _move(tx, queue, entry, _DEAD, entry.priority)


def drop(tx: "Transaction", queue: str, sequence: int) -> None:
    """Remove a dead letter for good."""
    _remove(tx, queue, _dead(tx, queue, sequence), _DEAD)


def is_due(tx: "Transaction", queue: str) -> bool:
    """Whether there is something to be brought back."""
    return bool(leases.over(tx, _place("due", queue), 1, check=False))


def bring_back(tx: "Transaction", queue: str, at: str) -> None:
    """Some of what was not done in time, and of what was to come later, to where it belongs now."""
    due = _place("due", queue)
    for item in leases.over(tx, due, _MOST_BACK, check=False):
        tx.get(due, item.id)
        tx.delete(due, item.id)
        entry = _decoded(item)
        if entry.back == _DEAD:
            _bury(tx, queue, entry, _NOT_IN_TIME, at)
        else:
            _move(tx, queue, entry, entry.more["place"], entry.priority)


def next_s(tx: "Transaction", queue: str) -> float:
    """How long until something is due."""
    return leases.next_s(tx, _place("due", queue))


def watched(queue: str) -> list[str]:
    """The collections that change when there may be something to take."""
    return [_place(place, queue) for place in (*PRIORITIES, "due")]


def payload(tx: "Transaction", queue: str, sequence: int) -> str:
    """Of an entry that is not done."""
    item: Any = tx.get(_place("", queue), number_id(sequence), check=False)  # it never changes
    return str(item.value.partition(b"\n")[2], "utf-8")


def payload_again(tx: "Transaction", queue: str, receipt: str) -> str:
    """For whoever took it with this receipt, as long as it is theirs."""
    return payload(tx, queue, int(str(_in_flight(tx, queue, receipt).id)))


def peek(tx: "Transaction", queue: str, limit: int) -> "list[dict[str, Any]]":
    """The next entries, in the order in which they will be taken."""
    found = [entry for entry in _due(tx, queue) if entry.back != _DEAD]
    for priority in PRIORITIES:
        found += [_decoded(item) for item in tx.list(_place(priority, queue), limit=limit)]
    found.sort(key=lambda entry: (PRIORITIES.index(entry.priority), entry.sequence))
    return [{**_shown(entry), **_described(tx, queue, entry)} for entry in found[:limit]]


def dead(tx: "Transaction", queue: str, limit: int) -> "list[dict[str, Any]]":
    """The first dead letters, with what became of them."""
    found = [_decoded(item) for item in tx.list(_place(_DEAD, queue), limit=limit)]
    found += [entry for entry in _due(tx, queue) if entry.back == _DEAD]
    return [
        {
            **_shown(entry),
            "reason": entry.more.get("reason", _NOT_IN_TIME),
            "worker": entry.more["worker"],
            "at": entry.more.get("at"),
            **_described(tx, queue, entry),
        }
        for entry in found[:limit]
    ]


def all_of(tx: "Transaction") -> "list[dict[str, Any]]":
    """How many entries each queue has, and where."""
    return [_counts(tx, queue) for queue in sorted(named.each_collection(tx, _ENTRIES))]


def _counts(tx: "Transaction", queue: str) -> "dict[str, Any]":
    counts = dict.fromkeys([_NEW, _LATER, _TAKEN, _DEAD, _GONE, *PRIORITIES], 0)
    for origin, to in _MOVES:
        moves = tx.head(_place(f"{origin}-{to}", queue), check=False).last
        counts[origin] -= moves
        counts[to] += moves
    pushed = tx.head(_place("", queue), check=False).last
    counts["normal"] += pushed + counts[_NEW]
    for entry in _due(tx, queue):
        counts[entry.more["place"]] -= 1
        counts[entry.back] += 1
    return {
        "queue": queue,
        "ready": {priority: counts[priority] for priority in PRIORITIES},
        "in_flight": counts[_TAKEN],
        "delayed": counts[_LATER],
        "dead": counts[_DEAD],
        "length": pushed - counts[_GONE],
    }


def _check_room(tx: "Transaction", queue: str, limit: int) -> None:
    """Refuse one entry too many. Far from that the length may change meanwhile: pushes must not disturb each other."""
    length = _length(tx, queue, check=False)
    if limit - length < _FAR:
        _length(tx, queue, check=True)
    if length >= limit:
        raise errors.QueueFull(queue=queue, found=length, most=limit)
    _note_length(tx, queue, 1)


def _length(tx: "Transaction", queue: str, check: bool) -> int:
    """The entries that are not done, dead letters among them."""
    pushed, *gone = [
        tx.head(_place(place, queue), check).last for place in ("", f"{_TAKEN}-{_GONE}", f"{_DEAD}-{_GONE}")
    ]
    return pushed - sum(gone) + int(tx.notes.get(_length_note(queue), 0))


def _note_length(tx: "Transaction", queue: str, more: int) -> None:
    """For those who come after it in the same transaction: the numbers that count entries are as of before it."""
    note = _length_note(queue)
    tx.notes[note] = tx.notes.get(note, 0) + more


def _length_note(queue: str) -> str:
    return f"length of {_place('', queue)}"


def _move(tx: "Transaction", queue: str, entry: Entry, origin: str, to: str, after_s: float = 0) -> str:
    """Put an entry where it is to be next, and count that; with a time, its name among those that are due."""
    if to == _TAKEN or after_s:
        to = to if to == _TAKEN else _LATER
        entry.more = {**entry.more, "place": to}
        id: str | Number = leases.due_id(tx.now(), after_s, urandom(8).hex())
        collection = _place("due", queue)
    else:
        id = _dead_id(entry.sequence) if to == _DEAD else entry.id
        collection = _place(to, queue)
    tx.put(collection, id, entry.encode())
    if (origin, to) != _USUAL:
        tx.count(_place(f"{origin}-{to}", queue))
    return str(id)


def _bury(tx: "Transaction", queue: str, entry: Entry, reason: str, at: str) -> None:
    entry.more = {**entry.more, "reason": reason, "at": at}
    _move(tx, queue, entry, _TAKEN, _DEAD)


def _remove(tx: "Transaction", queue: str, entry: Entry, origin: str) -> None:
    tx.delete(_place("", queue), entry.id)
    tx.count(_place(f"{origin}-{_GONE}", queue))
    _note_length(tx, queue, -1)


def _taken(tx: "Transaction", queue: str, receipt: str) -> Entry:
    """What was taken with this receipt, which is used up."""
    entry = _in_flight(tx, queue, receipt)
    tx.delete(_place("due", queue), receipt)
    return entry


def _in_flight(tx: "Transaction", queue: str, receipt: str) -> Entry:
    """What was taken with this receipt; one that is over does not count, whoever looks."""
    item = tx.get(_place("due", queue), receipt)
    entry = None if item is None or leases.is_over(receipt, tx.now()) else _decoded(item)
    if entry is None or entry.more["place"] != _TAKEN:
        raise errors.StaleReceipt(queue=queue, receipt=receipt)
    return entry


def _dead(tx: "Transaction", queue: str, sequence: int) -> Entry:
    """A dead letter, which is one no more."""
    letters = _place(_DEAD, queue)
    item = tx.get(letters, _dead_id(sequence))
    if item is None:
        raise errors.DeadLetterNotFound(queue=queue, sequence=sequence)
    tx.delete(letters, item.id)
    return _decoded(item)


def _dead_id(sequence: "int | Number") -> str:
    """Not the number itself, which `queue-dead` never gave."""
    return f"n{sequence:016d}"


def _due(tx: "Transaction", queue: str) -> "list[Entry]":
    """What nobody has brought back yet, for those who only look; no more than a page."""
    return [_decoded(item) for item in leases.over(tx, _place("due", queue), MAX_PAGE, check=False)]


def _shown(entry: Entry) -> "dict[str, Any]":
    return {"sequence": entry.sequence, "priority": entry.priority, "tries": entry.taken}


def _described(tx: "Transaction", queue: str, entry: Entry) -> "dict[str, Any]":
    value = tx.get(_place("", queue), str(entry.id)).value  # type: ignore[union-attr]  # it is there until it is done
    line, _, data = value.partition(b"\n")
    about: Any = jsontext.loads_own(line)
    start = data[: 4 * _SHOWN_CHARACTERS].decode(errors="ignore")[:_SHOWN_CHARACTERS]
    return {"by": about["by"], "pushed_at": about["at"], "size": len(data), "payload": start}


def _decoded(item: "Item") -> Entry:
    record: Any = jsontext.loads_own(item.value)
    return Entry(**record)


def _check_fence(tx: "Transaction", fence: "Fence | None") -> None:
    if fence is not None:
        locks.check_fence(tx, *fence)


def _place(place: str, queue: str) -> str:
    """The collection of a queue with this use."""
    entries = _known.get(queue)
    if entries is None:
        entries = names.to_collection(_ENTRIES, queue)
        if len(_known) < _MOST_KNOWN:
            _known[queue] = entries
    return f"{_ENTRIES}-{place}{entries[len(_ENTRIES) :]}" if place else entries
