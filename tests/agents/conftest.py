"""What the tests with real programs share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.desk import Desk
from tests.agents.vendors import VENDORS


@pytest.fixture(params=VENDORS, ids=lambda vendor: vendor.name)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """One for each vendor."""
    desk = Desk(tmp_path, request.param)
    yield desk
    desk.close()
