"""Each item by itself is linearizable. This looks at values, and takes revisions only for names of versions."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
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
    steps = sorted(_settled(steps), key=lambda step: step.called)
    needed = sum(1 << i for i, step in enumerate(steps) if step.returned != UNKNOWN)
    been = set()
    ahead = [(0, ABSENT)]
    while ahead:
        place = done, version = ahead.pop()
        if done & needed == needed:
            return True
        if place not in been:
            been.add(place)
            ahead += [(done | 1 << i, steps[i].writes or version) for i in _next_steps(steps, done, version)]
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


def _next_steps(steps: Sequence[Step], done: int, version: Version) -> list[int]:
    """The steps that can come next, the likeliest last: none that was called after another one returned."""
    found: list[int] = []
    earliest = UNKNOWN
    first = (~done & (done + 1)).bit_length() - 1
    for i in range(first, len(steps)):
        step = steps[i]
        if done >> i & 1:
            continue
        if step.called > earliest:
            break
        earliest = min(earliest, step.returned)
        if step.expects is None or step.expects == version:
            if step.writes is None:
                return [i]  # it changes nothing, so if it can come now, it may as well
            if not any(_are_twins(step, steps[j]) for j in found):
                found.append(i)
    return sorted(found, key=lambda i: steps[i].returned, reverse=True)


def _are_twins(one: Step, other: Step) -> bool:
    """Of several steps that may have happened and would do the same, it is enough to try the first."""
    return one.returned == other.returned == UNKNOWN and one.expects == other.expects and one.writes == other.writes


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
