"""The store's clock is the time since the machine started: setting the wall clock, either way, changes nothing."""

import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from accord import platform
from accord.store.open import open_store
from tests.need import need
from tests.robustness.disks import lack
from tests.robustness.homes import PYTHON, WORKER_ENV, url_in

DAY_S = 24 * 3600.0

engines = pytest.mark.parametrize("engine", ["sqlite", "files"])


@engines
@pytest.mark.parametrize("jump_s", [-DAY_S, DAY_S], ids=["back", "ahead"])
def test_a_lease_outlasts_a_jump_of_the_wall_clock(
    engine: str, jump_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(url_in(engine, tmp_path))) as store:
        began = store.now()
        lease_ends = began.plus(3600)
        already_over = began.plus(0)
        real_time, real_clock = time.time, time.clock_gettime
        monkeypatch.setattr(time, "time", lambda: real_time() + jump_s)
        monkeypatch.setattr(
            time, "clock_gettime", lambda clock: real_clock(clock) + jump_s * (clock == time.CLOCK_REALTIME)
        )
        assert not lease_ends.is_over(store.now())
        assert already_over.is_over(store.now())
        assert 0 <= store.now().seconds - began.seconds < 60


NOW = """
import sys
from accord.store.open import open_store
print(open_store(sys.argv[1]).now().seconds)
"""


@engines
def test_the_clock_counts_from_the_start_of_the_machine(engine: str, tmp_path: Path) -> None:
    """A process for which the machine has run a day longer: only the boot-time clock can be moved so."""
    here = now_of_another_process(engine, tmp_path)
    ahead = now_of_another_process(engine, tmp_path, "--boottime")
    assert DAY_S <= ahead - here < DAY_S + 60
    assert 0 <= now_of_another_process(engine, tmp_path, "--monotonic") - here < 60


@engines
def test_moments_of_another_boot_are_over(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(url_in(engine, tmp_path))) as store:
        lease_ends = store.now().plus(DAY_S)
        monkeypatch.setattr(platform, "boot_id", lambda: "the next boot")
        assert lease_ends.is_over(store.now())


def now_of_another_process(engine: str, home: Path, clock: str = "") -> float:
    shift = [need("unshare"), "--time", clock, str(int(DAY_S)), "--fork"] if clock else []
    command = [*shift, *PYTHON, NOW, url_in(engine, home)]
    done = subprocess.run(command, env=WORKER_ENV, capture_output=True, text=True, check=False)
    if done.returncode:
        lack(f"a clock could not be moved ({done.stderr.strip()}); run as root to run this test")
    return float(done.stdout)
