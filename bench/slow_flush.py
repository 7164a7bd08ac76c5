"""Builds slow_flush.c, with which each flush takes 2 ms longer."""

import os
import shutil
import subprocess
import sys

from bench import place

# A pipe refuses to be flushed, at once, however busy the disk is; the shortest of ten, however busy the machine.
_TIMING = """
import os, time
times = []
for _ in range(10):
    start = time.monotonic()
    try:
        os.fsync(os.pipe()[0])
    except OSError:
        times.append(time.monotonic() - start)
print(min(times))
"""


def can_build() -> bool:
    return sys.platform == "linux" and shutil.which("gcc") is not None


def environment() -> dict[str, str]:
    """The variable that makes a process flush slowly."""
    folder = place.kept("slow_flush")
    library = f"{folder}/slow_flush.so"
    if not os.path.exists(library):
        _build(f"{folder}/new.so")
        os.rename(f"{folder}/new.so", library)
    return {"LD_PRELOAD": library}


def _build(library: str) -> None:
    source = place.CHECKOUT / "bench" / "slow_flush.c"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", library, str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    # The loader only warns of a library that it cannot load.
    environment = {**os.environ, "LD_PRELOAD": library}
    command = [sys.executable, "-c", _TIMING]
    took = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    if float(took) < 0.002:
        raise RuntimeError("slow_flush.so was built, and does not slow flushes down")
