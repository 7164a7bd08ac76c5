"""accord doctor: what is well, what is not, and an exit code for scripts."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from accord.services import checkup, doctor
from accord.store.contract import Put
from accord.store.open import open_store
from tests.conformance.engines import ENGINES
from tests.operations.processes import until_it_waits
from tests.operations.ways import ACCORD, CommandLine, Python, Refused, Way

pytestmark = pytest.mark.covers("S13")

SERVERS = [engine.name for engine in ENGINES if engine.server]


def found(way: Way) -> dict[str, dict[str, Any]]:
    return {check["check"]: check for check in Python(way.engine).do("home.doctor")["checks"]}


def test_all_is_well(here: Python) -> None:
    result = here.do("home.doctor")
    assert result["healthy"], result
    expected = {
        "versions",
        "settings",
        "home",
        "free space",
        "engine",
        "store",
        "agents",
        "tokens",
        "clock",
        "locks",
        "queues",
    }
    if here.engine.partition(":")[0] in SERVERS:
        expected |= {"server"}
    assert expected | {"tasks", "halt", "hub"} == set(found(here))


def test_locks_with_who_waits_and_how_long(here: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    here.do("lock.acquire", name="build", owner="ann")
    assert found(here)["locks"]["found"] == "1 held, 0 waiting"
    [lock] = found(here)["locks"]["locks"]
    assert (lock["name"], lock["owner"], lock["waiting"]) == ("build", "ann", [])
    assert 0 < lock["left_s"] <= 60


def test_a_wait_that_is_too_long(lone_shell: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    lone_shell.do("lock.acquire", name="build", owner="ann")
    waiter = lone_shell.start(["lock", "acquire", "build", "--owner", "ben", "--timeout", "30"])
    deadline = time.monotonic() + 20
    while not (waiting := found(lone_shell)["locks"]["locks"][0]["waiting"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert waiting[0]["owner"] == "ben"
    monkeypatch.setattr(checkup, "LONGEST_WAIT_S", 0.0)
    time.sleep(0.1)
    check = found(lone_shell)["locks"]
    assert (check["ok"], check["error_code"]) == (False, "NEEDS_ATTENTION")
    assert "ben has waited" in check["found"]
    assert "ann" in check["found"]
    [lock] = check["locks"]
    assert (lock["name"], lock["waiting"][0]["owner"]) == ("build", "ben")
    waiter.send_signal(signal.SIGINT)
    waiter.wait(20)


def test_each_lock_and_who_waits_has_a_line(lone_shell: CommandLine) -> None:
    for name in ("build", "deploy"):
        lone_shell.do("lock.acquire", name=name, owner="ann")
    waiter = lone_shell.start(["lock", "acquire", "build", "--owner", "ben", "--timeout", "30"])
    until_it_waits(waiter.pid)
    said = subprocess.run([ACCORD, "doctor"], env=lone_shell.env(), capture_output=True, text=True, check=True).stdout
    assert re.search(r"^ +build: ann has held it for [\d.]+ s, ben has waited [\d.]+ s$", said, re.MULTILINE)
    assert re.search(r"^ +deploy: ann has held it for [\d.]+ s$", said, re.MULTILINE)
    waiter.send_signal(signal.SIGINT)
    waiter.wait(20)


def test_the_engine_is_named(here: Python) -> None:
    assert here.do("home.doctor")["engine"] == here.engine


def test_the_room_there_is_told(disk_shell: CommandLine) -> None:
    said = subprocess.run([ACCORD, "doctor"], env=disk_shell.env(), capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^ok +engine +{re.escape(disk_shell.engine)}; \d+ MiB free there$", said, re.MULTILINE)


def test_a_password_is_not_shown() -> None:
    assert doctor.shown("redis://ann:secret@example.org:6379/0") == "redis://example.org:6379/0"


def test_a_store_elsewhere_is_looked_at_as_the_home_is(
    disk_shell: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_shell.do("doc.write", name="plan", text="x")
    path = Path(disk_shell.engine.partition(":")[2])
    modes = {folder: folder.stat().st_mode for folder in (path, path.parent)}
    for opened, mode in ((path, 0o755), (path.parent, 0o777)):
        opened.chmod(mode)
        check = found(disk_shell)["engine"]
        assert (check["ok"], check["error_code"]) == (False, "DATA_DIR_ERROR")
        assert str(opened) in check["found"]
        opened.chmod(modes[opened])
    assert found(disk_shell)["engine"]["ok"]
    monkeypatch.setattr(doctor, "LEAST_FREE_MIB", 1 << 60)
    assert found(disk_shell)["engine"]["error_code"] == "STORAGE_FULL"


def test_dead_letters(here: Python) -> None:
    here.do("queue.push", queue="work", payload="x", tries=1)
    assert found(here)["queues"]["ok"]
    here.do("queue.fail", queue="work", receipt=here.do("queue.pop", queue="work")["receipt"], reason="no")
    check = found(here)["queues"]
    assert not check["ok"]
    assert "work (1)" in check["found"]
    assert "accord queue dead work" in check["found"]
    here.do("queue.drop", queue="work", sequence=1)
    assert found(here)["queues"]["ok"]


def test_claims_that_are_stuck(here: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    here.do("task.add", title="x", id="build")
    here.do("task.claim", id="build", agent="ann")
    assert found(here)["tasks"]["found"] == "1 in work"
    monkeypatch.setattr(checkup, "LONGEST_SILENCE_S", -1.0)
    check = found(here)["tasks"]
    assert not check["ok"]
    assert "ann has build, and said nothing of it since" in check["found"]


@pytest.mark.parametrize(("said", "more"), [("claim", {}), ("start", {}), ("progress", {"note": "half of it"})])
def test_a_long_task_of_which_something_is_heard(
    memory: Python, monkeypatch: pytest.MonkeyPatch, said: str, more: dict[str, str]
) -> None:
    memory.do("task.add", title="x", id="build")
    memory.do("task.claim", id="build", agent="ann")
    later = time.time() + checkup.LONGEST_SILENCE_S + 60
    monkeypatch.setattr(time, "time", lambda: later)
    assert not found(memory)["tasks"]["ok"]
    memory.do(f"task.{said}", id="build", agent="ann", **more)
    assert found(memory)["tasks"]["ok"]


def test_a_clock_that_went_back(here: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + 3600)
        here.do("doc.write", name="plan", text="x")
    check = found(here)["clock"]
    assert not check["ok"]
    assert "clock" in check["found"]


def test_exit_code_watch_and_log(lone_shell: CommandLine, tmp_path: Path) -> None:
    assert lone_shell.run(["doctor"]).returncode == 0
    lone_shell.do("halt.set", reason="stop")
    assert lone_shell.run(["doctor"]).returncode == 1
    log = tmp_path / "log"
    watching = subprocess.Popen(
        [ACCORD, "doctor", "--watch", "0.05", "--log", str(log)], env=lone_shell.env(), stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 20
    while not log.exists() or log.read_text().count("\n") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    watching.terminate()
    watching.wait(20)
    first = json.loads(log.read_text().splitlines()[0])
    assert first["healthy"] is False
    assert first["at"] <= json.loads(log.read_text().splitlines()[1])["at"]
    assert log.stat().st_mode & 0o077 == 0
    for words in (["--watch", "x"], ["--log", "/nowhere/log"]):
        assert lone_shell.run(["doctor", *words]).returncode in (2, 73)
    assert os.path.exists(log)


def test_a_record_that_is_damaged_is_called_so(here: Python) -> None:
    here.do("lock.acquire", name="build", owner="ann")
    store = open_store(here.engine)
    store.commit([], [Put("lock", "build", b"{")])
    store.close()
    with pytest.raises(Refused) as caught:
        here.do("lock.list")
    assert caught.value.code == "STORE_DAMAGED"
    assert found(here)["locks"]["error_code"] == "STORE_DAMAGED"
