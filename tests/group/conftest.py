from collections.abc import Iterator

import pytest

from tests.group.members import TEAM, Forks, Machine, machine
from tests.robustness.disks import need_root


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    need_root()
    found = Forks()
    yield found
    found.close()


@pytest.fixture
def users(forks: Forks) -> Iterator[Machine]:
    """Three users, and no home yet."""
    with machine(forks) as found:
        yield found


@pytest.fixture(params=["sqlite", "files", "files-mkdir"])
def team(users: Machine, request: pytest.FixtureRequest) -> Machine:
    """A home that ann made for a group in which ben is too, and eve is not; on each engine."""
    place = {"sqlite": "", "files": "store", "files-mkdir": "store?lock=mkdir"}[request.param]
    users.ann.json("init", "--group", str(TEAM), ACCORD_ENGINE=f"files:{users.home}/{place}" if place else "")
    if place:
        users.settings(f"engine: files:{place}\n")
    return users
