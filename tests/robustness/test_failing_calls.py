"""A system call that fails, whichever it is, fails changes as a whole, and says so in accord's own words."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.often import some_of
from tests.robustness import strace
from tests.robustness.homes import acknowledged, check_store, failures
from tests.robustness.test_crash_points import ACTIONS, Job, points_of

CODES = {"STORAGE_FULL", "STORAGE_FAILING", "OUTCOME_UNKNOWN", "DATA_DIR_ERROR"}

# What a disk answers when it is full, and when it is broken.
ERRORS = ("ENOSPC", "EIO")
NEAR = 12  # calls: what tidying up begins and ends with lies as near to the calls that make it that
MORE_CHANGES = 1  # than the action takes, for the worker to get over it


@pytest.mark.covers("S4")
@pytest.mark.parametrize("action", ["create", "commit", "tidy"])
@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_any_call_may_fail(engine: str, action: str, quick_path: Path) -> None:
    job = ACTIONS[action].job(engine, quick_path / "prepared")
    job = replace(job, after=job.after + MORE_CHANGES)
    points = points_of(job, quick_path / "whole")
    if action == "tidy":  # the rest is as in a commit
        points = near(points, ACTIONS[action].must_do[engine])
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(failing, job, points[at], ERRORS[at % 2], quick_path / f"f{at}")
            for at in some_of(len(points))
            if not ("-shm>" in points[at].text and points[at].name == "pwrite64" and at % 4)  # eight of them are alike
        ]
        complaints = [complaint for run in runs if (complaint := run.result())]
    assert not complaints, "\n\n".join(complaints)


def near(points: list[strace.Call], pieces: list[str]) -> list[strace.Call]:
    """The calls around those that hold one of the pieces."""
    places = [at for at, call in enumerate(points) if any(piece in call.text for piece in pieces)]
    return points[max(0, places[0] - NEAR) : places[-1] + NEAR]


def failing(job: Job, call: strace.Call, error: str, home: Path) -> str:
    """Let the call fail, once, and look at what comes of it: what was wrong."""
    run = strace.fail_at(call, error, job.start(home), home.with_suffix(".log"))
    assert "(INJECTED)" in run.log, f"did not come to {call}"
    wrong = fault_of(job, home, run)
    shutil.rmtree(home, ignore_errors=True)
    return wrong and f"{error} at {call}:\n{run.said}{wrong}"


def fault_of(job: Job, home: Path, run: strace.Run) -> str:
    if run.status != 0 or run.complaints:
        return run.complaints
    failed = failures(run.said)
    if not set(failed.values()) <= CODES:
        return f"unexpected: {failed}"
    # A store that was not opened needs another try; one that was gets over the failure by itself.
    if 0 not in failed and job.after in failed and len(failed) > 1:
        return "the process did not recover"
    try:
        found = check_store(job.engine, home)
    except Exception as error:
        return f"the next user finds: {error!r}"
    promised = set(range(1, job.before + 1)) | set(acknowledged(run.said))
    never = {n for n, code in failed.items() if code == "STORAGE_FULL"}  # its text says that nothing was changed
    if not promised <= set(found) or never & set(found):
        return f"promised {promised}, refused {never}, found {found}"
    return ""
