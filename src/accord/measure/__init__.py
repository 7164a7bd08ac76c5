"""How fast each engine is here, and whether anything is lost when many write at once. Behind `accord bench`.

Each engine gets a store of its own in a temporary folder. `workload.py` is what is done, `worker.py` a process that
does it, `report.py` what is made of the times.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

from accord import errors, jsontext
from accord.measure import report, workload

ENGINES = ("sqlite", "files", "memory")
RACERS, ROUNDS = 10, 100
WORKERS = 4

Progress = Callable[[int, int], None]
Job = tuple[str, str, str, int, float]


def measure(engines: Sequence[str], operations: int, duration_s: float, progress: Progress) -> list[dict[str, Any]]:
    """Every workload on every engine; a race in which an update was lost has `lost` above 0."""
    steps = [(engine, name) for engine in engines for name in workload.NAMES]
    found = []
    for done, (engine, name) in enumerate(steps):
        progress(done, len(steps))
        found.append({"engine": engine, "workload": name, **_one(engine, name, operations, duration_s)})
    progress(len(steps), len(steps))
    return found


def _one(engine: str, name: str, operations: int, duration_s: float) -> dict[str, Any]:
    is_race = name == workload.RACE
    workers = RACERS if is_race else WORKERS
    each = ROUNDS if is_race else max(1, operations // workers)
    with tempfile.TemporaryDirectory(prefix="accord-bench-") as folder:
        url = f"{engine}:{folder}/store"
        run = _in_threads if engine == "memory" else _in_processes
        outcomes = run((folder, url, name, each, 0.0 if is_race else duration_s), workers)
        facts = report.of(outcomes)
        if is_race:
            facts["lost"] = workers * each - workload.counted(folder, url)
    return facts


def _in_processes(job: Job, workers: int) -> list[dict[str, Any]]:
    """Start them, let them go together, and hear what they have to say."""
    command = [sys.executable, "-m", "accord.measure.worker"]
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": _environment()}
    started = [subprocess.Popen([*command, *map(str, job), str(index)], **pipe) for index in range(workers)]  # type: ignore[call-overload]
    try:
        for process in started:
            process.stdout.readline()
        for process in started:
            process.stdin.close()
        return [_outcome(process) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def _outcome(process: Any) -> dict[str, Any]:
    text = process.stdout.read()
    if process.wait():
        raise errors.StorageFailing(path="the benchmark", reason=f"a worker ended with {process.returncode}")
    found: dict[str, Any] = jsontext.loads(text, most=1 << 26)  # type: ignore[assignment]
    return found


def _in_threads(job: Job, workers: int) -> list[dict[str, Any]]:
    """What stays in memory is nobody else's."""
    found: list[dict[str, Any]] = []

    def work(index: int) -> None:
        found.append(workload.run(*job, index))

    threads = [threading.Thread(target=work, args=[index]) for index in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _environment() -> dict[str, str]:
    """Nobody's agent, and no settings but the defaults."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ACCORD_")}
