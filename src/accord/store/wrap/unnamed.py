"""A store that was empty when it was opened without a key: until its first commit somebody else may still encrypt it.

After that it has a key or never will, and what is asked of it goes straight through.
"""

from accord import errors
from accord.store.contract import KEY_ITEM, LOCK_WAIT_S, ItemIs
from accord.store.wrap.around import AroundLedger, AroundStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.store.contract import Check, Committed, Write
    from accord.store.protocols import Batch, Ledger, Snapshot, Store
    from accord.store.wrap.around import Lockable

_NO_KEY = ItemIs(*KEY_ITEM, 0)


def unnamed(store: "Store", path: str) -> "Store":
    return _UnnamedLockable(store, path) if hasattr(store, "exclusive") else _Unnamed(store, path)


class _UnnamedLedger(AroundLedger):
    """A store or a batch."""

    def __init__(self, ledger: "Ledger", path: str) -> None:
        super().__init__(ledger)
        self._path = path
        self._is_plain = False  # for good

    def snapshot(self) -> "Snapshot":
        snapshot = self._ledger.snapshot()
        if not self._is_plain and snapshot.revision:
            try:
                self._refuse_key(snapshot)
            except BaseException:
                snapshot.__exit__()
                raise
            self._is_plain = True
        return snapshot

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        """A conflict where a key was named since: who reads again is told."""
        needed = checks if self._is_plain else [*checks, _NO_KEY]
        return self._ledger.commit(needed, writes, snapshot, timeout_s)

    def _refuse_key(self, snapshot: "Snapshot") -> None:
        named = snapshot.get(*KEY_ITEM)
        if named is not None:
            raise errors.KeyNeeded(path=self._path, key=named.value.decode())


class _Unnamed(_UnnamedLedger, AroundStore):
    pass


class _UnnamedLockable(_Unnamed):
    _ledger: "Lockable"

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "Batch":
        batch = self._ledger.exclusive(timeout_s)
        return batch if self._is_plain else _Batch(batch, self._path)


class _Batch(_UnnamedLedger):
    """What it learns it keeps to itself: it may not be committed."""

    _ledger: "Batch"

    def __enter__(self) -> "_Batch":
        self._ledger.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ledger.__exit__(*exc)
