"""The log of changes, for the watch: of this journal, and of earlier ones in files named by their first revision."""

import os
from itertools import pairwise

from accord import errors
from accord.store.contract import MAX_PAGE, Change
from accord.store.engines.files import records
from accord.store.engines.files.disk import Behind
from accord.store.engines.files.journal import Journal
from accord.store.engines.files.redo import write_new
from accord.store.engines.files.shelves import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.files.state import State


class ChangeLog:
    def __init__(self, root: str) -> None:
        self._root = root
        self._place = (-1, 0, 0)  # a journal's base, a revision in it, and where that record ends

    def page(self, since: int, state: "State") -> tuple[int, list[Change]]:
        """The changes that follow `since`, and the revision up to which they tell all."""
        if since < state.base:
            changes = self._of_earlier(since, state) if since >= state.floor else []
            return changes[-1].revision if changes else state.revision, changes
        changes = self._of_journal(since, state)
        return state.revision if len(changes) < MAX_PAGE else changes[MAX_PAGE - 1].revision, changes[:MAX_PAGE]

    def write(self, changes: list[Change]) -> None:
        """Keep those of a journal that is about to end."""
        lines = [f"{change.revision} {' '.join([word for key in change.keys for word in key])}" for change in changes]
        path = self._path(changes[0].revision)
        write_new(f"{path}.new", ("\n".join(lines) + "\n").encode())
        os.rename(f"{path}.new", path)

    def old(self, up_to: int, floor: int) -> tuple[list[int], int]:
        """The logs that hold nothing after `up_to`, and what the floor is without them."""
        old = [(log, following - 1) for log, following in pairwise(self._logs()) if following - 1 <= up_to]
        return [log for log, _ in old], max([floor, *[end for _, end in old]])

    def remove(self, log: int) -> None:
        try:
            os.unlink(self._path(log))
        except OSError:
            pass  # the next restart finds it again

    def _path(self, log: int) -> str:
        return f"{self._root}/log/{log:016d}"

    def _logs(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(f"{self._root}/log") if name.isdigit())

    def _of_earlier(self, since: int, state: "State") -> list[Change]:
        """Those after `since`, which the floor says are kept, out of one log."""
        first = max((log for log in self._logs() if log <= since + 1), default=0)
        data = read(self._path(first)) or b""
        changes = [_parse(line) for line in data.decode().splitlines()]
        changes = [change for change in changes if change.revision > since]
        if not changes or changes[0].revision != since + 1:
            raise errors.HistoryGone(since=since, oldest=state.base)  # somebody removed the log
        return changes

    def _of_journal(self, since: int, state: "State") -> list[Change]:
        journal = Journal(f"{self._root}/journal")
        try:
            if journal.base != state.base:
                raise Behind
            base, revision, place = self._place
            start = place if (base, revision) == (state.base, since) else journal.start
            found, end = records.read(journal, start, state.end)
        finally:
            journal.close()
        self._place = state.base, state.revision, end
        return [record.change() for record in found if record.revision > since]


def _parse(line: str) -> Change:
    revision, *words = line.split(" ")
    return Change(int(revision), tuple(zip(words[::2], words[1::2], strict=True)))
