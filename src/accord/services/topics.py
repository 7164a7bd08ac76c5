"""Publish and subscribe: what is published on a channel is kept for a while, for all who read from some place on.

topic/CHANNEL   entries, numbered; the last so many are kept
"""

from accord import errors, jsontext
from accord.store.contract import MAX_PAGE, number_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.contract import Item
    from accord.store.transaction import Transaction

KEPT = 10_000
_TRIMMED = 3  # that one removes; two who publish at once may remove the same


def publish(tx: "Transaction", channel: str, sender: str, message: str, at: str) -> "dict[str, Any]":
    record = {"from": sender, "timestamp": at, "message": message}
    collection = _collection(channel)
    sequence = tx.append(collection, jsontext.dumps(record).encode())
    # As it is now: publishing disturbs nobody who publishes at the same time, and an entry more or less does no harm.
    oldest = tx.head(collection, check=False).last + 1 - KEPT
    if oldest > 0:
        for item in tx.list(collection, limit=_TRIMMED, check=False):
            if int(item.id) <= oldest:
                tx.delete(collection, item.id)
    return {"channel": channel, "sequence": sequence}


def read(tx: "Transaction", channel: str, after: int, limit: int) -> "dict[str, Any]":
    """The entries after a number, oldest first, and how many there were before them that are no longer kept."""
    collection = _collection(channel)
    page = tx.list(collection, number_id(after) if after else "", limit)
    missed = int(page[-1].id) - after - len(page) if page else 0
    epoch = tx.revision.partition(".")[0]
    return {"channel": channel, "entries": [_shown(item, epoch) for item in page], "missed": missed}


def last(tx: "Transaction", channel: str) -> int:
    """The number of the last entry."""
    return tx.head(_collection(channel)).last


def place_of(tx: "Transaction", channel: str, revision: str) -> int:
    """The number of the last entry that a revision, `EPOCH.REVISION`, already had."""
    epoch, _, digits = revision.rpartition(".")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise errors.Usage(reason=f"{revision[:100]!r} is no revision, as EPOCH.REVISION", see="topic.read")
    now = tx.revision.partition(".")[0]
    if epoch != now:
        raise errors.HistoryGone(since=revision, oldest=f"{now}.0")
    before = ""
    while page := tx.list(_collection(channel), before, MAX_PAGE, reverse=True):
        for item in page:
            if item.revision <= int(digits):
                return int(item.id)
        before = page[-1].id
    return 0


def _shown(item: "Item", epoch: str) -> "dict[str, Any]":
    record: Any = jsontext.loads_own(item.value)
    return {"sequence": int(item.id), "revision": f"{epoch}.{item.revision}", **record}


def _collection(channel: str) -> str:
    return f"topic/{channel}"
