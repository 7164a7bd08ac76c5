"""How fast each engine is here, and whether anything is lost when many write at once. Behind `accord bench`.

Each workload gets a store of its own: in a temporary folder on the disk that the caller asks about, or at a new place
on a server. `workload.py` is what is done, `worker.py` a process that does it, `places.py` where, `report.py` what is
made of the times.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from accord import errors, jsontext
from accord.measure import places, report, workload
from accord.measure.places import Engine
from accord.measure.workload import Job
from accord.place import PASSWORD_VARIABLE

IN_THREADS = ("memory",)  # whose workers are threads; those of the others are processes
RACERS, ROUNDS = 10, 100
WORKERS = 4
OPERATIONS = 1000

# On servers some of which make ten commits a second.
ELSEWHERE_S = 10.0
RACE_ELSEWHERE_S = 60.0

_MOST_TOLD = 1 << 30  # bytes of one worker's times

Progress = Callable[[int, int, str], None]
Rows = list[dict[str, Any]]


def measure(
    engines: Sequence[Engine],
    operations: int | None,
    duration_s: float,
    progress: Progress,
    folder: str | None = None,
) -> tuple[Rows, list[tuple[str, errors.AccordError]]]:
    """Every workload on every engine, and the engines that failed, which cost nothing but their own figures.

    A race in which an update was lost has `lost` above 0.
    """
    total = len(engines) * len(workload.NAMES)
    found: Rows = []
    failed = []
    for number, engine in enumerate(engines):
        try:
            for at, name in enumerate(workload.NAMES, number * len(workload.NAMES)):
                progress(at, total, f"{engine.shown}: {name}")
                count, seconds = _bounds(engine, name, operations, duration_s)
                facts = _one(engine, name, count, seconds, folder)
                found.append({"engine": engine.shown, "workload": name, **facts})
        except errors.AccordError as error:
            failed.append((engine.shown, error))
    progress(total, total, "")
    return found, failed


def _bounds(engine: Engine, name: str, operations: int | None, duration_s: float) -> tuple[int, float]:
    """How many of a workload each worker does, 0: any number; and for how long at most, 0: however long it takes."""
    if name == workload.RACE:
        return ROUNDS, 0.0 if engine.is_local else duration_s or RACE_ELSEWHERE_S
    if operations is None and duration_s:
        return 0, duration_s
    each = max(1, (operations or OPERATIONS) // WORKERS)
    return each, duration_s or (0.0 if engine.is_local or operations else ELSEWHERE_S)


def _one(engine: Engine, name: str, count: int, seconds: float, where: str | None) -> dict[str, Any]:
    is_race = name == workload.RACE
    with places.fresh(engine, where) as (folder, url):
        job = Job(folder, url, name, count, seconds)
        run = _in_threads if engine.shown in IN_THREADS else _in_processes
        facts = report.of(run(job, RACERS if is_race else WORKERS, engine.password))
        if is_race:
            # What was done twice is as wrong.
            facts["lost"] = abs(facts["operations"] - workload.counted(folder, url, engine.password))
    return facts


def _in_processes(job: Job, workers: int, password: str) -> list[dict[str, Any]]:
    """Start them, let them go together, and hear what they have to say."""
    folder = job.folder
    env = {**os.environ, PASSWORD_VARIABLE: password}  # and not among the words, which everybody may read
    command = [sys.executable, "-m", "accord.measure.worker", *map(str, job)]
    started: list[subprocess.Popen[bytes]] = []
    with open(f"{folder}/said", "a+b") as said:
        try:
            for index in range(workers):
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
                started.append(subprocess.Popen([*command, str(index)], cwd=folder, env=env, **pipes))  # type: ignore[call-overload]
            for process in started:
                process.stdout.readline()  # type: ignore[union-attr]
            for process in started:
                process.stdin.close()  # type: ignore[union-attr]
            return [_outcome(process, said) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()


def _outcome(process: Any, said: BinaryIO) -> dict[str, Any]:
    text = process.stdout.read()
    if process.wait():
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
        raise _failed(lines[-1] if lines else f"it ended with {process.returncode}")
    found: dict[str, Any] = jsontext.loads(text, most=_MOST_TOLD)  # type: ignore[assignment]
    return found


def _in_threads(job: Job, workers: int, password: str) -> list[dict[str, Any]]:
    """What stays in memory is nobody else's."""
    found: list[dict[str, Any]] = []
    wrong: list[Exception] = []

    def work(index: int) -> None:
        try:
            found.append(workload.run(job, index, password))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=[index]) for index in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise _failed(f"{type(wrong[0]).__name__}: {wrong[0]}") from wrong[0]
    return found


def _failed(why: str) -> errors.BenchFailed:
    return errors.BenchFailed(reason=why.rstrip("."))
