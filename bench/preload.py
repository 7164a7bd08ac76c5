"""Builds slow_flush.c, with which each flush takes 2 ms longer, and no_flush.c, with which there is none."""

import os
import shutil
import subprocess
import sys

from bench import place

SLOW = "slow_flush"
NONE = "no_flush"

# A pipe refuses to be flushed, at once, however busy the disk is; the shortest of ten, however busy the machine.
_SLOW_TIMES = """
import os, time
times = []
for _ in range(10):
    start = time.monotonic()
    try:
        os.fsync(os.pipe()[0])
    except OSError:
        times.append(time.monotonic() - start)
assert min(times) >= 0.002
"""
_PROOFS = {SLOW: _SLOW_TIMES, NONE: "import os; os.fsync(os.pipe()[0])"}


def can_build() -> bool:
    return sys.platform == "linux" and shutil.which("gcc") is not None


def environment(name: str) -> dict[str, str]:
    """The variable that makes a process flush so."""
    folder = place.kept(name)
    library = f"{folder}/{name}.so"
    if not os.path.exists(library):
        _build(name, f"{folder}/new.so")
        os.rename(f"{folder}/new.so", library)
    return {"LD_PRELOAD": library}


def _build(name: str, library: str) -> None:
    source = place.CHECKOUT / "bench" / f"{name}.c"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", library, str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    # The loader only warns of a library that it cannot load.
    environment = {**os.environ, "LD_PRELOAD": library}
    proof = subprocess.run([sys.executable, "-c", _PROOFS[name]], env=environment, check=False, timeout=60)
    if proof.returncode != 0:
        raise RuntimeError(f"{name}.so was built, and does not work")
