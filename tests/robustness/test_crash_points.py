"""A process killed before any one of the system calls that change its home leaves all of a change or nothing."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from accord.store.open import open_store
from accord.store.transaction import transact
from tests.robustness import strace
from tests.robustness.homes import ENGINES, acknowledged, check_store, prepare, url_in
from tests.robustness.worker import RESTART_EVERY, change

FRAME_BYTES = 2048 + 24  # of a page in SQLite's WAL
CHECKPOINT_AT = 1000  # frames: SQLite's own limit, which every connection of the engine keeps


class Action:
    """What a worker does, on a home made by `prepare`, and the calls without which it would be something else."""

    def __init__(self, prepare: Callable[[str, Path], int], changes: int, must_do: dict[str, list[str]]) -> None:
        self.prepare = prepare  # makes the home, and says how many changes it holds
        self.changes = changes  # that the worker makes
        self.must_do = must_do  # engine -> pieces of its system calls


def nothing(engine: str, home: Path) -> int:
    return 0


def three_changes(engine: str, home: Path) -> int:
    prepare(engine, home, (1, 2, 3))
    return 3


def killed_home(engine: str, home: Path) -> int:
    """A worker was killed right after its change became durable; the next user has to find that out."""
    whole = home.with_name("undisturbed")
    points = points_of(engine, three := home.with_name("three"), three_changes(engine, three), 4, whole)
    flush = next(at for at, call in enumerate(points) if COMMITS[engine] in call.text)
    copy(three, home)
    strace.kill_at(points[flush + 1], [url_in(engine, home), "4", "4"], home.with_name("killed.log"))
    return 4


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
    return wal.exists() and wal.stat().st_size > (CHECKPOINT_AT - 10) * FRAME_BYTES


def _journal_is_nearly_full(home: Path, changes: int) -> bool:
    return changes == RESTART_EVERY - 1


LOG_IS_NEARLY_FULL = {"sqlite": _wal_is_nearly_full, "files": _journal_is_nearly_full}

# The flush that makes a change durable.
COMMITS = {"sqlite": "store.db-wal>) = 0", "files": "journal>) = 0", "files-mkdir": "journal>) = 0"}

ACTIONS = {
    "create": Action(nothing, 0, {"sqlite": ["rename("], "files": ["link("], "files-mkdir": ["link("]}),
    "commit": Action(three_changes, 1, {engine: ["fdatasync("] for engine in ENGINES}),
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
CASES = [(engine, action) for engine in ENGINES for action in ACTIONS if (engine, action) != ("files-mkdir", "tidy")]


@pytest.mark.covers("S4")
@pytest.mark.parametrize(("engine", "action"), CASES)
def test_killed_at_any_call(engine: str, action: str, quick_path: Path) -> None:
    prepared = quick_path / "prepared"
    before = ACTIONS[action].prepare(engine, prepared)
    after = before + ACTIONS[action].changes
    points = points_of(engine, prepared, before, after, quick_path / "whole")
    for piece in ACTIONS[action].must_do[engine]:
        assert any(piece in call.text for call in points), f"the worker did not {piece}"
    with ThreadPoolExecutor(2) as pool:
        list(
            pool.map(
                lambda at: killed(engine, prepared, points[at], before, after, quick_path / f"k{at}"),
                range(len(points)),
            )
        )


def points_of(engine: str, prepared: Path, before: int, after: int, home: Path) -> list[strace.Call]:
    """The calls of a worker that nobody disturbs."""
    copy(prepared, home)
    whole = strace.run([url_in(engine, home), str(before + 1), str(after)], home.with_suffix(".log"))
    assert (whole.status, whole.complaints) == (0, "")
    assert acknowledged(whole.said) == tuple(range(before + 1, after + 1))
    return strace.calls_on(home, whole.log)


def killed(engine: str, prepared: Path, call: strace.Call, before: int, after: int, home: Path) -> None:
    """Kill a worker at the call, and look at what it leaves."""
    copy(prepared, home)
    run = strace.kill_at(call, [url_in(engine, home), str(before + 1), str(after)], home.with_suffix(".log"))
    last = run.log.splitlines()[-2:]
    assert run.status == -9, f"not killed at {call}"
    assert str(home) in last[0], f"killed at another call than {call}:\n{last}"
    assert last[1].endswith("+++ killed by SIGKILL +++"), last
    found = check_store(engine, home)
    promised = max(acknowledged(run.said), default=before)
    assert found == tuple(range(1, len(found) + 1)), call
    assert promised <= len(found) <= after, f"{promised} of {after} acknowledged, {len(found)} there after {call}"
    shutil.rmtree(home)


def copy(prepared: Path, home: Path) -> None:
    if prepared.exists():
        shutil.copytree(prepared, home)
