"""The watch of the engines that ring a bell."""

import _thread
import time

from accord import errors
from accord.store.contract import Change
from accord.store.local.ear import Ear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from accord.store.contract import Opened
    from accord.store.local.bell import Bell

    class Source(Protocol):
        def changes(self, since: int) -> "Log": ...

        def sync(self) -> None: ...


class Log:
    """A page of the change log."""

    __slots__ = ("changes", "epoch", "floor", "revision")

    def __init__(self, epoch: str, floor: int, revision: int, changes: list[Change]) -> None:
        self.epoch = epoch
        self.floor = floor  # the newest revision whose change is forgotten
        self.revision = revision  # the newest one, or the page's last if there are more
        self.changes = changes


class FileWatch:
    """Gives out what is durable only, so that a revision a subscriber keeps is never taken back."""

    def __init__(
        self, source: "Source", opened: "Opened", bell: "Bell", prefixes: "Sequence[str]", since: int, epoch: str
    ) -> None:
        self.revision = since
        self._source = source
        self._opened = opened
        self._bell = bell
        self._prefixes = tuple(prefixes)
        self._ready: list[Change] = []  # newest first
        self._closed = False
        self._in_use = _thread.allocate_lock()
        self._ear: Ear | None = None  # from the first wait on: systems have few of what it needs
        log = source.changes(since)
        self._epoch = epoch or log.epoch
        self._check(log)

    def __enter__(self) -> "FileWatch":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def next(self, timeout_s: float) -> Change | None:
        self._opened.check_process()  # it may have taken in more changes than it gave out
        with self._in_use:
            try:
                return self._next(timeout_s)
            finally:
                if self._closed:
                    self._stop_hearing()

    def close(self) -> None:
        self._closed = True
        if self._in_use.acquire(False):
            self._stop_hearing()
            self._in_use.release()
        elif self._ear is not None:
            self._ear.wake()  # the one who waits closes it

    def _stop_hearing(self) -> None:
        if self._ear is not None:
            self._ear.close()

    def _next(self, timeout_s: float) -> Change | None:
        deadline = time.monotonic() + timeout_s
        rung = True
        while not self._closed:
            while not self._ready and self._look(even_unrung=not rung):
                pass
            if self._ready:
                change = self._ready.pop()
                self.revision = change.revision
                return change
            left_s = deadline - time.monotonic()
            if left_s <= 0 and not rung:
                return None
            if self._ear is None and left_s > 0:
                self._ear = Ear(self._bell)  # and look again: it has heard nothing of what came before
                continue
            rung = left_s > 0 and self._ear is not None and self._ear.wait(left_s)
        return None

    def _look(self, even_unrung: bool) -> bool:
        """Take in a page of what is new; whether there was any.

        A writer that died before it rang leaves commits for the look that is made anyway.
        """
        log = self._source.changes(self.revision)
        self._check(log)
        durable = self._bell.heard(self._epoch)
        if even_unrung and log.revision > durable:
            self._source.sync()
            durable = log.revision
        for change in log.changes:
            if change.revision <= durable:
                keys = tuple(key for key in change.keys if key[0].startswith(self._prefixes))
                if keys:
                    self._ready.append(Change(change.revision, keys))
        self._ready.reverse()
        looked_up_to = max(self.revision, min(log.revision, durable))
        moved_on = looked_up_to > self.revision
        if not self._ready:
            self.revision = looked_up_to
        return moved_on

    def _check(self, log: Log) -> None:
        if log.epoch != self._epoch or self.revision < log.floor or self.revision > log.revision:
            raise errors.HistoryGone(since=self.revision, oldest=log.floor)
