"""Many processes that want one name."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.operations.people import refusal, register, send
from tests.operations.ways import CommandLine

WORKER = str(Path(__file__).with_name("worker.py"))
PROCESSES = 16


@pytest.mark.covers("T1.1")
def test_16_commands_register_one_name(shell: CommandLine) -> None:
    one_round(shell, "ann")


@pytest.mark.long
@pytest.mark.covers("T1.1")
def test_16_commands_register_one_name_100_times(shell: CommandLine) -> None:
    for n in range(100):
        one_round(shell, f"ann{n}")


@pytest.mark.covers("T1.1")
def test_16_processes_at_the_same_instant(shell: CommandLine) -> None:
    crowd(shell, 5)


@pytest.mark.more
@pytest.mark.covers("T1.1")
def test_16_processes_at_the_same_instant_100_times(tmp_path: Path) -> None:
    crowd(CommandLine(f"sqlite:{tmp_path}/store.db"), 100)


@pytest.mark.long
@pytest.mark.covers("T1.1")
def test_16_processes_at_the_same_instant_100_times_on_every_engine(shell: CommandLine) -> None:
    crowd(shell, 100)


@pytest.mark.covers("T1.1")
def test_16_takeovers_at_the_same_instant(shell: CommandLine) -> None:
    """All succeed, one after another, and the token in the home is that of the last."""
    rounds = 10
    register(shell, *[f"n{round}" for round in range(rounds)])
    told = said(shell, rounds, "force")
    assert told == {(f"n{round}", "ok"): PROCESSES for round in range(rounds)}
    for round in range(rounds):
        send(shell, f"n{round}", f"n{round}")


def one_round(shell: CommandLine, name: str) -> None:
    processes = [shell.start(["register", name]) for _ in range(PROCESSES)]
    told = Counter(process.communicate(timeout=60)[0].split(b'"')[7] for process in processes)
    assert told == {name.encode(): 1, b"IDENTITY_ALREADY_REGISTERED": PROCESSES - 1}
    assert sorted(process.returncode for process in processes) == [0] + [73] * (PROCESSES - 1)
    send(shell, name, name)  # the winner's token is the one that was kept


def crowd(shell: CommandLine, rounds: int) -> None:
    told = said(shell, rounds)
    for round in range(rounds):
        assert told[f"n{round}", "ok"] == 1
        assert told[f"n{round}", "IDENTITY_ALREADY_REGISTERED"] == PROCESSES - 1
    for round in range(0, rounds, max(1, rounds // 5)):  # each is two commands more
        send(shell, f"n{round}", f"n{round}")
        refusal("IDENTITY_ALREADY_REGISTERED", shell.do, "agent.register", identity=f"n{round}")


def said(shell: CommandLine, rounds: int, *flags: str) -> "Counter[tuple[str, str]]":
    done = subprocess.run(
        [sys.executable, WORKER, "crowd", str(rounds), str(PROCESSES), *flags],
        env=shell.env(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    return Counter((name, code) for name, code in lines)
