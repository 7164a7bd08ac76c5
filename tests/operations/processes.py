"""What a process that runs is doing."""

import sys
import time
from pathlib import Path

import pytest


def until_it_waits(pid: int) -> None:
    """Return when a process has done nothing for a while, as it does only once it waits."""
    before, quiet = -1, 0
    deadline = time.monotonic() + 20
    while quiet < 3:
        assert time.monotonic() < deadline, "it does not come to rest"
        time.sleep(0.03)
        now = wakes(pid)
        quiet = quiet + 1 if now == before else 0
        before = now


def wakes(pid: int) -> int:
    """How often its threads gave up the processor or lost it."""
    if sys.platform != "linux":
        pytest.skip("only Linux counts how often a process wakes")
    files = [task / "status" for task in Path(f"/proc/{pid}/task").iterdir()]
    lines = [line for file in files for line in file.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
