"""A store as one operation sees it: each of its commits takes an entry of the audit with it.

Entries are appended, so that they never disturb each other; `services/audit.py` makes a chain of them afterwards.
"""

import time

from accord import jsontext
from accord.model import timestamp
from accord.store.contract import LOCK_WAIT_S, Append
from accord.store.transaction import REQUESTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from accord.store.contract import Check, Committed, Write
    from accord.store.protocols import Batch, Ledger, Snapshot

AUDIT = "audit"

_UNREAD = ("audit.", "config.", "halt.", "home.", "hub.")  # operations that read nothing that anybody wrote


class Audited:
    def __init__(self, ledger: "Ledger", who: str, operation: str) -> None:
        self.snapshot = ledger.snapshot
        self._ledger = ledger
        self._who = who
        self._operation = operation

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        entry = Append(AUDIT, _entry(self._who, self._operation, writes))
        return self._ledger.commit(checks, [*writes, entry], snapshot, timeout_s)

    def __getattr__(self, name: str) -> "Any":
        """What else the store has; engines without a write lock have no `exclusive`."""
        found = getattr(self._ledger, name)
        return (lambda timeout_s: _AuditedBatch(found(timeout_s), self)) if name == "exclusive" else found

    def around(self, ledger: "Ledger") -> "Audited":
        return Audited(ledger, self._who, self._operation)


class _AuditedBatch:
    def __init__(self, batch: "Batch", audited: Audited) -> None:
        self._batch = batch
        self._audited = audited

    def __enter__(self) -> Audited:
        return self._audited.around(self._batch.__enter__())

    def __exit__(self, *exc: object) -> None:
        self._batch.__exit__(*exc)


def note_read(ledger: "Ledger", who: str, operation: str, given: "Mapping[str, object]") -> None:
    """An entry for what was only read: what was asked for, and not what was answered."""
    if not operation.startswith(_UNREAD):
        asked = [f"{name}={value}" for name, value in given.items()]
        ledger.commit([], [Append(AUDIT, encode(who, operation, asked))])


def encode(who: str, operation: str, items: "Sequence[str]") -> bytes:
    entry = {"at": timestamp(time.time()), "who": who, "operation": operation, "items": items}
    return jsontext.dumps(entry).encode()


def _entry(who: str, operation: str, writes: "Sequence[Write]") -> bytes:
    """The same, made in a tenth of the time: no name of an item needs an escape."""
    items = '","'.join([_key(write) for write in writes if write.collection != REQUESTS])
    return f'{{"at":"{timestamp(time.time())}","who":"{who}","operation":"{operation}","items":["{items}"]}}'.encode()


def _key(write: "Write") -> str:
    """What was written; what a number will name only once it is committed goes by its collection."""
    id = getattr(write, "id", None)
    return f"{write.collection}/{id}" if type(id) is str else write.collection
