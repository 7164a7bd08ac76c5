"""A store that meets with misfortune, so that what is built on stores shows how it bears it.

faulty(store, chance(seed=7, conflict=0.1, lost=0.02)): each fault this likely, wherever it can befall.
faulty(store, plan(commit=["", "lost"], read=["moved"])): the second commit is struck, and the first read.
faulty(store, work_twice()): the first commit of every transaction meets a conflict.
"""

import random
import threading
import time

from accord import errors
from accord.store.contract import LOCK_WAIT_S, Conflict, Moved
from accord.store.wrap.around import AroundLedger, AroundSnapshot, AroundStore, inner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from accord.store.contract import Check, Committed, Head, Item, Write
    from accord.store.protocols import Batch, Ledger, Snapshot, Store
    from accord.store.wrap.around import Lockable

    T = TypeVar("T")
    Fate = Callable[[str, Sequence[str]], str]  # to a place, and the faults that can befall it: one of them, or ""

CONFLICT = "conflict"  # nothing is written
MOVED = "moved"
FULL = "full"  # the disk; nothing is written
FAILING = "failing"  # the disk; nothing is read, or written
LATE = "late"  # it takes a while before, and again after it was done
LOST = "lost"  # it is done, and nobody is told
NEVER = "never"  # it is not done, and nobody is told

# What can befall where. In a batch, what is lost or never done shows when the block is left.
FAULTS = {
    "snapshot": (LATE, FAILING),
    "read": (LATE, MOVED, FAILING),
    "commit": (LATE, CONFLICT, FULL, FAILING, LOST, NEVER),
}
LATE_S = 0.002

_PATH = "the faulty store"
_REASON = "a fault was injected"
_ERRORS: "dict[str, Callable[[], Exception]]" = {
    CONFLICT: Conflict,
    MOVED: Moved,
    FULL: lambda: errors.StorageFull(path=_PATH),
    FAILING: lambda: errors.StorageFailing(path=_PATH, reason=_REASON),
    LOST: lambda: errors.OutcomeUnknown(path=_PATH, reason=_REASON),
    NEVER: lambda: errors.OutcomeUnknown(path=_PATH, reason=_REASON),
}


def faulty(store: "Store", fate: "Fate") -> "Store":
    """`store`, with the faults that `fate` brings."""
    return _FaultyLockable(store, fate) if hasattr(store, "exclusive") else _Faulty(store, fate)


def chance(seed: int, **odds: float) -> "Fate":
    """Each of the named faults befalls with this probability; the same seed brings the same misfortune."""
    _check_faults(odds, {fault for faults in FAULTS.values() for fault in faults})
    source = random.Random(seed)  # noqa: S311 (a seeded misfortune, no secret)

    def fate(place: str, possible: "Sequence[str]") -> str:
        return next((fault for fault in possible if source.random() < odds.get(fault, 0.0)), "")

    return fate


def plan(**faults: "Sequence[str]") -> "Fate":
    """For each place its faults one after another, "" for none; after the last, all goes well."""
    _check_faults(faults, FAULTS)
    for place, planned in faults.items():
        _check_faults(planned, {"", *FAULTS[place]})
    left = {place: iter(planned) for place, planned in faults.items()}

    def fate(place: str, possible: "Sequence[str]") -> str:
        fault = next(left.get(place, iter(())), "")
        _check_faults([fault], {"", *possible})
        return fault

    return fate


def work_twice() -> "Fate":
    """A conflict for each commit whose snapshot is not the thread's next one after such a conflict.

    So `transact` runs every work that writes twice; one that only reads runs once.
    """
    mine = threading.local()

    def fate(place: str, possible: "Sequence[str]") -> str:
        if place == "snapshot":
            mine.is_second_try = getattr(mine, "refused", False)
            mine.refused = False
        elif CONFLICT in possible and not getattr(mine, "is_second_try", False):
            mine.refused = True
            return CONFLICT
        return ""

    return fate


class _Misfortune(AroundLedger):
    """What befalls a store and a batch alike."""

    def __init__(self, ledger: "Ledger", fate: "Fate") -> None:
        super().__init__(ledger)
        self._fate = fate

    def snapshot(self) -> "_Snapshot":
        return _suffer(
            self._fate("snapshot", FAULTS["snapshot"]), lambda: _Snapshot(self._ledger.snapshot(), self._fate)
        )

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        # Who checks nothing, and read nothing, need not expect a conflict.
        possible = [fault for fault in FAULTS["commit"] if fault != CONFLICT or checks or snapshot is not None]
        inner = inner_of(snapshot)
        return _suffer(self._commit_fault(possible), lambda: self._ledger.commit(checks, writes, inner, timeout_s))

    def _commit_fault(self, possible: "Sequence[str]") -> str:
        return self._fate("commit", possible)


class _Faulty(_Misfortune, AroundStore):
    pass


class _FaultyLockable(_Faulty):
    _ledger: "Lockable"

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "_Batch":
        return _Batch(self._ledger.exclusive(timeout_s), self._fate)


class _Batch(_Misfortune):
    _ledger: "Batch"

    def __init__(self, batch: "Batch", fate: "Fate") -> None:
        super().__init__(batch, fate)
        self._end = ""  # LOST or NEVER, once a commit met with it

    def __enter__(self) -> "_Batch":
        self._ledger.__enter__()
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is not None or not self._end:
            self._ledger.__exit__(kind, *exc)
            return
        error = _ERRORS[self._end]()
        if self._end == LOST:
            self._ledger.__exit__(None, None, None)
        else:
            self._ledger.__exit__(type(error), error, None)
        raise error

    def _commit_fault(self, possible: "Sequence[str]") -> str:
        fault = self._fate("commit", possible)
        if fault not in (LOST, NEVER):
            return fault
        self._end = fault
        return ""


class _Snapshot(AroundSnapshot):
    def __init__(self, inner: "Snapshot", fate: "Fate") -> None:
        super().__init__(inner)
        self._fate = fate

    def get(self, collection: str, id: str) -> "Item | None":
        return self._read(lambda: self.inner.get(collection, id))

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        return self._read(lambda: self.inner.list(collection, after, limit, reverse))

    def head(self, collection: str) -> "Head":
        return self._read(lambda: self.inner.head(collection))

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        return self._read(lambda: self.inner.collections(prefix, after, limit))

    def _read(self, read: "Callable[[], T]") -> "T":
        return _suffer(self._fate("read", FAULTS["read"]), read)


def _suffer(fault: str, operation: "Callable[[], T]") -> "T":
    if fault and fault not in (LATE, LOST):
        raise _ERRORS[fault]()
    if fault == LATE:
        time.sleep(LATE_S)
    answer = operation()
    if fault == LATE:
        time.sleep(LATE_S)
    if fault == LOST:
        raise _ERRORS[fault]()
    return answer


def _check_faults(named: "Iterable[str]", known: "Iterable[str]") -> None:
    strange = set(named) - set(known)
    if strange:
        raise ValueError(f"{sorted(strange)} are none of {sorted(known)}")
