from collections.abc import Iterator

import pytest

from tests.cli.users import User
from tests.hub.hubs import somebody, start


@pytest.fixture
def user() -> Iterator[User]:
    """Somebody without a home yet."""
    with somebody() as user:
        yield user


@pytest.fixture
def ann(user: User) -> User:
    """Somebody whose home has the agents ann and ben, and no hub."""
    for name in ("ann", "ben"):
        user.json("register", name)
    return user


@pytest.fixture
def hub(ann: User) -> User:
    """Somebody whose home has the agents ann and ben, and a hub."""
    start(ann)
    return ann
