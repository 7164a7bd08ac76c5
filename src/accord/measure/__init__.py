"""How fast each engine is here, and whether anything is lost when many write at once. Behind `accord bench`.

Each engine gets a store of its own, in a temporary folder on the disk that the caller asks about. `workload.py` is what
is done, `worker.py` a process that does it, `report.py` what is made of the times.
"""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from accord import errors, jsontext
from accord.measure import report, workload

ENGINES = ("sqlite", "files", "memory")
IN_THREADS = ("memory",)  # whose workers are threads; those of the others are processes
RACERS, ROUNDS = 10, 100
WORKERS = 4

_MOST_TOLD = 1 << 30  # bytes of one worker's times

Progress = Callable[[int, int], None]
Job = tuple[str, str, str, int, float]


def measure(
    engines: Sequence[str], operations: int, duration_s: float, progress: Progress, folder: str | None = None
) -> list[dict[str, Any]]:
    """Every workload on every engine; a race in which an update was lost has `lost` above 0. 0 operations: no limit."""
    steps = [(engine, name) for engine in engines for name in workload.NAMES]
    found = []
    for done, (engine, name) in enumerate(steps):
        progress(done, len(steps))
        found.append({"engine": engine, "workload": name, **_one(engine, name, operations, duration_s, folder)})
    progress(len(steps), len(steps))
    return found


def _one(engine: str, name: str, operations: int, duration_s: float, where: str | None) -> dict[str, Any]:
    is_race = name == workload.RACE
    workers = RACERS if is_race else WORKERS
    each = ROUNDS if is_race else operations and max(1, operations // workers)
    with tempfile.TemporaryDirectory(prefix="accord-bench-", dir=where) as folder:
        url = f"{engine}:{folder}/store"
        run = _in_threads if engine in IN_THREADS else _in_processes
        outcomes = run((folder, url, name, each, 0.0 if is_race else duration_s), workers)
        facts = report.of(outcomes)
        if is_race:
            facts["lost"] = workers * each - workload.counted(folder, url)
    return facts


def _in_processes(job: Job, workers: int) -> list[dict[str, Any]]:
    """Start them, let them go together, and hear what they have to say."""
    folder = job[0]
    command = [sys.executable, "-m", "accord.measure.worker", *map(str, job)]
    started: list[subprocess.Popen[bytes]] = []
    with open(f"{folder}/said", "a+b") as said:
        try:
            for index in range(workers):
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
                started.append(subprocess.Popen([*command, str(index)], cwd=folder, **pipes))  # type: ignore[call-overload]
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


def _in_threads(job: Job, workers: int) -> list[dict[str, Any]]:
    """What stays in memory is nobody else's."""
    found: list[dict[str, Any]] = []
    wrong: list[Exception] = []

    def work(index: int) -> None:
        try:
            found.append(workload.run(*job, index))
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
