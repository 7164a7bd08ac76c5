"""Each item by itself is linearizable. This looks at values, and takes revisions only for names of versions."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from accord.testing.histories.history import UNKNOWN, Commit, History, Key, Read, name, table

Version = tuple[bytes | None]  # a value, in a tuple of its own since it is None where there is no item

ABSENT: Version = (None,)


class Step(NamedTuple):
    """What a read or a commit means to one item."""

    called: int
    returned: float
    expects: Version | None  # None: anything
    writes: Version | None  # None: nothing; a step of unknown outcome writes something
    source: Read | Commit


def check_registers(history: History) -> None:
    for key, steps in sorted(_registers(history).items()):
        if not has_order(steps):
            raise AssertionError(
                f"{name(key)} is not linearizable: no order of its {len(steps)} operations explains them all. "
                f"These contradict one another already:\n{table(step.source for step in contradiction(steps))}"
            )


def has_order(steps: Sequence[Step]) -> bool:
    """Whether some order explains the steps and has each of them between its call and its return.

    This is the search of Wing and Gong, with Lowe's memory of the places where it has been.
    """
    search = _Search(steps)
    been = set()
    ahead = [_Place(0, 0, 0, ABSENT)]
    while ahead:
        place = ahead.pop()
        if place.first == len(search.certain):
            return True
        if place not in been:
            been.add(place)
            ahead += search.next_places(place)
    return False


def contradiction(steps: Sequence[Step]) -> list[Step]:
    """A few of these steps that have no order either: of the shortest beginning without one, those that matter."""
    ends = sorted({step.returned for step in steps if step.returned != UNKNOWN})
    few = _until(steps, ends[bisect_left(ends, True, key=lambda end: not has_order(_until(steps, end)))])
    while True:
        fewer = _thinned(_thinned(few, _drop), _relax)
        if fewer == few:
            return few
        few = fewer


def _registers(history: History) -> dict[Key, list[Step]]:
    """The steps of each item, save in collections where nobody can tell what lies under which number."""
    versions = _named_versions(history)
    found: dict[Key, list[Step]] = defaultdict(list)
    for read in history.reads:
        collection, id = read.place
        if id is not None:
            found[collection, id].append(Step(read.called, read.returned, (read.value,), None, read))
    for commit in history.commits:
        expected = {
            (collection, id): versions.get(((collection, id), revision))
            for (collection, id), revision in commit.checks
            if id is not None
        }
        for key in expected.keys() | commit.writes.keys():
            expects = expected.get(key)
            writes = (commit.writes[key],) if key in commit.writes else None
            if writes or (expects and commit.returned != UNKNOWN):
                found[key].append(Step(commit.called, commit.returned, expects, writes, commit))
    unsettled = history.unsettled
    return {key: steps for key, steps in found.items() if key[0] not in unsettled}


def _named_versions(history: History) -> dict[tuple[Key, int], Version]:
    """What an item's revision stands for, as far as anybody was told."""
    named: dict[tuple[Key, int], Version] = {}
    for commit in history.commits:
        for key, value in commit.writes.items():
            named[key, 0] = ABSENT
            if commit.revision is not None:
                named[key, commit.revision] = (value,)
    for read in history.reads:
        collection, id = read.place
        if id is not None:
            named[(collection, id), read.revision] = (read.value,)
    return named


class _Place(NamedTuple):
    """How far a search has come."""

    first: int  # all the certain steps before this one are done, it is not
    done: int  # which of those after it are done too, bit by bit; the lowest bit stands for it
    used: int  # which of the uncertain steps are done, or can no longer be
    version: Version


class _Search:
    """The steps that happened, and those that may have; each kind in the order of the calls."""

    def __init__(self, steps: Sequence[Step]) -> None:
        settled = sorted(_settled(steps), key=lambda step: step.called)
        self.certain = [step for step in settled if step.returned != UNKNOWN]
        self.uncertain = [step for step in settled if step.returned == UNKNOWN]
        self._spent = self._expecting_what_comes_once()

    def next_places(self, place: _Place) -> list[_Place]:
        """Where one more step leads to, the likeliest last: none that was called after another one returned."""
        first, done, _, version = place
        found: list[tuple[float, _Place]] = []
        earliest = UNKNOWN
        for i in range(first, len(self.certain)):
            step = self.certain[i]
            if step.called > earliest:
                break
            if done >> (i - first) & 1:
                continue
            earliest = min(earliest, step.returned)
            if step.expects is None or step.expects == version:
                there = self._after(step, _advanced(place, i - first))
                if step.writes is None:
                    return [there]  # it changes nothing, so if it can come now, it may as well
                found.append((step.returned, there))
        found.sort(key=lambda pair: -pair[0])
        return [*self._uncertain_places(place, earliest), *(there for _, there in found)]

    def _uncertain_places(self, place: _Place, earliest: float) -> Iterator[_Place]:
        tried = set()
        for i, step in enumerate(self.uncertain):
            if step.called > earliest:
                break
            effect = (step.expects, step.writes)
            # Of several that would do the same, it is enough to try the first.
            if not place.used >> i & 1 and step.expects in (None, place.version) and effect not in tried:
                tried.add(effect)
                yield self._after(step, place._replace(used=place.used | 1 << i))

    def _after(self, step: Step, place: _Place) -> _Place:
        """The version that the step leaves. A version gone for good takes with it those that would expect it."""
        if step.writes is None:
            return place
        return place._replace(version=step.writes, used=place.used | self._spent.get(place.version, 0))

    def _expecting_what_comes_once(self) -> dict[Version, int]:
        """For each version that is written once, the uncertain steps that expect it."""
        writers = Counter([ABSENT, *(step.writes for step in [*self.certain, *self.uncertain])])
        found: dict[Version, int] = defaultdict(int)
        for i, step in enumerate(self.uncertain):
            if step.expects and writers[step.expects] == 1:
                found[step.expects] |= 1 << i
        return found


def _advanced(place: _Place, offset: int) -> _Place:
    """One more certain step is done: the one this far behind the first that was not."""
    done = place.done | 1 << offset
    passed = (~done & (done + 1)).bit_length() - 1  # the ones at its lower end
    return place._replace(first=place.first + passed, done=done >> passed)


def _settled(steps: Sequence[Step]) -> list[Step]:
    """Decide the unknown outcome of a step that alone can have written its version.

    It happened before anybody saw that version; if nobody did, it is as if it had not happened.
    """
    settled = list(steps)
    writers = Counter([ABSENT, *(step.writes for step in steps)])
    while True:
        seen_by: dict[Version, float] = {}
        for step in settled:
            if step.expects and step.returned < seen_by.get(step.expects, UNKNOWN):
                seen_by[step.expects] = step.returned
        happened = [i for i, step in enumerate(settled) if _is_open(step, writers) and step.writes in seen_by]
        for i in happened:
            settled[i] = settled[i]._replace(returned=seen_by[settled[i].writes or ABSENT])
        if not happened:
            break
    expected = {step.expects for step in settled}
    return [step for step in settled if not _is_open(step, writers) or step.writes in expected]


def _is_open(step: Step, writers: Counter[Version | None]) -> bool:
    return step.returned == UNKNOWN and writers[step.writes] == 1


def _until(steps: Sequence[Step], end: float) -> list[Step]:
    """What was known then: of what had not returned yet, only that it was called."""
    return [
        step if step.returned <= end else step._replace(returned=UNKNOWN)
        for step in steps
        if step.called <= end and (step.returned <= end or step.writes)
    ]


def _thinned(steps: list[Step], thin: Callable[[list[Step], list[Step]], list[Step]]) -> list[Step]:
    """Thin the steps out as far as they still have no order, in large pieces first."""
    size = len(steps)
    while size:
        at = 0
        while at < len(steps):
            piece = thin(steps[at : at + size], steps)
            fewer = steps[:at] + piece + steps[at + size :]
            if fewer == steps or has_order(fewer):
                at += size
            else:
                steps = fewer
                at += len(piece)
        size //= 2
    return steps


def _drop(piece: list[Step], steps: list[Step]) -> list[Step]:
    """Without the steps on which no other depends: an order of all would be one of the rest."""
    expected = {step.expects for step in steps}
    return [step for step in piece if step.writes and step.writes in expected]


def _relax(piece: list[Step], steps: list[Step]) -> list[Step]:
    """With writes that expect nothing: an order of the strict ones would be one of them."""
    return [step._replace(expects=None) if step.writes else step for step in piece]
