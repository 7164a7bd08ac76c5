"""A process that is stopped while it holds the store: others are told whom they wait for, and go on afterwards."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from accord import errors
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import transact
from tests.robustness.homes import (
    ENGINES,
    PYTHON,
    WORKER_ENV,
    check_store,
    contents,
    expected,
    open_lockable,
    prepare,
    url_in,
)
from tests.robustness.worker import change

WAIT_S = 0.3

engines = pytest.mark.parametrize("engine", ENGINES)


@pytest.mark.covers("S4")
@engines
def test_others_wait_for_a_stopped_process_until_it_goes_on(engine: str, tmp_path: Path) -> None:
    prepare(engine, tmp_path, ())
    with closing(open_store(url_in(engine, tmp_path))) as store, stopped_inside(engine, tmp_path) as holder:
        assert_held_by(store, holder.pid)
        assert contents(store) == expected(())[0]  # reading goes on
        holder.send_signal(signal.SIGCONT)
        assert holder.stdin is not None
        holder.stdin.close()
        transact(store, change(2), timeout_s=10)
        assert holder.stdout is not None
        assert holder.stdout.read() == b"acknowledged 1\n"
    assert check_store(engine, tmp_path) == (1, 2)


@pytest.mark.covers("S4")
@engines
def test_others_wait_for_a_stopped_process_until_it_is_killed(engine: str, tmp_path: Path) -> None:
    prepare(engine, tmp_path, ())
    with closing(open_store(url_in(engine, tmp_path))) as store, stopped_inside(engine, tmp_path) as holder:
        assert_held_by(store, holder.pid)
        holder.kill()
        holder.wait()
        transact(store, change(2), timeout_s=10)
    assert check_store(engine, tmp_path) == (2,)


@engines
def test_a_thread_waits_for_another_of_its_process(engine: str, tmp_path: Path) -> None:
    with closing(open_lockable(engine, tmp_path)) as store:
        with store.exclusive():
            seen: list[BaseException] = []
            thread = threading.Thread(target=lambda: seen.append(timeout_of(store)))
            thread.start()
            thread.join()
        assert isinstance(seen[0], errors.LockTimeout)
        assert seen[0].details["pid"] == os.getpid()
        transact(store, change(1))


@contextmanager
def stopped_inside(engine: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that was stopped while it holds the store for itself."""
    program = "import sys; from tests.robustness.worker import hold; hold(sys.argv[1])"
    command = [*PYTHON, program, url_in(engine, home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=WORKER_ENV) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"inside\n"
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        try:
            yield holder
        finally:
            holder.kill()


def assert_held_by(store: Store, pid: int) -> None:
    began = time.monotonic()
    timeout = timeout_of(store)
    assert WAIT_S <= time.monotonic() - began < WAIT_S + 5
    assert timeout.details["pid"] == pid
    assert f"process {pid}" in str(timeout)


def timeout_of(store: Store) -> errors.LockTimeout:
    with pytest.raises(errors.LockTimeout) as caught:
        transact(store, change(3), timeout_s=WAIT_S)
    return caught.value
