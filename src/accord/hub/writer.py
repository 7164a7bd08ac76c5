"""Group commit: one thread takes all changes that wait and makes them one durable commit.

While it waits for the disk the next ones gather, so that a slow disk makes larger groups and not longer queues.
"""

import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from accord import errors
from accord.store.contract import Committed, Instant
from accord.store.protocols import Ledger, Snapshot, Store

if TYPE_CHECKING:
    from accord.store.contract import Check, Write

MOST_TOGETHER = 256

_WORTH_WAITING = 16  # changes; with more, what they share of a commit is little
_MOMENT_S = 0.0003


class Job(Protocol):
    """A change that somebody asked for. Exactly one of `result` and `error` is set once it is done."""

    result: Any
    error: BaseException | None

    def work(self) -> Any:
        """Do it, on `Writer.ledger`; it may be asked for twice."""


class SharedLedger:
    """The store as one job sees it: the group that is being written, or the store itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.durability = store.durability
        self.patience_s = store.patience_s
        self.now_on: Ledger = store

    def snapshot(self) -> Snapshot:
        return self.now_on.snapshot()

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: Snapshot | None = None,
        timeout_s: float = 30.0,
    ) -> Committed:
        return self.now_on.commit(checks, writes, snapshot, timeout_s)

    def now(self) -> Instant:
        return self._store.now()

    def sync(self) -> None:
        self.now_on.sync()


class Writer:
    def __init__(self, store: Store, tell: Callable[[list[Any]], None], prepare: Callable[[], None]) -> None:
        self.ledger = SharedLedger(store)
        self.groups = 0
        self.jobs = 0
        self._last_size = 0  # of the last group
        self._store = store
        self._tell = tell  # called in the writer's thread, with jobs that are done
        self._prepare = prepare  # called there before each group
        self._waiting: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        self._waiting.put(job)

    def close(self, timeout_s: float) -> None:
        """Finish what waits, then end."""
        self._waiting.put(None)
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        while group := self._gather():
            self._prepare()
            self._do(group)
            self.groups += 1
            self.jobs += len(group)
            self._tell(group)

    def _gather(self) -> list[Any]:
        """What waits by now, at least one; nothing once all is done and no more will come.

        Whoever was answered just now will mostly ask again at once: in a small group it is worth a moment to have
        them in it, since a commit costs more than a change.
        """
        waiting = self._waiting
        expected = min(self._last_size + waiting.qsize(), _WORTH_WAITING)
        group: list[Any] = []
        job = waiting.get()
        deadline = time.monotonic() + _MOMENT_S
        while job is not None:
            group.append(job)
            if len(group) == MOST_TOGETHER:
                break
            try:
                left_s = deadline - time.monotonic() if len(group) < expected else 0.0
                job = waiting.get(left_s > 0, max(left_s, 0.0))
            except Empty:
                break
        if job is None and group:
            waiting.put(None)  # nothing follows it, and the next look finds it
        self._last_size = len(group)
        return group

    def _do(self, group: list[Any]) -> None:
        if not hasattr(self._store, "exclusive"):
            for job in group:
                _run(job)
            return
        try:
            self._do_together(group)
        except (errors.OutcomeUnknown, errors.LockTimeout) as failure:
            _fail(group, failure)
        except Exception as failure:
            if len(group) == 1:
                _fail(group, failure)
            else:
                # Nothing is there of what any of them wrote. Alone, only the one that it is due to fails.
                for job in group:
                    self._do([job])

    def _do_together(self, group: list[Any]) -> None:
        try:
            with self._store.exclusive(self._store.patience_s) as batch:  # type: ignore[attr-defined]
                self.ledger.now_on = batch
                for job in group:
                    _run(job)
        finally:
            self.ledger.now_on = self._store


def _run(job: Any) -> None:
    job.result = job.error = None
    try:
        job.result = job.work()
    except Exception as error:
        job.error = error


def _fail(group: list[Any], failure: Exception) -> None:
    for job in group:
        if job.error is None:
            job.result, job.error = None, failure
