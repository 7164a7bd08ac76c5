"""The audit: who changed what and when, and whether anybody changed that since.

audit   entries, one for each commit, numbered (`audited.py`); `chain.py` makes the chain of hashes over them
"""

from accord import errors, jsontext
from accord.services import chain
from accord.services.audited import AUDIT
from accord.store.contract import number_id
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.protocols import Store
    from accord.store.transaction import Transaction


def entries(tx: "Transaction", after: "int | None", limit: int) -> "list[dict[str, Any]]":
    """The entries that follow a number, or the last ones; oldest first."""
    if after is None:
        page = list(reversed(tx.list(AUDIT, limit=limit, reverse=True)))
    else:
        page = list(tx.list(AUDIT, number_id(after) if after else "", limit))
    return [{"number": int(item.id), **jsontext.loads_own(item.value)} for item in page]  # type: ignore[dict-item]


def verify(home: str, store: "Store", head: str = "") -> "dict[str, Any]":
    """Compare every entry with the chain, and the chain with a line that somebody kept; then go on with it."""
    with chain.Chain(home, chain.epoch_of(store), chain.PATIENCE_S) as held:
        path, lines = held.path, held.lines()
    _compare(store, lines, path)
    kept = _kept(head, lines, path)
    end = chain.extend(home, store, chain.PATIENCE_S)
    return {"entries": int(end.partition(":")[0]), "compared": len(lines), "head": end, "kept": kept}


def _compare(store: "Store", lines: list[bytes], path: str) -> None:
    given = transact(store, lambda tx: tx.head(AUDIT).last)
    last, number = chain.FIRST, 0
    for item in chain.entries(store, 0):
        number += 1
        if int(item.id) != number:
            raise errors.AuditBroken(reason=f"entry {number} is missing", path=path)
        last = chain.hashed(last, item.value)
        if number <= len(lines) and last != lines[number - 1]:
            raise errors.AuditBroken(reason=f"entry {number} was changed, or the chain was", path=path)
    if number < max(len(lines), given):
        raise errors.AuditBroken(reason=f"entry {number + 1} and what follows are missing", path=path)


def _kept(head: str, lines: list[bytes], path: str) -> bool:
    """Whether a line that was kept elsewhere is one of the chain's."""
    if not head:
        return False
    number, _, digits = head.partition(":")
    if not number.isascii() or not number.isdigit() or len(number) > chain.DIGITS // 4 or len(digits) != chain.DIGITS:
        raise errors.Usage(reason=f"{head[:100]!r} is no head of an audit, as NUMBER:HASH", see="audit.verify")
    at = int(number)
    if at > len(lines) or (at and lines[at - 1] != digits.encode()) or (not at and digits.encode() != chain.FIRST):
        raise errors.AuditBroken(reason=f"entry {at} is not the one that was kept", path=path)
    return True
