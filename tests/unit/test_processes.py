"""Processes by name: evidence on their own machine, and nothing but a name on any other."""

import os
import subprocess

import pytest

from accord.services import processes

pytestmark = pytest.mark.covers("I3")


@pytest.fixture
def mine() -> str:
    return processes.named(os.getpid())


def test_one_that_runs_here(mine: str) -> None:
    assert processes.is_alive(mine)
    assert processes.is_here(mine)
    assert processes.pid_of(mine) == str(os.getpid())


def test_one_that_has_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        name = processes.named(process.pid)
        assert processes.is_alive(name)
        process.kill()
    assert not processes.is_alive(name)


def test_one_that_had_the_number_before(mine: str) -> None:
    before, _, after = mine.partition("@")
    assert not processes.is_alive(f"{before}0@{after}")


def test_one_of_another_machine_is_none_of_this(mine: str) -> None:
    other = mine.replace("@", "@other-")
    assert processes.is_alive(other)
    assert processes.is_alive("1:1@other/1/1")
    assert not processes.is_here(other)


def test_one_of_before_the_machine_was_started_anew(mine: str) -> None:
    host, _, space = mine.partition("@")[2].split("/", 2)
    assert not processes.is_alive(f"{mine.partition('@')[0]}@{host}/another-boot/{space}")


def test_one_of_another_container_is_not_seen_from_here(mine: str) -> None:
    host, boot, _ = mine.partition("@")[2].split("/", 2)
    assert processes.is_alive(f"1:1@{host}/{boot}/another")
    assert not processes.is_here(f"1:1@{host}/{boot}/another")


def test_one_that_is_not_known_may_be_anywhere() -> None:
    assert processes.is_alive("")
    assert processes.is_here("")
