"""Stores in which things happen as a test wants them to."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accord.store.contract import LOCK_WAIT_S, Committed, Instant
from accord.store.protocols import Snapshot, Store
from accord.store.wrap.around import AroundStore

if TYPE_CHECKING:
    from accord.store.contract import Check, Write


class _Same(AroundStore):
    """Without a lock, even where the engine has one."""

    def snapshot(self) -> Snapshot:
        return self._ledger.snapshot()

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: Snapshot | None = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        return self._ledger.commit(checks, writes, snapshot, timeout_s)


class Clocked(_Same):
    """Its clock stands still until it is set."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.time = Instant("era 0", 1000.0)

    def now(self) -> Instant:
        return self.time


class Overtaken(_Same):
    """Just before its first commit something else happens."""

    def __init__(self, store: Store, first: Callable[[], object]) -> None:
        super().__init__(store)
        self._first = [first]

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: Snapshot | None = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        while self._first:
            self._first.pop()()
        return super().commit(checks, writes, snapshot, timeout_s)
