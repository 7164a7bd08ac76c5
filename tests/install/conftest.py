import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.install.places import Place

MEMORY = Path("/dev/shm")


@pytest.fixture
def place() -> Iterator[Place]:
    """In memory, if the machine has that, where flushes cost nothing."""
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY if MEMORY.is_dir() else None))
    yield Place(folder)
    shutil.rmtree(folder)
