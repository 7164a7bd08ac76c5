"""Many processes come to one home at once, while there is no store in it yet."""

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from accord.store.open import open_store
from tests.robustness.homes import (
    ENGINES,
    INTEGRITY,
    PYTHON,
    WORKER_ENV,
    acknowledged,
    applied,
    contents,
    expected,
    history,
    url_in,
)

PROCESSES = 20
CHANGES = 3  # of each
ROUNDS = 3


@pytest.mark.covers("S1", "S4")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_crowd_makes_one_store(engine: str, quick_path: Path) -> None:
    for number in range(ROUNDS):
        one_round(engine, quick_path / str(number) / "folders/that/are/missing")


def one_round(engine: str, home: Path) -> None:
    program = f"import sys; from tests.robustness.worker import crowd; crowd(sys.argv[1], {PROCESSES}, {CHANGES})"
    command = [*PYTHON, program, url_in(engine, home)]
    done = subprocess.run(command, env=WORKER_ENV, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    everything = range(1, PROCESSES * CHANGES + 1)
    assert sorted(acknowledged(done.stdout)) == list(everything), done.stdout
    with closing(open_store(url_in(engine, home))) as store:
        found = applied(store)
        assert sorted(found) == list(everything)
        assert (contents(store), history(store)) == expected(found)
    INTEGRITY[engine](home)
