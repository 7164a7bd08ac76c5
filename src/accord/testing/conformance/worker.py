"""Works in processes of their own, which share nothing with this one but the place of the store."""

import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

from accord.testing.conformance.tools import LONG_S


class Worker:
    """A process that is ready to run one work."""

    def __init__(self, work: Callable[..., Any], *args: object) -> None:
        program = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as worker; worker.serve()"
        command = [sys.executable, "-c", program]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._send((work, args))

    def wait_until_ready(self) -> None:
        self._receive()

    def start(self) -> None:
        self._send("go")

    def result(self) -> Any:
        """What the work returned; raises what it raised, as text."""
        result, error = self._receive()
        assert not error, error
        return result

    def close(self) -> None:
        """End the process, as it is done or as the check that started it has failed."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(LONG_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _send(self, message: object) -> None:
        assert self._process.stdin
        _write(self._process.stdin, message)

    def _receive(self) -> Any:
        assert self._process.stdout
        return _read(self._process.stdout)


@contextmanager
def processes(work: Callable[..., Any], arguments: Sequence[tuple[object, ...]]) -> Iterator[list[Worker]]:
    """A process for each of the arguments, all ready to start at once."""
    with ExitStack() as stack:
        workers = []
        for args in arguments:
            worker = Worker(work, *args)
            stack.callback(worker.close)
            workers.append(worker)
        for worker in workers:
            worker.wait_until_ready()
        yield workers


def at_once_in_processes(work: Callable[..., Any], arguments: Sequence[tuple[object, ...]]) -> list[Any]:
    with processes(work, arguments) as workers:
        for worker in workers:
            worker.start()
        return [worker.result() for worker in workers]


def run_in_process(work: Callable[..., Any], *args: object) -> Any:
    return at_once_in_processes(work, [args])[0]


def serve() -> None:
    """What a worker's process does."""
    work, args = _read(sys.stdin.buffer)
    _write(sys.stdout.buffer, "ready")
    try:
        _read(sys.stdin.buffer)
    except EOFError:
        return  # the check failed before this work was started
    try:
        answer = work(*args), ""
    except BaseException:
        answer = None, traceback.format_exc()
    _write(sys.stdout.buffer, answer)


def _write(stream: BinaryIO | Any, message: object) -> None:
    pickle.dump(message, stream)
    stream.flush()


def _read(stream: BinaryIO | Any) -> Any:
    return pickle.load(stream)  # noqa: S301 - the other end is a process of this check
