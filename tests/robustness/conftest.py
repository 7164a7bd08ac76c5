import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord import platform

MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for tests that open hundreds of stores: in memory, if the machine has that, where flushes cost nothing.

    Watches look for themselves there: the kernel takes 15 ms to end one that it is to wake.
    """
    monkeypatch.setattr(platform, "watch_file", lambda path: None)
    if not MEMORY.is_dir():
        yield tmp_path
        return
    folder = tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY)
    yield Path(folder)
    shutil.rmtree(folder)
