"""File systems made for one test: small ones that fill up, and ones that may only be read."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.need import need

PAGE = 4096


class SmallDisk:
    """A file system in memory, with room for so much and no more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, but: int = 0) -> None:
        """Leave room for `but` pages only."""
        with open(self._ballast, "ab", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(PAGE))
            except OSError:
                ballast.truncate(max(0, ballast.tell() - but * PAGE))

    def free(self) -> None:
        self._ballast.unlink()

    def mount_again(self, options: str) -> None:
        subprocess.run([need("mount"), "-o", f"remount,{options}", self.path], check=True)


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[SmallDisk]:
    path.mkdir()
    mounted = subprocess.run(
        [need("mount"), "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", path], capture_output=True, check=False
    )
    if mounted.returncode:
        lack("a file system could not be mounted; run as root to run this test")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run([need("umount"), "--lazy", path], check=True)


def need_root() -> None:
    if os.geteuid() != 0:
        lack("another user cannot be taken on; run as root to run this test")


def lack(what: str) -> None:
    """Skip the test, or fail it where nothing may be skipped."""
    if os.environ.get("ACCORD_REQUIRE_ALL") == "1":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
