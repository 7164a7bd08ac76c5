"""What a test needs from the machine. Without it the test is skipped, or fails if ACCORD_REQUIRE_ALL=1."""

import os
import shutil

import pytest

from tools import npm


def need(program: str) -> str:
    """The path of a system program."""
    path = shutil.which(program)
    if path is None:
        lack(f"{program} is not on this machine; install it to run this test")
    return str(path)


def need_from_npm(name: str) -> str:
    """The path of a program that `make programs` fetches; it runs in `npm.with_node`."""
    for wanted in ("node", name):
        if not npm.path(wanted).exists():
            lack(f"{wanted} is not on this machine; make programs fetches it")
    return str(npm.path(name))


def lack(message: str) -> None:
    if os.environ.get("ACCORD_REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message, allow_module_level=True)
