"""Processes that are all started and ready before they get one start signal; each is bounded in time."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.place import CHECKOUT

LIMIT_S = 120.0
HEAD_START_S = 0.05  # between the signal and the start that it names

# Workers import accord anew each time, from bytecode, as for users.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_together(commands: Sequence[Sequence[str]], variables: Mapping[str, str]) -> list[Any]:
    """Run `python -m COMMAND` for each, and return what they answer; they call `wait_for_start` and `answer`."""
    workers: list[subprocess.Popen[str]] = []
    overdue = threading.Timer(LIMIT_S, _kill, [workers])
    overdue.start()
    try:
        for command in commands:
            workers.append(_start(command, {**ENVIRONMENT, **variables}))
        for worker in workers:
            _expect(_line(worker) == "ready\n", worker)
        start_at = time.monotonic() + HEAD_START_S
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(f"{start_at}\n")
            worker.stdin.flush()
        return [_answer(worker) for worker in workers]
    finally:
        overdue.cancel()
        _kill(workers)
        for worker in workers:
            worker.communicate()


def wait_for_start() -> float:
    """In a worker: say that it is ready, and return at the common start, the time of which it gives."""
    print("ready", flush=True)
    start_at = float(sys.stdin.readline())
    time.sleep(max(0.0, start_at - time.monotonic()))
    return start_at


def answer(value: object) -> None:
    """In a worker: hand over what it measured."""
    print(json.dumps(value), flush=True)


def run_alone(command: Sequence[str]) -> str:
    """What `python COMMAND` prints."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=CHECKOUT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return done.stdout


def _start(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _kill(workers: "Sequence[subprocess.Popen[str]]") -> None:
    for worker in workers:
        worker.kill()


def _line(worker: "subprocess.Popen[str]") -> str:
    assert worker.stdout is not None
    return worker.stdout.readline()


def _answer(worker: "subprocess.Popen[str]") -> Any:
    line = _line(worker)
    _expect(line != "", worker)
    return json.loads(line)


def _expect(went_well: bool, worker: "subprocess.Popen[str]") -> None:
    if not went_well:
        raise RuntimeError(f"{worker.args!r} failed, or took over {LIMIT_S:.0f} s; what it said is above")
