"""What the figures were measured on, without naming the machine."""

import os
import platform
from pathlib import Path

import apsw

import accord


def describe(folder: Path) -> str:
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()} {_kernel()}, "
        f"{_file_system(folder)}, Python {platform.python_version()}, "
        f"SQLite {apsw.sqlite_lib_version()}, accord {accord.__version__}"
    )


def _kernel() -> str:
    return ".".join(platform.release().split(".")[:2])


def _file_system(folder: Path) -> str:
    """The type of the one that the stores lie on."""
    try:
        mounts = [line.split(" ") for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "a file system of unknown type"
    above = [mount for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    return max(above, key=lambda mount: len(mount[1]))[2]
