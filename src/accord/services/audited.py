"""A store as one operation sees it: each of its commits takes an entry of the audit with it.

Entries are appended, so that they never disturb each other; `services/chain.py` makes a chain of them afterwards.
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

# Operations that change files instead of the store.
ELSEWHERE = ("halt.set", "halt.lift", "config.trust", "hub.keys_make", "hub.keys_revoke")

_LONGEST = 200  # characters of a parameter
_UNREAD = ("audit.", "config.", "halt.", "home.", "hub.")  # operations that read nothing that anybody wrote


class Audited:
    def __init__(self, ledger: "Ledger", who: str, uid: int, operation: str, made: list[int]) -> None:
        self._made = made  # gets the number of each entry
        self._ledger = ledger
        self._who = who
        self._uid = uid
        self._operation = operation

    def snapshot(self) -> "Snapshot":
        snapshot = self._ledger.snapshot()
        if hasattr(snapshot, "expect"):
            snapshot.expect([(AUDIT, "")])
        return snapshot

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        entry = Append(AUDIT, _entry(self._who, self._uid, self._operation, writes))
        done = self._ledger.commit(checks, [*writes, entry], snapshot, timeout_s)
        self._made.append(done.numbers[-1])
        return done

    def __getattr__(self, name: str) -> "Any":
        """What else the store has; engines without a write lock have no `exclusive`."""
        found = getattr(self._ledger, name)
        return (lambda timeout_s: _AuditedBatch(found(timeout_s), self)) if name == "exclusive" else found

    def around(self, ledger: "Ledger") -> "Audited":
        return Audited(ledger, self._who, self._uid, self._operation, self._made)


class _AuditedBatch:
    def __init__(self, batch: "Batch", audited: Audited) -> None:
        self._batch = batch
        self._audited = audited

    def __enter__(self) -> Audited:
        return self._audited.around(self._batch.__enter__())

    def __exit__(self, *exc: object) -> None:
        self._batch.__exit__(*exc)


def note(ledger: "Ledger", who: str, uid: int, operation: str, given: "Mapping[str, object]") -> list[int]:
    """An entry for what made no commit: what was asked for, and not what was answered. Its number, if there is one."""
    if not operation.startswith(_UNREAD) or operation in ELSEWHERE:
        asked = [f"{name}={value}"[:_LONGEST] for name, value in list(given.items())]
        entry = {"at": timestamp(time.time()), "who": who, "uid": uid, "operation": operation, "items": asked}
        return list(ledger.commit([], [Append(AUDIT, jsontext.dumps(entry).encode())]).numbers)
    return []


def _entry(who: str, uid: int, operation: str, writes: "Sequence[Write]") -> bytes:
    """An entry for a commit, put together by hand: it is made with every message, and nothing in it needs an escape."""
    items = '","'.join([_key(write) for write in writes if write.collection != REQUESTS])
    start = f'{{"at":"{timestamp(time.time())}","who":"{who}","uid":{uid},"operation":"{operation}"'
    return f'{start},"items":["{items}"]}}'.encode()


def _key(write: "Write") -> str:
    """What was written; what a number will name only once it is committed goes by its collection."""
    id = getattr(write, "id", None)
    return f"{write.collection}/{id}" if type(id) is str else write.collection
