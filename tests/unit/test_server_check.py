"""What `accord doctor` says of a store elsewhere; its clock may differ."""

import time

import pytest

from accord import errors
from accord.services import server
from accord.store.engines import memory
from accord.store.open import open_store

pytestmark = pytest.mark.covers("S10", "S13")


class Distant(memory.Memory):
    """A store whose server has a clock of its own."""

    server = "Server 1.2"
    ahead_s = 0.0

    def server_clock_s(self) -> float:
        return time.time() + self.ahead_s


@pytest.fixture
def distant() -> Distant:
    return Distant(memory._Data(), "distant")


@pytest.mark.parametrize(("ahead_s", "said"), [(2.0, "2.00 s ahead"), (-2.0, "2.00 s behind")])
def test_what_is_said(ahead_s: float, said: str, distant: Distant) -> None:
    distant.ahead_s = ahead_s
    name, read, durable, clock = server.look(distant).split("; ")
    assert name == "Server 1.2"
    assert read.endswith(" ms")
    assert durable == "what is sent survives as long as the server runs"
    assert clock == f"its clock is {said}"


@pytest.mark.parametrize("ahead_s", [100.0, -100.0])
def test_a_clock_that_is_far_off(ahead_s: float, distant: Distant) -> None:
    distant.ahead_s = ahead_s
    with pytest.raises(errors.NeedsAttention, match="100 s"):
        server.look(distant)


def test_a_store_that_tells_less() -> None:
    assert "it answers; a read takes" in server.look(open_store("memory:"))
