"""Writers killed at any moment, a hundred times: what they were promised is there, once, and nothing is half."""

import random
import time
from contextlib import closing
from pathlib import Path

import pytest

from accord.store.open import open_store
from accord.store.protocols import Store
from tests.robustness.homes import ENGINES, INTEGRITY, all_items, history, url_in
from tests.robustness.writers import Writers, counts

KILLS = {"sqlite": 120, "files": 120, "files-mkdir": 30}
AT_ONCE = 3
IN_MIDST = 5  # kills between a commit and its acknowledgement, at least


@pytest.mark.covers("S4")
@pytest.mark.parametrize("engine", ENGINES)
def test_kill_loop(engine: str, quick_path: Path) -> None:
    kill_loop(engine, quick_path, KILLS[engine], seed=1)


@pytest.mark.long
@pytest.mark.covers("S4")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(2, 6))
def test_long_kill_loop(engine: str, seed: int, tmp_path: Path) -> None:
    kill_loop(engine, tmp_path, 5 * KILLS[engine], seed)


def kill_loop(engine: str, home: Path, kills: int, seed: int) -> None:
    """Every kill finds its victim between two commits of an endless loop: after its first call and before its last.

    It goes on, up to four times as long, until enough of them came in the midst of a commit.
    """
    random_ = random.Random(seed)
    url = url_in(engine, home)
    alive = [f"w{n}" for n in range(AT_ONCE)]
    killed = in_midst = 0
    with Writers(url) as writers, closing(open_store(url)) as store:
        for name in alive:
            writers.start(name)
        while killed < kills or (in_midst < IN_MIDST and killed < 4 * kills):
            victim = alive.pop(random_.randrange(AT_ONCE))
            enough = writers.acknowledged[victim] + random_.randrange(1, 5)
            while writers.acknowledged[victim] < enough:
                writers.listen()
            time.sleep(random_.random() * 0.003)  # so that the kill comes at any point of a commit
            writers.kill(victim)  # which fails unless that process was there, and waits until it is gone
            killed += 1
            in_midst += kept(store, writers, victim)
            alive.append(f"w{AT_ONCE + killed - 1}")
            writers.start(alive[-1])
        for name in alive:
            writers.kill(name)
        found = counts(store)
        for name, promised in writers.acknowledged.items():
            assert promised <= found[name] <= promised + 1
        assert [change.revision for change in history(store)] == list(range(1, found.total() + 1))
    assert killed >= (30 if engine == "files-mkdir" else 100)
    assert in_midst >= IN_MIDST, f"only {in_midst} of {killed} kills came between a commit and its acknowledgement"
    INTEGRITY[engine](home)


def kept(store: Store, writers: Writers, victim: str) -> bool:
    """Whether the victim's last commit stands though it was not acknowledged; all that was must stand."""
    found = len(all_items(store, f"by/{victim}"))
    promised = writers.acknowledged[victim]
    assert promised <= found <= promised + 1
    return found > promised
