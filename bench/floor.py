"""What an interpreter costs that does nothing: `python -c pass`, in an environment without `.pth` imports.

Every command pays it, and it tells a quiet machine from a busy one: over 15 ms, the figures of this run are void.
"""

import subprocess
import sys
import time

from bench import place, progress
from bench.processes import ENVIRONMENT, LIMIT_S
from bench.row import MILLISECONDS, Row
from bench.sizes import Sizes

MOST_MS = 15.0


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    with place.folder() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=LIMIT_S)
        command = [f"{folder}/bin/python", "-c", "pass"]
        _time_ms(command)  # the first one reads the disk
        progress.show("python -c pass")
        samples = [_time_ms(command) for _ in range(rounds)]
    return [Row("`python -c pass`", MILLISECONDS, samples, target=MOST_MS, void_if_missed=True)]


def _time_ms(command: list[str]) -> float:
    start = time.perf_counter()
    # Without a timeout: with one, subprocess looks for the end at intervals that grow to 8 ms.
    subprocess.run(command, check=True, env=ENVIRONMENT)
    return (time.perf_counter() - start) * 1000
