"""Reservations: who works on which files of a project, for how long.

reserve/PROJECT     one item for each glob of an owner; PROJECT stands for the folder's path, which each of them holds

They are leases: one that is over counts for nothing, and goes when something else is reserved in that project.
"""

from accord import errors, jsontext
from accord.model import globs
from accord.services import leases, named
from accord.store.contract import MAX_PAGE
from accord.store.transaction import MOST_WRITES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from accord.model.globs import Glob
    from accord.store.contract import Instant, Item
    from accord.store.transaction import Transaction

RESERVATIONS = "reserve"

MOST_AT_ONCE = MOST_WRITES  # globs
_MOST_SHOWN = 10  # in the message of an error


class Reservation:
    def __init__(self, item: "Item", now: "Instant") -> None:
        record: Any = jsontext.loads_own(item.value)
        self.id = item.id
        self.project = str(record["project"])
        self.glob = str(record["glob"])
        self.owner = str(record["owner"])
        self.note = str(record["note"])
        self.advisory = bool(record["advisory"])  # it only says so, and keeps nobody out
        self.since = str(record["since"])
        self.left_s = leases.left_s(record["until"], now)

    @property
    def sentence(self) -> str:
        note = f", {self.note}" if self.note else ""
        return f"{self.glob} by {self.owner} for another {self.left_s:.0f} s{note}"


class Wanted:
    """Globs of a project that somebody wants to have, and how."""

    def __init__(
        self, project: str, texts: "Sequence[str]", owner: str, ttl_s: float, note: str, advisory: bool
    ) -> None:
        self.project = project
        self.globs = {text: globs.read(text) for text in texts}
        self.owner = owner
        self.ttl_s = ttl_s
        self.note = note
        self.advisory = advisory


def add(tx: "Transaction", wanted: Wanted, at: str) -> "list[tuple[str, Reservation]]":
    """Reserve all of them, or renew them; what of others' each overlaps with. `Reserved` when that keeps others out."""
    if len(wanted.globs) > MOST_AT_ONCE:
        raise errors.CommitTooLarge(most=MOST_AT_ONCE, what="globs", found=len(wanted.globs))
    there = list(_all(tx, _collection(wanted.project)))
    found = _overlapping(there, wanted.globs, wanted.owner)
    if not wanted.advisory:
        refuse([reservation for _, reservation in found])
    over = [reservation.id for reservation in there if not reservation.left_s]
    for text in wanted.globs:
        tx.put(_collection(wanted.project), _id(wanted.owner, text), _encoded(wanted, text, tx.now(), at))
    fresh = {_id(wanted.owner, text) for text in wanted.globs}
    for id in [id for id in over if id not in fresh][: MOST_AT_ONCE - len(fresh)]:
        tx.delete(_collection(wanted.project), id)
    return found


def release(tx: "Transaction", project: str, owner: str, texts: "Sequence[str] | None") -> list[str]:
    """Give these back, or all that the owner has there, as many as one commit holds; which they were."""
    there = {one.glob: one for one in _all(tx, _collection(project)) if one.owner == owner and one.left_s}
    missing = [text for text in texts or () if text not in there]
    if missing:
        raise errors.ReservationNotFound(owner=owner, what=", ".join(missing))
    released = sorted(there if texts is None else set(texts))[:MOST_AT_ONCE]
    for text in released:
        tx.delete(_collection(project), there[text].id)
    return released


def find(
    tx: "Transaction", project: str, paths: "Sequence[str]", owner: "str | None"
) -> "list[tuple[str, Reservation]]":
    """Others' reservations that have one of these paths, each with the path."""
    wanted = {path: globs.read_path(path) for path in paths}
    return _overlapping(list(_all(tx, _collection(project), check=False)), wanted, owner)


def all_of(tx: "Transaction", project: "str | None") -> "list[Reservation]":
    """Those of one project or of all, in the order of project, glob and owner."""
    collections = [_collection(project)] if project is not None else list(named.collections(tx, RESERVATIONS))
    found = [one for collection in collections for one in _all(tx, collection, check=False) if one.left_s]
    return sorted(found, key=lambda one: (one.project, one.glob, one.owner))


def refuse(found: "list[Reservation]") -> None:
    """An error that names those that keep others out, if there are any."""
    held = list({one.id: one.sentence for one in found if not one.advisory}.values())
    if held:
        more = [f"and {len(held) - _MOST_SHOWN} more"] if len(held) > _MOST_SHOWN else []
        raise errors.Reserved(held="; ".join([*held[:_MOST_SHOWN], *more]))


def _overlapping(
    there: "Sequence[Reservation]", wanted: "dict[str, Glob]", owner: "str | None"
) -> "list[tuple[str, Reservation]]":
    others = [(one, globs.read(one.glob)) for one in there if one.left_s and one.owner != owner]
    return [(text, one) for text, glob in wanted.items() for one, other in others if globs.overlap(glob, other)]


def _all(tx: "Transaction", collection: str, check: bool = True) -> "Iterator[Reservation]":
    """Also those that are over."""
    now = tx.now()
    after = ""
    while page := tx.list(collection, after, MAX_PAGE, check=check):
        yield from [Reservation(item, now) for item in page]
        after = page[-1].id


def _encoded(wanted: Wanted, text: str, now: "Instant", at: str) -> bytes:
    record = {
        "project": wanted.project,
        "glob": text,
        "owner": wanted.owner,
        "note": wanted.note,
        "advisory": wanted.advisory,
        "since": at,
        "until": leases.until(now, wanted.ttl_s),
    }
    return jsontext.dumps(record).encode()


def _collection(project: str) -> str:
    return f"{RESERVATIONS}/{_hash(project)}"


def _id(owner: str, text: str) -> str:
    return _hash(f"{owner}\0{text}")


def _hash(text: str) -> str:
    """A name of what may be longer than a key."""
    from _blake2 import blake2b

    return blake2b(text.encode(), digest_size=16).hexdigest()
