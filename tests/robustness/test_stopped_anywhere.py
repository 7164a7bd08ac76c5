"""A process that is stopped at any of the system calls of a commit: others commit, or are told that they wait."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from accord import errors
from accord.store.engines import files
from accord.store.open import open_store
from accord.store.transaction import transact
from tests.need import need
from tests.robustness import strace
from tests.robustness.homes import ENGINES, WORKER, WORKER_ENV, acknowledged, check_store, contents, prepare, url_in
from tests.robustness.test_crash_points import Job, points_of
from tests.robustness.worker import change

WAIT_S = 0.3

# SQLite waits 10 s by itself for one that stopped while it made the shared memory: many at once do not take longer.
AT_ONCE = 10


@pytest.mark.more
@pytest.mark.covers("S4")
@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL], ids=["goes-on", "is-killed"])
@pytest.mark.parametrize("engine", ENGINES)
def test_stopped_at_any_call(
    engine: str, end: signal.Signals, quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who opens a files store, or reads it, while a commit is laid out waits for the lock.
    monkeypatch.setattr(files.Files.exclusive, "__defaults__", (WAIT_S,))
    prepare(engine, quick_path / "prepared", (1, 2, 3))
    job = Job(engine, quick_path / "prepared", 3, 4)
    points = points_of(job, quick_path / "whole")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = list(pool.map(lambda at: stopped(job, points[at], quick_path / f"s{at}", end), range(len(points))))
    assert {"committed", "told"} <= set(told)


def stopped(job: Job, call: strace.Call, home: Path, end: signal.Signals) -> str:
    """Stop a worker at the call, look and commit as another does, and let it go on or kill it; how the other fared."""
    with stopped_at(job, call, home) as (worker, pid):
        fared = try_to_commit(job.engine, home, pid)
        os.kill(pid, end)
        said, _ = worker.communicate(timeout=60)
    if end == signal.SIGCONT:
        assert acknowledged(said) == (4,), call
    found = check_store(job.engine, home)
    assert found[:3] == (1, 2, 3), call
    assert set(found[3:]) <= {4, 9}, call
    assert set(acknowledged(said)) <= set(found), call
    assert (9 in found) == (fared == "committed"), call
    shutil.rmtree(home)
    return fared


def try_to_commit(engine: str, home: Path, stopped: int) -> str:
    try:
        with closing(open_store(url_in(engine, home))) as store:
            contents(store)
            transact(store, change(9), timeout_s=WAIT_S)
    except errors.LockTimeout as timeout:
        assert timeout.details["pid"] == stopped or timeout.details["holder"] == "another program"  # noqa: PT017
        return "told"
    return "committed"


@contextmanager
def stopped_at(job: Job, call: strace.Call, home: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A worker's strace, and the worker, which has stopped as it entered the call."""
    log = home.with_suffix(".log")
    inject = f"inject={call.name}:signal=SIGSTOP:when={call.number}"
    options = ("-f", "-qq", "-y", "-o", str(log), "-e", f"trace={call.name}", "-e", inject)
    command = [need("strace"), *options, *WORKER, *job.start(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=WORKER_ENV) as worker:
        pid = 0
        try:
            while not (found := re.search(r"(\d+) +--- stopped by SIGSTOP", _text(log))):
                assert worker.poll() is None, f"not stopped at {call}"
            pid = int(found[1])
            yield worker, pid
        finally:
            if pid and worker.poll() is None:
                os.kill(pid, signal.SIGKILL)


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
