"""What ends by itself: instants of the store's clock, as records keep them, and collections in the order of their end.

An item of such a collection is called by when it ends and what it is (`due_id`), so that the first one tells whether
anything is over.
"""

from accord.store.contract import Instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.contract import Item
    from accord.store.transaction import Transaction

_ERA = 8  # letters of an era that are enough to tell two of them apart
_eras: dict[str, str] = {}  # those that were met, with these letters


def until(now: Instant, seconds: float) -> list[object]:
    """An end, as a record keeps it."""
    end = now.plus(seconds)
    return [end.era, round(end.seconds, 3)]


def left_s(end: "list[object]", now: Instant) -> float:
    """How long it lasts; 0 when it is over."""
    era, seconds = end
    return max(0.0, float(seconds) - now.seconds) if era == now.era else 0.0  # type: ignore[arg-type]


def due_id(now: Instant, seconds: float, what: str) -> str:
    """The id of what ends in so many seconds; `what` has no more than 70 characters of an id."""
    return f"{_era(now)}-{int((now.seconds + seconds) * 1000) + 1:013d}-{what}"


def what_of(id: str) -> str:
    return id.split("-", 2)[2]


def is_over(id: str, now: Instant) -> bool:
    return due_left_s(id, now) <= 0


def over(tx: "Transaction", collection: str, limit: int, check: bool = True) -> "list[Item]":
    """The first items that are over, and whatever is left of other eras. `check=False`: others may change them."""
    now = tx.now()
    first = tx.list(collection, limit=limit, check=check)
    found = [item for item in first if is_over(item.id, now)]
    if first and len(found) < limit:
        ids = {item.id for item in found}
        last = tx.list(collection, limit=limit - len(found), reverse=True, check=check)
        found += [item for item in last if item.id not in ids and _era(now) != item.id[:_ERA]]
    return found


def next_s(tx: "Transaction", collection: str) -> float:
    """How long until the first item is over; an hour where there is none."""
    first = tx.list(collection, limit=1, check=False)
    return due_left_s(first[0].id, tx.now()) if first else 3600.0


def due_left_s(id: str, now: Instant) -> float:
    """How long what has this id lasts; 0 when it is over."""
    era, milliseconds = id.split("-", 2)[:2]
    return max(0.0, int(milliseconds) / 1000 - now.seconds) if era == _era(now) else 0.0


def _era(now: Instant) -> str:
    found = _eras.get(now.era)
    if found is None:
        from _blake2 import blake2b

        found = _eras[now.era] = blake2b(now.era.encode(), digest_size=_ERA // 2).hexdigest()
    return found
