"""What a history consists of, and how it is read from its files."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accord import errors
from accord.store.contract import Append, Delete, Number, Put, resolve
from accord.store.wrap.recorded import CONFLICT, MOVED, OK, UNDONE

Key = tuple[str, str]
Place = tuple[str, str | None]  # an item, or with None a collection's head

UNKNOWN = math.inf  # when something returned whose outcome nobody knows

# After these a commit has written nothing; after any other error it may have.
_WITHOUT_EFFECT = {CONFLICT, MOVED, UNDONE} | {
    error.code
    for error in (
        errors.StorageFull,
        errors.LockTimeout,
        errors.CommitTooLarge,
        errors.InvalidKey,
        errors.StoreClosed,
        errors.StoreForked,
    )
}


@dataclass(frozen=True)
class Read:
    who: str
    called: int
    returned: float  # when the snapshot was taken, or the batch left in which it was taken
    place: Place
    value: bytes | None  # None: there is no such item
    revision: int
    snapshot: int  # the snapshot's revision
    epoch: str = ""

    def __str__(self) -> str:
        what = f"{name(self.place)} = {_shown(self.value)}" if self.place[1] else f"the head of {self.place[0]}"
        return f"read {what} at revision {self.revision}, in a snapshot of revision {self.snapshot}"


@dataclass(frozen=True, eq=False)
class Commit:
    who: str
    called: int
    returned: float
    checks: tuple[tuple[Place, int], ...]  # each place and the revision it had to have
    writes: dict[Key, bytes | None]
    revision: int | None  # None: nobody knows
    unsettled: frozenset[str] = frozenset()  # collections where it wrote what only its appends' numbers could tell

    @property
    def collections(self) -> set[str]:
        return {collection for collection, _ in self.writes} | self.unsettled

    def touches(self, place: Place) -> bool:
        return place in self.writes or (place[1] is None and place[0] in self.collections)

    def __str__(self) -> str:
        writes = ", ".join(f"{name(key)} = {_shown(value)}" for key, value in self.writes.items())
        checks = ", ".join(f"{name(place)} is at revision {revision}" for place, revision in self.checks)
        outcome = "with unknown outcome" if self.revision is None else f"as revision {self.revision}"
        return f"wrote {writes or 'nothing'} {outcome}{', if ' + checks if checks else ''}"


@dataclass(frozen=True)
class History:
    commits: list[Commit]  # without those that surely wrote nothing
    reads: list[Read]
    unanswered: int = 0  # calls that never returned
    outcomes: Counter[str] = field(default_factory=Counter)  # how often each came back

    @property
    def unsettled(self) -> set[str]:
        """Collections with appends of unknown outcome: what lies there under which number, nobody can tell."""
        return {collection for commit in self.commits for collection in commit.unsettled}


def name(place: Place) -> str:
    return "/".join(part for part in place if part is not None)


def table(operations: Iterable[Read | Commit]) -> str:
    """The operations in the order of their calls, a line each, with the time in milliseconds."""
    rows = sorted(operations, key=lambda operation: operation.called)
    start = rows[0].called
    return "\n".join(
        f"  {row.who:8} {(row.called - start) / 1e6:9.3f} to {(row.returned - start) / 1e6:9.3f}  {row}" for row in rows
    )


def read_history(paths: Iterable[str | Path]) -> History:
    calls: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    for record in _records(paths):
        (answers if "outcome" in record else calls)[record["id"]] = record
    both = [(call, answers.get(id)) for id, call in calls.items()]
    commits = [commit for call, answer in both if call["call"] == "commit" for commit in _commits(call, answer)]
    ids = defaultdict(set)
    for collection, id in {key for commit in commits for key in commit.writes}:
        ids[collection].add(id)
    reads = [
        read
        for call, answer in both
        if call["call"] != "commit" and answer and answer["outcome"] == OK
        for read in _reads(call, answer, ids[call["collection"]])
    ]
    return History(commits, reads, len(calls) - len(answers), Counter(a["outcome"] for a in answers.values()))


def _records(paths: Iterable[str | Path]) -> Iterator[Any]:
    for path in paths:
        for line in Path(path).read_bytes().split(b"\n"):
            try:
                yield json.loads(line)
            except ValueError:
                pass  # half a line, of a process that was killed: it made no call, or nobody got its answer


def _commits(call: Any, answer: Any) -> Iterator[Commit]:
    """The commit, unless it surely wrote nothing."""
    outcome = answer and answer["outcome"]
    writes = [_write(*facts) for facts in call["writes"]]
    checks = tuple(((collection, id), revision) for collection, id, revision in call["checks"])
    if outcome == OK:
        written = _written(writes, answer["numbers"])
        yield Commit(call["who"], call["called"], answer["returned"], checks, written, answer["revision"])
    elif writes and outcome not in _WITHOUT_EFFECT:
        written = _written([write for write in writes if _is_certain(write)], ())
        unsettled = frozenset(write.collection for write in writes if not _is_certain(write))
        yield Commit(call["who"], call["called"], UNKNOWN, checks, written, None, unsettled)


def _write(kind: str, collection: str, *rest: Any) -> Put | Delete | Append:
    if kind == "append":
        return Append(collection, _value(rest[0]))
    id = Number(rest[0]) if isinstance(rest[0], int) else rest[0]
    return Delete(collection, id) if kind == "delete" else Put(collection, id, _value(rest[1]))


def _value(facts: Any) -> Any:
    if isinstance(facts, str):
        return facts.encode("latin-1")
    return tuple(Number(piece) if isinstance(piece, int) else piece.encode("latin-1") for piece in facts)


def _is_certain(write: Put | Delete | Append) -> bool:
    """Whether its id and value were known before the commit."""
    if isinstance(write, Append) or isinstance(write.id, Number):
        return False
    return isinstance(write, Delete) or isinstance(write.value, bytes)


def _written(writes: Sequence[Put | Delete | Append], numbers: Sequence[int]) -> dict[Key, bytes | None]:
    return resolve(writes, numbers)


def _reads(call: Any, answer: Any, ids: set[str]) -> Iterator[Read]:
    """What a read tells, item by item; a page also tells which of the known `ids` were absent."""
    returned = call["taken"] or answer["returned"]

    def read(id: str | None, value: bytes | None, revision: int) -> Read:
        place = (call["collection"], id)
        return Read(call["who"], call["called"], returned, place, value, revision, call["snapshot"], call["epoch"])

    if call["call"] == "head":
        yield read(None, None, answer["revision"])
        return
    found = {id: (value.encode("latin-1"), revision) for id, value, revision in answer["items"]}
    looked_for = {call["item"]} if call["call"] == "get" else {id for id in ids if _is_on_page(id, call, list(found))}
    for id in looked_for | found.keys():
        value, revision = found.get(id, (None, 0))
        yield read(id, value, revision)


def _is_on_page(id: str, call: Any, found: Sequence[str]) -> bool:
    """Whether the page would show this id, if there were such an item."""
    after = call["after"]
    end = found[-1] if len(found) == call["limit"] else None
    if call["reverse"]:
        return (not after or id < after) and (end is None or id >= end)
    return id > after and (end is None or id <= end)


def _shown(value: bytes | None) -> str:
    if value is None:
        return "absent"
    return repr(value[:60])[1:] + ("..." if len(value) > 60 else "")
