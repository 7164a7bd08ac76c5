"""The gate held, and one write transaction of the database for all that is committed inside."""

from accord.store.contract import LOCK_WAIT_S, Committed, Instant, check_commit
from accord.store.engines.sqlite.link import Snapshot
from accord.store.engines.sqlite.making import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store import protocols
    from accord.store.contract import Check, Content, Write
    from accord.store.engines.sqlite import Sqlite


class Batch:
    def __init__(self, store: "Sqlite", timeout_s: float) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._wrote = False
        self._must_sync = False

    def __enter__(self) -> "Batch":
        store = self._store
        self._link = link = store.borrow()
        try:
            store.gate.acquire(self._timeout_s)
        except BaseException:
            store.give_back(link)
            raise
        try:
            if store.gate.was_marked:
                store.heal(link)
            link.begin("begin immediate")
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        store, link = self._store, self._link
        try:
            if self._wrote and kind is None:
                link.commit()
        except BaseException:
            self._leave()
            raise
        link.end()
        store.gate.release()
        try:
            if self._wrote and kind is None:
                store.settle(link)
        finally:
            store.give_back(link)
        if self._must_sync and not self._wrote and kind is None:
            store.sync()

    def snapshot(self) -> Snapshot:
        return Snapshot(self._link, None)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "protocols.Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        if snapshot is None or snapshot.revision != self._link.revision:
            self._link.check(checks)
        if not writes:
            return Committed(self._link.revision, ())
        self._wrote = True
        return self._link.write(writes)

    def now(self) -> Instant:
        return self._store.now()

    def sync(self) -> None:
        self._must_sync = True  # when the block is left

    def load(self, contents: "Iterable[Content]") -> None:
        self._wrote = True
        fill(self._link, contents)

    def renew_epoch(self) -> None:
        self._wrote = True
        self._link.renew_epoch()

    def _leave(self) -> None:
        self._store.give_back(self._link)
        self._store.gate.release()
