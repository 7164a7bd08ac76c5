"""A power cut at any system call of a worker, on a disk that loses what was not synced, keeps every promise."""

import random
import shutil
from pathlib import Path

import pytest

from accord import platform
from tests.robustness.homes import ENGINES, PYTHON, acknowledged
from tests.robustness.powercut import Machine, Step, record
from tests.robustness.test_crash_points import ACTIONS, check_left

# A mkdir lock of an earlier boot is not broken: a person has to remove it.
LATER = [action for action in ACTIONS if action not in ("create", "commit")]
POWER_ENGINES = [engine for engine in ENGINES if engine != "files-mkdir"]


@pytest.mark.covers("S4")
@pytest.mark.parametrize("action", ["create", "commit", *[pytest.param(one, marks=pytest.mark.more) for one in LATER]])
@pytest.mark.parametrize("engine", POWER_ENGINES)
def test_power_cut_at_any_call(engine: str, action: str, quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_at_any_call(engine, action, quick_path, monkeypatch, tries=1)


@pytest.mark.long
@pytest.mark.covers("S4")
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("engine", POWER_ENGINES)
def test_power_cut_in_many_ways(engine: str, action: str, quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_at_any_call(engine, action, quick_path, monkeypatch, tries=10)


def cut_at_any_call(engine: str, action: str, quick_path: Path, monkeypatch: pytest.MonkeyPatch, tries: int) -> None:
    """After each system call that changes something, lose what is not synced in so many ways."""
    home, left = quick_path / "home", quick_path / "left"
    job = ACTIONS[action].job(engine, quick_path / "prepared")
    steps = record(home, job.start(home), quick_path / "log")
    machine = Machine(home, job.prepared)
    monkeypatch.setattr(platform, "boot_id", lambda: "the boot after the power cut")
    for at, step in enumerate(steps):
        machine.take(step)
        for seed in range(tries * step.ways):
            machine.after_power_cut(random.Random(f"{at} {seed}"), left)
            check_left(job, left, machine.said, step)
            shutil.rmtree(left)
    assert acknowledged(machine.said) == tuple(range(job.before + 1, job.after + 1))


TOY = """
import os
fd = os.open({home!r} + "/new", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, b"b" * 5000)
{sync_file}
os.rename({home!r} + "/new", {home!r} + "/kept")
{sync_folder}
os.write(1, b"done")
"""
SYNC_FILE = "os.fsync(fd)"
SYNC_FOLDER = "folder = os.open({home!r}, os.O_RDONLY); os.fsync(folder)"


def test_toy_that_syncs_keeps_its_promise(quick_path: Path) -> None:
    for said, kept in toy(quick_path, SYNC_FILE, SYNC_FOLDER):
        assert kept in ([b"b" * 5000] if said else [b"a" * 5000, b"b" * 5000])


def test_toy_that_does_not_sync_its_file_tears_it(quick_path: Path) -> None:
    kept = [kept for _, kept in toy(quick_path, "", SYNC_FOLDER)]
    assert b"" in kept
    assert any(set(data) == set(b"b\0") for data in kept)


def test_toy_that_does_not_sync_its_folder_loses_the_new_name(quick_path: Path) -> None:
    kept = [kept for said, kept in toy(quick_path, SYNC_FILE, "") if said]
    assert set(kept) == {b"a" * 5000, b"b" * 5000}


def toy(quick_path: Path, sync_file: str, sync_folder: str) -> list[tuple[str, bytes]]:
    """Replace a file in the usual way; for each power cut, what was said by then and what is left under the name."""
    home, before, left = quick_path / "home", quick_path / "before", quick_path / "left"
    before.mkdir()
    (before / "kept").write_bytes(b"a" * 5000)
    shutil.copytree(before, home)
    program = TOY.format(home=str(home), sync_file=sync_file, sync_folder=sync_folder.format(home=str(home)))
    steps = record(home, [], quick_path / "log", command=[*PYTHON, program])
    assert [step.name for step in steps if step.name != "close"][:2] == ["openat", "write"]
    return [
        (said, data) for cut in range(len(steps) + 1) for said, data in cuts(Machine(home, before), steps[:cut], left)
    ]


def cuts(machine: Machine, steps: list[Step], left: Path) -> list[tuple[str, bytes]]:
    for step in steps:
        machine.take(step)
    found = []
    for seed in range(50):
        machine.after_power_cut(random.Random(seed), left)
        found.append((machine.said, (left / "kept").read_bytes()))
        shutil.rmtree(left)
    return found
