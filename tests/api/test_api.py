"""accord for programs."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

import accord
from accord import errors


@pytest.mark.covers("I5")
def test_async_calls_run_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async def talk() -> list[str]:
        async with accord.open_async(str(tmp_path / "home")) as home:
            await home.agent.register(identity="ann")
            waiting = asyncio.create_task(home.mail.check(identity="ann", wait=10))
            await asyncio.sleep(0)
            await asyncio.gather(*(home.mail.send(sender="ann", to="ann", message=str(n)) for n in range(5)))
            assert (await waiting)["messages"]
            return [message["message"] for message in (await home.mail.check(identity="ann"))["messages"]]

    assert sorted(asyncio.run(talk())) == ["0", "1", "2", "3", "4"]


@pytest.mark.covers("I5")
def test_any_number_may_wait_and_a_call_is_still_made_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async def talk() -> float:
        async with accord.open_async(str(tmp_path / "home")) as home:
            for name in ("ann", "ben"):
                await home.agent.register(identity=name)
            waiting = [asyncio.create_task(home.mail.check(identity="ann", wait=60)) for _ in range(50)]
            await asyncio.sleep(0)
            started = time.monotonic()
            await home.mail.send(sender="ben", to="ben", message="hello")
            took_s = time.monotonic() - started
            await home.mail.send(sender="ben", to="ann", message="hello")
            assert all(found["messages"] for found in await asyncio.gather(*waiting))
            return took_s

    assert asyncio.run(talk()) < 20


@pytest.mark.covers("I5")
def test_the_errors_are_there_from_the_first() -> None:
    program = "import accord; assert accord.errors.Halted.code == 'HALTED'; assert 'errors' in dir(accord)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.covers("I5")
def test_after_closing_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with accord.open(str(tmp_path / "home")) as home:
        home.agent.register(identity="ann")
    with pytest.raises(errors.StoreClosed):
        home.agent.discover()


@pytest.mark.covers("I5")
def test_what_is_asked_again_under_the_same_name_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async def push() -> int:
        async with accord.open_async(str(tmp_path / "home")) as home:
            return (await home.request("first").queue.push(queue="builds", payload="a"))["sequence"]

    with accord.open(str(tmp_path / "home")) as home:
        pushed = [home.request("first").queue.push(queue="builds", payload="a")["sequence"] for _ in range(2)]
        pushed += [asyncio.run(push()), home.request("second").queue.push(queue="builds", payload="a")["sequence"]]
        assert pushed == [1, 1, 1, 2]
        with pytest.raises(errors.IdReused):
            home.request("first").queue.push(queue="builds", payload="b")
        assert home.queue.push(queue="builds", payload="b") == {"queue": "builds", "sequence": 3}


@pytest.mark.covers("I5")
def test_what_is_given_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ACCORD_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("ACCORD_AGENT", "ben")
    with accord.open(str(tmp_path / "home"), agent="ann") as home:
        home.agent.register(identity="ann")
        home.mail.send(sender="ann", to="ann", message="hello")
        with pytest.raises(errors.NotPermitted):
            home.mail.check(identity="human")
    assert not (tmp_path / "other").exists()


@pytest.mark.covers("I5")
def test_a_program_that_misuses_it_is_found_by_a_type_checker(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import accord\n"
        "home = accord.open()\n"
        "home.mail.send(sender='ann', to=['ben'], message='hello')\n"
        "home.mail.send(sender='ann', to=['ben'], message=3)\n"
        "home.mail.sned(sender='ann')\n"
        "home.mail.check(identity='ann', limit='ten')\n"
        "home.mail.send(sender='ann', to=['ben'], message='hello')['mesage_id']\n"
        "home.mail.check(identity='ann')['messages'][0]['form']\n"
        "async def look() -> None:\n"
        "    (await accord.open_async().task.show(id='t1'))['titel']\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*command, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line] == [
        "4",
        "5",
        "6",
        "7",
        "8",
        "10",
    ]
