"""After a flush that failed nothing is acknowledged, by any process, before all that it should have saved is saved."""

import random
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from accord import platform
from tests.robustness import strace
from tests.robustness.homes import acknowledged, check_store, failures, prepare, url_in
from tests.robustness.powercut import Machine, record
from tests.robustness.test_crash_points import COMMITS, Job, points_of
from tests.robustness.test_power_cut import POWER_ENGINES


@pytest.mark.covers("S4")
@pytest.mark.parametrize("engine", POWER_ENGINES)
def test_nothing_is_acknowledged_while_flushes_fail(engine: str, quick_path: Path) -> None:
    prepared, home = quick_path / "prepared", quick_path / "home"
    prepare(engine, prepared, (1, 2, 3))
    flush = flush_of(engine, prepared, quick_path / "whole")
    run = strace.fail_at(flush, "EIO", Job(engine, prepared, 3, 6).start(home), quick_path / "log", more="+")
    assert (run.status, run.complaints) == (0, "")
    assert acknowledged(run.said) == ()
    assert failures(run.said).keys() == {4, 5, 6}
    assert failures(run.said)[4] == "OUTCOME_UNKNOWN"
    assert set(failures(run.said).values()) <= {"OUTCOME_UNKNOWN", "STORAGE_FAILING"}
    found = check_store(engine, home)  # by this process, whose flushes work
    assert found[:3] == (1, 2, 3)
    assert set(found) <= {1, 2, 3, 4, 5, 6}


@pytest.mark.covers("S4")
@pytest.mark.parametrize("engine", POWER_ENGINES)
def test_power_cut_after_a_flush_that_failed_in_another_process(
    engine: str, quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process was told that its flush failed; what the next one is promised is on the disk all the same."""
    prepared, home, left = quick_path / "prepared", quick_path / "home", quick_path / "left"
    prepare(engine, prepared, (1, 2, 3))
    tidy_up(engine, prepared)
    flush = flush_of(engine, prepared, quick_path / "whole")
    machine = Machine(home, prepared)
    refused = f"inject={flush.name}:error=EIO:when={flush.number}+"
    for step in record(home, Job(engine, prepared, 3, 4).start(home), quick_path / "log", "-e", refused):
        machine.take(step)
    assert failures(machine.said) == {4: "OUTCOME_UNKNOWN"}
    machine.refuse()
    steps = record(home, [url_in(engine, home), "5", "6"], quick_path / "log2")
    monkeypatch.setattr(platform, "boot_id", lambda: "the boot after the power cut")
    for at, step in enumerate(steps):
        machine.take(step)
        for seed in range(step.ways):
            machine.after_power_cut(random.Random(f"{at} {seed}"), left)
            found = check_store(engine, left)
            assert set(found) >= {1, 2, 3, *acknowledged(machine.said)}, f"after {step}"
            shutil.rmtree(left)
    assert acknowledged(machine.said) == (5, 6)


@pytest.mark.covers("S4")
@pytest.mark.more
@pytest.mark.parametrize("many", [2, 5])
@pytest.mark.parametrize("engine", POWER_ENGINES)
def test_a_process_goes_on_once_its_flushes_work_again(
    engine: str, many: int, quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the disk refused is not on it; what is acknowledged afterwards is, whenever the power goes then."""
    prepared, home, left = quick_path / "prepared", quick_path / "home", quick_path / "left"
    prepare(engine, prepared, (1, 2, 3))
    tidy_up(engine, prepared)
    flush = flush_of(engine, prepared, quick_path / "whole")
    refused = f"inject={flush.name}:error=EIO:when={flush.number}..{flush.number + many - 1}"
    steps = record(home, Job(engine, prepared, 3, 9).start(home), quick_path / "log", "-e", refused)
    machine = Machine(home, prepared)
    monkeypatch.setattr(platform, "boot_id", lambda: "the boot after the power cut")
    assert [step.result for step in steps if step.name == flush.name and step.result < 0] == [-1] * many
    for at, step in enumerate(steps):
        machine.take(step)
        for seed in range(min(2, step.ways)):
            machine.after_power_cut(random.Random(f"{at} {seed}"), left)
            found = check_store(engine, left)
            assert {1, 2, 3, *acknowledged(machine.said)} <= set(found) <= set(range(1, 10)), f"after {step}"
            shutil.rmtree(left)
    failed = failures(machine.said)
    assert failed[4] == "OUTCOME_UNKNOWN"
    assert set(failed.values()) <= {"OUTCOME_UNKNOWN", "STORAGE_FAILING"}
    assert len(failed) <= many
    assert acknowledged(machine.said) == tuple(range(4 + len(failed), 10))


def flush_of(engine: str, prepared: Path, whole: Path) -> strace.Call:
    """The flush that makes change 4 durable."""
    return [call for call in points_of(Job(engine, prepared, 3, 4), whole) if COMMITS[engine] in call.text][-1]


def tidy_up(engine: str, home: Path) -> None:
    """Move what is in the log to its place, so that the log holds nothing else than what comes now."""
    if engine == "sqlite":
        with closing(apsw.Connection(str(home / "store.db"))) as db:
            db.execute("pragma wal_checkpoint(truncate)")
