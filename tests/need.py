"""What a test needs from the machine."""

import os
import shutil
from pathlib import Path

import pytest


def need(program: str) -> str:
    """The path of a system program; without it the test is skipped, or fails if ACCORD_REQUIRE_ALL=1."""
    path = shutil.which(program)
    if path is None:
        _lack(f"{program} is not on this machine; install it to run this test")
    return str(path)


def need_file(path: Path, what: str, how: str) -> str:
    """The path of something that is there only once somebody has put it there, and how."""
    if not path.exists():
        _lack(f"{what} is not on this machine; {how} installs it")
    return str(path)


def _lack(message: str) -> None:
    if os.environ.get("ACCORD_REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message, allow_module_level=True)
