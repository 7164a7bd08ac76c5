import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# In memory, if the machine has that, where flushes cost nothing.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.fixture
def quick_path() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY))
    yield folder
    shutil.rmtree(folder)
