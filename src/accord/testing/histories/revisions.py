"""The revisions order the whole store: they agree with the clock, and explain every snapshot and every check."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from accord.testing.histories.history import Commit, History, Place, Read, name, table


def check_revisions(history: History) -> None:
    epochs = {read.epoch for read in history.reads}
    assert len(epochs) <= 1, f"the store began a new history: snapshots had the epochs {sorted(epochs)}"
    order = _Order(history)
    _check_clock(list(_moments(history, order)))
    for commit in history.commits:
        revision = order.revision_of(commit)
        if revision is not None:
            as_of = revision - 1 if commit.writes else revision
            for place, expected in commit.checks:
                order.check(place, expected, as_of, commit)
    for read in history.reads:
        order.check(read.place, read.revision, read.snapshot, read)


class _Order:
    """The commits by their revisions, also those of unknown outcome whose revision somebody saw."""

    def __init__(self, history: History) -> None:
        self._unsettled = history.unsettled
        self._commits: dict[int, Commit] = {}
        self._revisions: dict[Commit, int] = {}
        for commit in history.commits:
            if commit.revision is not None and commit.writes:
                self._place(commit, commit.revision)
        self._place_the_seen(history)
        self._open = [commit for commit in history.commits if self.revision_of(commit) is None]
        self._touched: dict[Place, list[int]] = defaultdict(list)
        for revision, commit in sorted(self._commits.items()):
            for place in {*commit.writes, *((collection, None) for collection in commit.collections)}:
                self._touched[place].append(revision)

    def revision_of(self, commit: Commit) -> int | None:
        return self._revisions.get(commit, commit.revision)

    def check(self, place: Place, revision: int, as_of: int, source: Read | Commit) -> None:
        """As of one revision of the store, the place must have had another: that of the last commit to touch it."""
        collection, id = place
        if id is not None and collection in self._unsettled:
            return
        touched = self._touched[place]
        before = bisect_right(touched, as_of)
        last = touched[before - 1] if before else 0
        value = self._commits[last].writes[collection, id] if last and id is not None else None
        is_deleted = last and id is not None and value is None
        if revision == (0 if is_deleted else last) and (isinstance(source, Commit) or source.value == value):
            return
        if not self._may_be_open(place, revision, last, as_of, source.returned):
            involved = [source, *([self._commits[last]] if last else [])]
            raise AssertionError(f"{name(place)} was not at revision {revision} as of {as_of}:\n{table(involved)}")

    def _place(self, commit: Commit, revision: int) -> None:
        other = self._commits.setdefault(revision, commit)
        assert other is commit, f"two commits have the revision {revision}:\n{table([other, commit])}"
        first = self._revisions.setdefault(commit, revision)
        assert first == revision, f"one commit has the revisions {first} and {revision}:\n{table([commit])}"

    def _place_the_seen(self, history: History) -> None:
        writers: dict[tuple[Place, bytes | None], list[Commit]] = defaultdict(list)
        for commit in history.commits:
            if commit.revision is None:
                for key, value in commit.writes.items():
                    writers[key, value].append(commit)
        acknowledged = set(self._commits)
        for read in history.reads:
            if read.value is None or read.revision in acknowledged or read.place[0] in self._unsettled:
                continue
            found = writers[read.place, read.value]
            assert found, f"nobody wrote this:\n{table([read])}"
            if len(found) == 1:
                self._place(found[0], read.revision)

    def _may_be_open(self, place: Place, revision: int, last: int, as_of: int, returned: float) -> bool:
        """Whether a commit of unknown outcome, of which nobody saw the revision, can explain what was found."""
        open_here = [commit for commit in self._open if commit.called <= returned and commit.touches(place)]
        if revision == 0 and place[1] is not None:
            return any(commit.writes[place[0], place[1]] is None for commit in open_here)
        return bool(open_here) and last < revision <= as_of and revision not in self._commits


class _Moment(NamedTuple):
    """Something that a revision dates."""

    called: int
    returned: float
    revision: int
    makes_it: bool  # a commit makes its revision, a snapshot only sees it
    source: Read | Commit


def _moments(history: History, order: _Order) -> Iterator[_Moment]:
    for commit in history.commits:
        revision = order.revision_of(commit)
        if revision is not None:
            yield _Moment(commit.called, commit.returned, revision, bool(commit.writes), commit)
    for read in history.reads:
        yield _Moment(read.called, read.returned, read.snapshot, False, read)


def _check_clock(moments: Sequence[_Moment]) -> None:
    """What was called after something returned has a later revision, or for a snapshot at least as late a one."""
    returned = sorted(moments, key=lambda moment: moment.returned)
    over = 0
    latest: _Moment | None = None
    for moment in sorted(moments, key=lambda moment: moment.called):
        while returned[over].returned < moment.called:
            if latest is None or returned[over].revision > latest.revision:
                latest = returned[over]
            over += 1
        if latest is not None and moment.revision < latest.revision + moment.makes_it:
            both = table([latest.source, moment.source])
            raise AssertionError(f"revisions go back in time, from {latest.revision} to {moment.revision}:\n{both}")
