"""The checker of histories finds what is wrong, and only that."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from accord.testing.histories.history import UNKNOWN, Commit, History, Key, Place, Read
from accord.testing.histories.registers import ABSENT, Step, check_registers, contradiction, has_order
from accord.testing.histories.revisions import check_revisions

A = ("box", "a")
B = ("box", "b")


def read(called: int, returned: float, value: bytes | None, revision: int, snapshot: int = 0, key: Place = A) -> Read:
    return Read("reader", called, returned, key, value, revision, snapshot or revision)


def write(
    called: int,
    returned: float,
    value: bytes | None,
    revision: int | None,
    base: int | None = None,
    key: Key = A,
) -> Commit:
    """A commit of one item: an unconditional one, or if the item is still at `base`."""
    return Commit("writer", called, returned, () if base is None else ((key, base),), {key: value}, revision)


def history(*operations: Read | Commit) -> History:
    return History(
        [operation for operation in operations if isinstance(operation, Commit)],
        [operation for operation in operations if isinstance(operation, Read)],
    )


GOOD: dict[str, list[Read | Commit]] = {
    "nothing": [],
    "one after another": [write(0, 1, b"x", 1), read(2, 3, b"x", 1), write(4, 5, b"y", 2, base=1), read(6, 7, b"y", 2)],
    "reads around a write": [write(0, 9, b"x", 1), read(1, 2, None, 0), read(3, 4, b"x", 1), read(5, 6, b"x", 1)],
    "three writes at once": [write(0, 9, b"x", 2), write(0, 9, b"y", 1), write(0, 9, b"z", 3), read(8, 9, b"y", 1, 1)],
    "deleted": [write(0, 1, b"x", 1), write(2, 3, None, 2), read(4, 5, None, 0, 2), write(6, 7, b"y", 3, base=0)],
    "unknown and never seen": [write(0, UNKNOWN, b"x", None), read(1, 2, None, 0), write(3, 4, b"y", 1, base=0)],
    "unknown and seen at once": [write(0, UNKNOWN, b"x", None), read(1, 2, b"x", 1)],
    "unknown and seen late": [
        write(0, UNKNOWN, b"x", None),
        write(1, 2, b"y", 1),
        read(3, 4, b"y", 1),
        read(5, 6, b"x", 2),
    ],
    "a chain of unknowns": [
        write(0, UNKNOWN, b"x", None),
        write(1, UNKNOWN, b"y", None, base=0),
        write(2, UNKNOWN, b"z", None),
        read(3, 4, b"z", 1),
    ],
    "an unknown delete": [
        write(0, 1, b"x", 1),
        write(2, UNKNOWN, None, None),
        read(3, 4, b"x", 1),
        read(5, 6, None, 0, 2),
    ],
    "a winner and an unknown one": [
        write(0, 1, b"x", 1),
        write(2, UNKNOWN, b"y", None, base=1),
        write(2, 5, b"z", 2, base=1),
        read(6, 7, b"z", 2),
    ],
}

NOT_LINEARIZABLE: dict[str, list[Read | Commit]] = {
    "stale read": [write(0, 1, b"x", 1), write(2, 3, b"y", 2), read(4, 5, b"x", 1)],
    "lost update": [
        write(0, 1, b"x", 1),
        read(2, 3, b"x", 1),
        read(2, 3, b"x", 1),
        write(4, 7, b"y", 2, base=1),
        write(5, 8, b"z", 3, base=1),
    ],
    "two winners of one compare-and-set": [write(0, 4, b"x", 1, base=0), write(1, 5, b"y", 2, base=0)],
    "value from nowhere": [write(0, 1, b"x", 1), read(2, 3, b"ghost", 2)],
    "value before it was written": [read(0, 1, b"x", 1), write(2, 3, b"x", 1)],
    "unknown value before it was written": [read(0, 1, b"x", 1), write(2, UNKNOWN, b"x", None)],
    "acknowledged write vanished": [write(0, 1, b"x", 1), read(2, 3, None, 0)],
    "acknowledged delete vanished": [write(0, 1, b"x", 1), write(2, 3, None, 2), read(4, 5, b"x", 1)],
    "read going back in time": [
        write(0, 1, b"x", 1),
        write(2, 9, b"y", 2),
        read(3, 4, b"y", 2),
        read(5, 6, b"x", 1),
    ],
    "unknown outcome happened twice": [
        write(0, UNKNOWN, b"x", None),
        read(1, 2, b"x", 1),
        write(3, 4, b"y", 2),
        read(5, 6, b"x", 3),
    ],
    "unknown compare-and-set against its check": [
        write(0, 1, b"x", 1),
        write(2, 3, b"y", 2, base=1),
        write(4, UNKNOWN, b"z", None, base=1),
        read(5, 6, b"z", 3),
    ],
}

WRONG_REVISIONS: dict[str, list[Read | Commit]] = {
    "two commits of one revision": [write(0, 1, b"x", 1), write(0, 1, b"y", 1, key=B)],
    "one commit of two revisions": [write(0, UNKNOWN, b"x", None), read(1, 2, b"x", 1), read(3, 4, b"x", 2)],
    "a commit before an earlier one": [write(0, 1, b"x", 2), write(2, 3, b"y", 1, key=B)],
    "a snapshot before an acknowledged commit": [write(0, 1, b"x", 1), read(2, 3, None, 0, key=B)],
    "a snapshot before an earlier one": [write(0, 9, b"x", 1), read(1, 2, b"x", 1), read(3, 4, None, 0, key=B)],
    "a commit that a snapshot had seen the end of": [read(0, 1, None, 0, 7, key=B), write(2, 3, b"x", 7)],
    "an item newer than its snapshot": [write(0, 9, b"x", 2), read(1, 2, b"x", 2, 1)],
    "a torn view of two items": [
        Commit("writer", 0, 9, (), {A: b"x", B: b"x"}, 1),
        read(1, 2, b"x", 1, 1, key=A),
        read(1, 2, None, 0, 1, key=B),
    ],
    "a revision under which another item was written": [
        write(0, 1, b"x", 1),
        write(2, 3, b"y", 2, key=B),
        write(4, UNKNOWN, b"z", None),
        read(4, 5, b"z", 2),
    ],
    "a value that nobody wrote, beside an unknown one": [write(0, UNKNOWN, b"x", None), read(1, 2, b"ghost", 1)],
    "another value under its revision": [
        write(0, 9, b"x", 1),
        write(0, 9, b"y", 2),
        read(1, 2, b"y", 1),
    ],
    "a head that missed a commit": [write(0, 9, b"x", 1), write(0, 9, b"y", 2), read(1, 2, None, 1, 2, ("box", None))],
    "a check of a collection that another commit passed": [
        write(0, 9, b"x", 1),
        write(0, 9, b"y", 2, key=B),
        Commit("writer", 0, 9, ((("box", None), 1),), {("other", "a"): b"z"}, 3),
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_is_accepted(name: str) -> None:
    check_registers(history(*GOOD[name]))
    check_revisions(history(*GOOD[name]))


@pytest.mark.parametrize("name", NOT_LINEARIZABLE)
def test_a_history_that_is_not_linearizable_is_rejected(name: str) -> None:
    with pytest.raises(AssertionError, match="box/a is not linearizable"):
        check_registers(history(*NOT_LINEARIZABLE[name]))


@pytest.mark.parametrize("name", WRONG_REVISIONS)
def test_a_history_with_wrong_revisions_is_rejected(name: str) -> None:
    with pytest.raises(AssertionError, match="revision"):
        check_revisions(history(*WRONG_REVISIONS[name]))


def test_a_store_that_began_anew_is_rejected() -> None:
    first = read(0, 1, None, 0)
    with pytest.raises(AssertionError, match="new history"):
        check_revisions(history(first, replace(first, epoch="another")))


def test_the_report_names_the_few_that_contradict() -> None:
    """In a chain of 300 compare-and-sets one read is stale; it and the two writes around it are told."""
    chain = [write(10 * n, 10 * n + 5, b"%d" % n, n + 1, base=n) for n in range(300)]
    with pytest.raises(AssertionError) as error:
        check_registers(history(*chain, read(2508, 2509, b"249", 250)))
    lines = str(error.value).splitlines()[1:]
    assert len(lines) == 3
    assert "249" in lines[0]
    assert "250" in lines[1]
    assert "read box/a = '249' at revision 250" in lines[2]


def test_unknown_steps_are_weighed_against_one_another() -> None:
    x, y = (b"x",), (b"y",)
    source = read(0, 1, None, 0)
    seen_by_another_only = [
        Step(0, 1, None, x, source),
        Step(2, UNKNOWN, None, y, source),
        Step(3, UNKNOWN, y, ABSENT, source),
        Step(4, 5, ABSENT, None, source),
    ]
    assert has_order(seen_by_another_only)
    the_choosy_one_first = [
        Step(0, UNKNOWN, None, x, source),
        Step(1, UNKNOWN, ABSENT, x, source),
        Step(2, 3, x, None, source),
        Step(4, 5, None, y, source),
        Step(6, 7, y, None, source),
        Step(8, 9, x, None, source),
    ]
    assert has_order(the_choosy_one_first)


# Against every order there is.


@st.composite
def few_steps(draw: st.DrawFn) -> list[Step]:
    """A few steps of any kind, at any times, on two values and none."""
    count = draw(st.integers(1, 5))
    times = draw(st.permutations(range(2 * count)))
    versions = st.sampled_from([ABSENT, (b"x",), (b"y",)])
    steps = []
    for called, returned in zip(times[::2], times[1::2], strict=True):
        kind = draw(st.sampled_from(["read", "write", "compare-and-set", "unknown write", "unknown compare-and-set"]))
        expects = None if kind.endswith("write") else draw(versions)
        writes = None if kind == "read" else draw(versions)
        called, returned = sorted([called, returned])
        source = read(called, returned, None, 0)
        steps.append(Step(called, UNKNOWN if kind.startswith("unknown") else returned, expects, writes, source))
    return steps


def explains(order: Sequence[Step]) -> bool:
    if any(later.returned < earlier.called for earlier, later in combinations(order, 2)):
        return False
    version = ABSENT
    for step in order:
        if step.expects not in (None, version):
            return False
        version = step.writes or version
    return True


def has_any_order(steps: list[Step]) -> bool:
    surely = [step for step in steps if step.returned != UNKNOWN]
    maybe = [step for step in steps if step.returned == UNKNOWN]
    return any(
        explains(order)
        for count in range(len(maybe) + 1)
        for happened in combinations(maybe, count)
        for order in permutations([*surely, *happened])
    )


@given(few_steps())
@settings(max_examples=400)
def test_the_verdict_is_that_of_trying_every_order(steps: list[Step]) -> None:
    verdict = has_any_order(steps)
    assert has_order(steps) == verdict
    if not verdict:
        assert not has_any_order(contradiction(steps))


# Long ones, made by a store that works, and then spoiled.


class Simulation:
    """Operations of a correct store on a few items: each takes effect at its moment, somewhere in its time."""

    def __init__(self, seed: int, keys: Sequence[Key], spread: int) -> None:
        self.random = random.Random(seed)
        self.keys = keys
        self.spread = spread
        self.moment = 0
        self.revision = 0
        self.items: dict[Key, tuple[bytes | None, int]] = dict.fromkeys(keys, (None, 0))
        self.operations: list[Read | Commit] = []

    def run(self, count: int) -> History:
        kinds = [self.read, self.read, self.write, self.write, self.lose, self.never]
        for _ in range(count):
            self.moment += 1000
            self.random.choice(kinds)()
        return history(*self.operations)

    def time(self) -> tuple[int, int]:
        around = self.random.randint
        return self.moment - around(0, self.spread), self.moment + around(0, self.spread)

    def read(self) -> None:
        called, returned = self.time()
        for key in self.random.sample(self.keys, self.random.randint(1, len(self.keys))):
            self.operations.append(read(called, returned, *self.items[key], self.revision, key))

    def write(self) -> None:
        called, returned = self.time()
        commit = self.commit(called, returned)
        self.happen(commit)
        self.operations.append(replace(commit, revision=self.revision))

    def lose(self) -> None:
        """It happens, and nobody is told."""
        commit = self.commit(self.time()[0], UNKNOWN)
        self.happen(commit)
        self.operations.append(commit)

    def never(self) -> None:
        """It does not happen, and nobody is told."""
        self.operations.append(self.commit(self.time()[0], UNKNOWN))

    def commit(self, called: int, returned: float) -> Commit:
        checked = [key for key in self.keys if self.random.random() < 0.3]
        written = self.random.sample(self.keys, self.random.randint(1, len(self.keys)))
        value = None if self.random.random() < 0.1 else b"%d" % self.moment
        checks = tuple((key, self.items[key][1]) for key in checked)
        return Commit("writer", called, returned, checks, dict.fromkeys(written, value), None)

    def happen(self, commit: Commit) -> None:
        self.revision += 1
        for key, value in commit.writes.items():
            self.items[key] = (value, 0 if value is None else self.revision)


seeds = st.integers(0, 2**32)


@given(seeds, st.integers(1, 3), st.sampled_from([0, 500, 3000]))
@settings(max_examples=60)
def test_what_a_correct_store_did_is_accepted(seed: int, keys: int, spread: int) -> None:
    done = Simulation(seed, [("box", f"k{n}") for n in range(keys)], spread).run(60)
    check_registers(done)
    check_revisions(done)


def writers(done: History) -> list[Commit]:
    """The acknowledged commits that wrote a value to A."""
    return [commit for commit in done.commits if commit.revision is not None and commit.writes[A] is not None]


def end_of(done: History) -> int:
    calls = [commit.called for commit in done.commits] + [read.called for read in done.reads]
    return max(calls) + 10_000


def make_stale(done: History) -> History | None:
    """A read gives a value that was replaced before the read was called."""
    for old, new in pairwise(writers(done)):
        for late in done.reads:
            if old.returned < new.called and new.returned < late.called:
                return replace(done, reads=[*done.reads, replace(late, value=old.writes[A])])
    return None


def go_back(done: History) -> History | None:
    """At the end of all things, one value is read, then the next, then the first again."""
    if len(writers(done)) < 2:
        return None
    first, second = [commit.writes[A] for commit in writers(done)[-2:]]
    late = [read(end_of(done) + n, end_of(done) + n, value, 0) for n, value in enumerate([first, second, first])]
    return replace(done, reads=[*done.reads, *late])


def forget_a_write(done: History) -> History | None:
    """A value is read, and who wrote it is not known."""
    for commit in done.commits:
        if commit.writes[A] in {read.value for read in done.reads} - {None}:
            return replace(done, commits=[other for other in done.commits if other is not commit])
    return None


def win_twice(done: History) -> History | None:
    """A compare-and-set succeeds once more, with another value."""
    known = {commit.revision for commit in writers(done)}
    for commit in writers(done):
        if any(base in known for _, base in commit.checks):
            return replace(done, commits=[*done.commits, replace(commit, writes={A: b"twin"})])
    return None


def lose_a_write(done: History) -> History | None:
    """Nobody ever deleted the item, and it is gone."""
    if not writers(done) or any(commit.writes[A] is None for commit in done.commits):
        return None
    return replace(done, reads=[*done.reads, read(end_of(done), end_of(done), None, 0)])


@pytest.mark.parametrize("spoil", [make_stale, go_back, forget_a_write, win_twice, lose_a_write])
def test_what_is_spoiled_is_rejected(spoil: Callable[[History], History | None]) -> None:
    # Not every history can be spoiled in every way.
    @given(seeds, st.integers(1, 40), st.sampled_from([0, 500, 3000]))
    @settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
    def reject(seed: int, count: int, spread: int) -> None:
        spoiled = spoil(Simulation(seed, [A], spread).run(count))
        assume(spoiled is not None)
        assert spoiled is not None
        with pytest.raises(AssertionError, match="not linearizable"):
            check_registers(spoiled)

    reject()


@pytest.mark.parametrize("spread", [0, 4000])
def test_500_operations_are_judged_in_a_second(spread: int) -> None:
    good = Simulation(1, [A], spread).run(500)
    bad = go_back(good)
    assert bad is not None
    started = time.process_time()
    check_registers(good)
    with pytest.raises(AssertionError):
        check_registers(bad)
    assert time.process_time() - started < 4.0
