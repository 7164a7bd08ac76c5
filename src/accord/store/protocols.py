"""What an engine is: the classes it must have, for type checkers and for those who write one."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from accord.store.contract import LOCK_WAIT_S, Change, Committed, Head, Instant, Item

if TYPE_CHECKING:
    from accord.store.contract import Check, Content, Write


class Snapshot(Protocol):
    """Reads as of one revision; a read that cannot be answered so raises `Moved`.

    Its view is fixed by what is asked of it first, its revision included. It is over when its block was left or a
    commit was tried with it. What no key can be, such as `A`, is not there.
    """

    @property
    def epoch(self) -> str:
        """A random name of this store's history: revisions of two epochs do not compare."""
        ...

    @property
    def revision(self) -> int: ...

    def __enter__(self) -> "Self": ...

    def __exit__(self, *exc: object) -> None: ...

    def get(self, collection: str, id: str) -> Item | None: ...

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        """Up to `limit` items in the order of their ids, beyond `after` ("": from the first or, reversed, the last)."""
        ...

    def head(self, collection: str) -> Head: ...

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        """Names, in order, of the collections ever written to, emptied ones too."""
        ...


class Distant(Protocol):
    """A snapshot to which each read is a round trip has these too (`contract.DISTANT`)."""

    def expect(self, wanted: "Sequence[tuple[str, str]]") -> None:
        """These (collection, id), "" for a collection's head, will most likely be read: fetch them with the first.

        It may be asked several times.
        """
        ...

    def now(self) -> Instant:
        """The time of the first read."""
        ...


class Watch(Protocol):
    revision: int  # every change up to this one was given out or matched no prefix

    def __enter__(self) -> "Self": ...

    def __exit__(self, *exc: object) -> None: ...

    def next(self, timeout_s: float) -> Change | None:
        """The next change, in order and each once; None when there was none in time, or after `close`."""
        ...

    def close(self) -> None:
        """End the watch; a `next` that waits in another thread returns None."""
        ...


class Ledger(Protocol):
    """Where transactions run: a store, or what its `exclusive()` gives."""

    def snapshot(self) -> Snapshot: ...

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: Snapshot | None = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        """All of `writes` or nothing; `Conflict` when a check fails. Returns when they are durable.

        `snapshot` is where the checks' revisions were read. It is over then; unless it was so before, and as long
        as nothing was committed after it, the engine need not look at the checks.
        """
        ...

    def now(self) -> Instant: ...

    def sync(self) -> None:
        """Return when everything that a snapshot can show is durable."""
        ...


class Store(Ledger, Protocol):
    """An engine, opened. Threads may share it; a process that forks may not use it in the child."""

    patience_s: float  # how long a transaction may wait for others, unless it says otherwise

    @property
    def durability(self) -> str:
        """What a commit survives: "power" (a power cut), "process" (kill -9) or "none"."""
        ...

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> Watch:
        """Changes after revision `since` in collections whose names start with one of `prefixes`.

        `HistoryGone` when they are no longer kept, or when the store's epoch is not `epoch` (unless "").
        """
        ...

    def load(self, contents: "Iterable[Content]") -> None:
        """Fill an empty store, as its revision 1. A load cut short leaves the store empty, or to be loaded again."""
        ...

    def close(self) -> None: ...


class Exclusive(Protocol):
    """An engine with a write lock has this too."""

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "Batch":
        """Hold the write lock: what is committed inside becomes one durable commit when the block is left."""
        ...


class Batch(Ledger, Protocol):
    """Nothing committed in it may be acknowledged before the block is left without an error.

    A commit that fails for want of room, or of a working disk, may fail the whole block.
    """

    def __enter__(self) -> "Self": ...

    def __exit__(self, *exc: object) -> None: ...


class Elsewhere(Protocol):
    """A store on another machine may have these too, for `accord doctor`."""

    @property
    def server(self) -> str:
        """The server's name and version, such as "Redis 7.0.15"."""
        ...

    def server_clock_s(self) -> float:
        """The time there, asked for now, in seconds since 1970."""
        ...
