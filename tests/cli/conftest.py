import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.users import User

MEMORY = Path("/dev/shm")


@pytest.fixture
def user() -> Iterator[User]:
    """Somebody without a home yet; in memory, if the machine has that, where flushes cost nothing."""
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY if MEMORY.is_dir() else None))
    folder.chmod(0o755)  # another user may look, where a test has one
    yield User(folder)
    shutil.rmtree(folder)


@pytest.fixture
def ann(user: User) -> User:
    """Somebody whose home has the agents ann and ben."""
    for name in ("ann", "ben"):
        user.json("register", name)
    return user
