"""What the functions of a shell keep in files: never half of it, and never less for what others do there."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accord import errors, operations, platform
from accord.cli.io import LocalIo
from accord.cli.run import run
from accord.cli.shells import Shell, owner_of
from accord.cli.verbs import shell as verb
from accord.operations.context import Context, local

pytestmark = pytest.mark.covers("S16")

DAYS_S = 2 * 86_400
WRITER = """
import sys
from accord.cli.shells import Shell
from accord.operations.context import local

context = local({}, home=sys.argv[1])
while True:
    with Shell(context, int(sys.argv[2])) as shell:
        shell.locks["res"] += 1
    print("written", flush=True)
"""


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return local({"HOME": str(tmp_path)}, home=str(tmp_path))


@pytest.fixture
def gone() -> tuple[int, str]:
    """The pid and the name of a process that is no more."""
    process = subprocess.Popen(["sleep", "60"])
    name = owner_of(process.pid)
    process.kill()
    process.wait()
    return process.pid, name


def old(path: Path) -> str:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.utime(path, times=(time.time() - DAYS_S,) * 2)
    return path.name


def left_in(context: Context, tmp_path: Path) -> set[str]:
    """What is there when a new shell has come, besides its own."""
    with Shell(context, os.getpid()):
        pass
    return {path.name for path in (tmp_path / "shell").iterdir() if owner_of(os.getpid()) not in path.name}


def test_only_files_of_shells_that_are_known_to_be_gone_are_removed(
    context: Context, tmp_path: Path, gone: tuple[int, str]
) -> None:
    folder, name = tmp_path / "shell", gone[1]
    living = owner_of(os.getppid())
    elsewhere = ".".join(["shell", "0" * 12, *name.split(".")[2:]])
    foreign = ["notes", "shell.x", "shell..state", f"{name}.1a2b.new~", f"shell.1.{9**60}.state", f"{name[:18]}.state"]
    stay = {old(folder / other) for other in [*foreign, f"{living}.state", f"{living}.gate", f"{elsewhere}.state"]}
    for ending in ("gate", "state"):
        old(folder / f"{name}.{ending}")
    (folder / f"{name}.new").touch()  # not for long
    assert left_in(context, tmp_path) == stay | {f"{name}.new"}


def test_files_of_others_whose_processes_are_hidden_stay(
    context: Context, tmp_path: Path, gone: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = platform.process_started
    monkeypatch.setattr(platform, "process_started", lambda pid: platform.HIDDEN if pid == gone[0] else started(pid))
    name = old(tmp_path / "shell" / f"{gone[1]}.state")
    assert left_in(context, tmp_path) == {name}
    with pytest.raises(errors.Usage, match="no process"):
        Shell(context, gone[0])


def test_files_of_others_stay(
    context: Context, tmp_path: Path, gone: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = old(tmp_path / "shell" / f"{gone[1]}.state")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert left_in(context, tmp_path) == {name}


def test_what_was_begun_survives_a_kill_at_any_moment(context: Context, tmp_path: Path) -> None:
    with Shell(context, os.getpid()) as shell:
        shell.locks = {"res": 1}
        shell.steps = [{"name": "a", "text": "x" * 3_000_000}]
    for _ in range(16):
        words = [sys.executable, "-c", WRITER, str(tmp_path), str(os.getpid())]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(random.random() * 0.1)
            writer.kill()
        before = shell.locks["res"]
        with Shell(context, os.getpid()) as shell:
            assert shell.locks["res"] > before
            assert len(shell.staged("a") or "") == 3_000_000


def test_what_another_key_has_written_is_not_forgotten(context: Context, tmp_path: Path) -> None:
    with Shell(context, os.getpid()) as shell:
        shell.locks = {"res": 1}
    (state,) = (tmp_path / "shell").glob("*.state")
    state.write_bytes(b":sealed")
    with pytest.raises(errors.WrongKey), Shell(context, os.getpid()):
        pass
    assert state.read_bytes() == b":sealed"


@pytest.mark.parametrize("lives", [True, False])
def test_whoever_keeps_a_lock_tries_again(monkeypatch: pytest.MonkeyPatch, gone: tuple[int, str], lives: bool) -> None:
    pid, name = (os.getpid(), owner_of(os.getpid())) if lives else gone
    failures: list[errors.AccordError] = [
        errors.StorageFull(path="there"),
        errors.LockTimeout(path="there", timeout_seconds=1, holder="another"),
        errors.LockLost(name="res", owner=name, token=1, reason="it is over"),
    ]
    called = []

    def fail(context: Context, operation: str, params: object) -> None:
        called.append(operation)
        raise failures[len(called) - 1]

    monkeypatch.setattr(operations, "call", fail)
    monkeypatch.setattr(verb, "LOCK_S", 3.0)
    monkeypatch.setattr(verb, "_PAUSE_S", 0.01)
    assert run(["shell", "keep", str(pid), "--", "res", "1", name], LocalIo()) == 0
    assert called == ["lock.renew" if lives else "lock.release"] * 3
