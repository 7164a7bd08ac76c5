"""Which process somebody is, in words that are evidence on its own machine, and no more than a name on any other.

PID:STARTED@HOST/BOOT/SPACE   SPACE: processes of one machine that cannot see each other, as in containers
"""

import os

from accord import platform

_MACHINE_ID = "/etc/machine-id"  # where there is one: names of hosts are given twice

_known: list[tuple[str, str, str]] = []


def named(pid: int) -> str:
    return f"{pid}:{platform.process_started(pid)}@{'/'.join(_here())}"


def is_alive(process: str) -> bool:
    """Whether it still runs; one that cannot be seen from here may."""
    pid, started, host, boot, space = _parts(process)
    here = _here()
    if not pid or host != here[0]:
        return True
    if boot != here[1]:
        return False  # the machine was started anew since
    return space != here[2] or platform.process_started(int(pid)) == started


def is_here(process: str) -> bool:
    """Whether it can be seen from here; one that is not known may be."""
    return not process or _parts(process)[2:] == _here()


def pid_of(process: str) -> str:
    return process.partition(":")[0]


def _here() -> tuple[str, str, str]:
    """Of this process, which stays where it is."""
    if not _known:
        _known.append(_look())
    return _known[0]


def _look() -> tuple[str, str, str]:
    space = platform.pid_space().removeprefix(platform.boot_id()).strip()
    return f"{os.uname().nodename}.{_machine_id()}", platform.boot_id()[:13], space


def _machine_id() -> str:
    try:
        with open(_MACHINE_ID, encoding="ascii", errors="replace") as file:
            return file.read(8)
    except OSError:
        return ""


def _parts(process: str) -> tuple[str, str, str, str, str]:
    this, _, where = process.partition("@")
    pid, _, started = this.partition(":")
    host, boot, space = [*where.split("/", 2), "", "", ""][:3]
    return pid, started, host, boot, space
