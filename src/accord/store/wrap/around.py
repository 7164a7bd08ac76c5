"""What wrappers have in common: they hand on what they do not change."""

from accord.store.contract import DISTANT, LOCK_WAIT_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol, Self

    from accord.store.contract import Content, Instant
    from accord.store.protocols import Exclusive, Ledger, Snapshot, Store, Watch

    class Lockable(Store, Exclusive, Protocol): ...


class AroundLedger:
    """A store or a batch."""

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger

    def now(self) -> "Instant":
        return self._ledger.now()

    def sync(self) -> None:
        self._ledger.sync()


class AroundStore(AroundLedger):
    _ledger: "Store"

    patience_s = LOCK_WAIT_S

    @property
    def durability(self) -> str:
        return self._ledger.durability

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> "Watch":
        return self._ledger.watch(prefixes, since, epoch)

    def load(self, contents: "Iterable[Content]") -> None:
        self._ledger.load(contents)

    def close(self) -> None:
        self._ledger.close()


class AroundSnapshot:
    """`inner` is what the engine gave, and what it wants back with a commit."""

    def __init__(self, inner: "Snapshot") -> None:
        self.inner = inner

    @property
    def epoch(self) -> str:
        return self.inner.epoch

    @property
    def revision(self) -> int:
        return self.inner.revision

    def __getattr__(self, name: str) -> "Any":
        """What a snapshot has where each read is a round trip."""
        if name in DISTANT:
            return getattr(self.inner, name)
        raise AttributeError(name)

    def __enter__(self) -> "Self":
        self.inner.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.inner.__exit__(*exc)


def inner_of(snapshot: "Snapshot | None") -> "Snapshot | None":
    return snapshot.inner if isinstance(snapshot, AroundSnapshot) else snapshot
