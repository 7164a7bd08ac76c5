"""What a test needs from the machine."""

import os
import shutil

import pytest


def need(program: str) -> str:
    """The path of a system program; without it the test is skipped, or fails if ACCORD_REQUIRE_ALL=1."""
    path = shutil.which(program)
    if path is None:
        message = f"{program} is not on this machine; install it to run this test"
        if os.environ.get("ACCORD_REQUIRE_ALL") == "1":
            pytest.fail(message, pytrace=False)
        pytest.skip(message, allow_module_level=True)
    return path
