"""A process killed before any one of the system calls that change its home leaves all of a change or nothing."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from accord.store.engines.sqlite.link import CHECKPOINT_PAGES
from accord.store.open import open_store
from accord.store.transaction import transact
from tests.often import some_of
from tests.robustness import strace
from tests.robustness.homes import ENGINES, acknowledged, check_store, prepare, url_in
from tests.robustness.worker import RESTART_EVERY, change

FRAME_BYTES = 2048 + 24  # of a page in SQLite's WAL


@dataclass(frozen=True)
class Job:
    """A worker's: on a copy of the home `prepared`, with the changes up to `before`, make those up to `after`."""

    engine: str
    prepared: Path
    before: int
    after: int
    how: tuple[str, ...] = ()  # further arguments of the worker

    def start(self, home: Path) -> list[str]:
        """Make the home; the worker's arguments."""
        if self.prepared.exists():
            shutil.copytree(self.prepared, home)
        return [url_in(self.engine, home), str(self.before + 1), str(self.after), *self.how]


class Action:
    """What a worker does, on a home made by `prepare`, and the calls without which it would be something else."""

    def __init__(
        self, prepare: Callable[[str, Path], int], changes: int, must_do: dict[str, list[str]], *how: str
    ) -> None:
        self.prepare = prepare  # makes the home, and says how many changes it holds
        self.changes = changes  # that the worker makes
        self.must_do = must_do  # engine -> pieces of its system calls
        self.how = how

    def job(self, engine: str, prepared: Path) -> Job:
        before = self.prepare(engine, prepared)
        return Job(engine, prepared, before, before + self.changes, self.how)


def nothing(engine: str, home: Path) -> int:
    return 0


def three_changes(engine: str, home: Path) -> int:
    prepare(engine, home, (1, 2, 3))
    return 3


def killed_home(engine: str, home: Path) -> int:
    """A worker was killed right after its change became durable; the next user has to find that out."""
    job = Job(engine, home.with_name("three"), three_changes(engine, home.with_name("three")), 4)
    points = points_of(job, home.with_name("undisturbed"))
    flush = next(at for at, call in enumerate(points) if COMMITS[engine] in call.text)
    strace.kill_at(points[flush + 1], job.start(home), home.with_name("killed.log"))
    return job.after


def nearly_full_log(engine: str, home: Path) -> int:
    """So many changes that one of the next makes the engine tidy up."""
    n = 0
    with closing(open_store(url_in(engine, home))) as store:
        while not LOG_IS_NEARLY_FULL[engine](home, n):
            n += 1
            transact(store, change(n))
    return n


def _wal_is_nearly_full(home: Path, changes: int) -> bool:
    wal = home / "store.db-wal"
    return wal.exists() and wal.stat().st_size > (CHECKPOINT_PAGES - 10) * FRAME_BYTES


def _journal_is_nearly_full(home: Path, changes: int) -> bool:
    return changes == RESTART_EVERY - 1


LOG_IS_NEARLY_FULL = {"sqlite": _wal_is_nearly_full, "files": _journal_is_nearly_full}

# The flush that makes a change durable.
COMMITS = {"sqlite": "store.db-wal>) = 0", "files": "journal>) = 0", "files-mkdir": "journal>) = 0"}

ACTIONS = {
    "create": Action(nothing, 0, {"sqlite": ["rename("], "files": ["link("], "files-mkdir": ["link("]}),
    "commit": Action(three_changes, 1, {engine: ["fdatasync("] for engine in ENGINES}),
    "together": Action(three_changes, 4, {engine: ["fdatasync("] for engine in ENGINES}, "together"),
    "recover": Action(killed_home, 1, {engine: ["fdatasync("] for engine in ENGINES}),
    "tidy": Action(
        nearly_full_log,
        3,
        {
            # The database is written, then the WAL from its start again.
            "sqlite": ['store.db>, "SQLite format 3', 'store.db-wal>, "7\\177\\6\\202'],
            "files": ["syncfs(", "journal.new"],
        },
    ),
}


# The kind of lock makes no difference to how the files engine tidies up.
CASES = [
    pytest.param(engine, action, marks=[pytest.mark.more] if engine == "files-mkdir" else [])
    for engine in ENGINES
    for action in ACTIONS
    if (engine, action) != ("files-mkdir", "tidy")
]


@pytest.mark.covers("S4")
@pytest.mark.parametrize(("engine", "action"), CASES)
def test_killed_at_any_call(engine: str, action: str, quick_path: Path) -> None:
    job = ACTIONS[action].job(engine, quick_path / "prepared")
    points = points_of(job, quick_path / "whole")
    for piece in ACTIONS[action].must_do[engine]:
        assert any(piece in call.text for call in points), f"the worker did not {piece}"
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda at: killed(job, points[at], quick_path / f"k{at}"), some_of(len(points))))


def points_of(job: Job, home: Path) -> list[strace.Call]:
    """The calls of a worker that nobody disturbs."""
    whole = strace.run(job.start(home), home.with_suffix(".log"))
    assert (whole.status, whole.complaints) == (0, "")
    assert acknowledged(whole.said) == tuple(range(job.before + 1, job.after + 1))
    return strace.calls_on(home, whole.log)


def killed(job: Job, call: strace.Call, home: Path) -> None:
    """Kill a worker at the call, and look at what it leaves."""
    run = strace.kill_at(call, job.start(home), home.with_suffix(".log"))
    last = run.log.splitlines()[-2:]
    assert run.status == -9, f"not killed at {call}"
    assert str(home) in last[0], f"killed at another call than {call}:\n{last}"
    assert last[1].endswith("+++ killed by SIGKILL +++"), last
    check_left(job, home, run.said, call)
    shutil.rmtree(home)


def check_left(job: Job, home: Path, said: str, where: object) -> None:
    """What a worker left holds all that it acknowledged, and nothing but a beginning of its changes."""
    found = check_store(job.engine, home)
    promised = max(acknowledged(said), default=job.before)
    assert found == tuple(range(1, len(found) + 1)), where
    assert promised <= len(found) <= job.after, f"{promised} acknowledged, {len(found)} there after {where}"
