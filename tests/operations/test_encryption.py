"""Encryption at rest: what people and agents wrote is in no file of the home."""

import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from accord import cipherkey
from accord.store.contract import Put, number_id
from accord.store.open import open_store
from tests.hubs import Hub
from tests.operations.conftest import url_of
from tests.operations.people import refusal, register, send, texts
from tests.operations.ways import ACCORD, CommandLine, HubCommandLine, Python, Unix, Way

pytestmark = pytest.mark.covers("S14.2")

SECRET = "swordfish"


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "key"
    path.write_text(os.urandom(32).hex() + "\n")
    path.chmod(0o600)
    monkeypatch.setenv("ACCORD_ENCRYPTION_KEY_FILE", str(path))
    return path


def files_with(secret: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_nothing_that_was_written_can_be_read(way: Way, key_file: Path, user_home: Path) -> None:
    before = len(way.do("audit.list")["entries"])
    register(way, "ann", "ben")
    send(way, "ann", "ben", f"the {SECRET} is here", conversation="talk")
    way.do("doc.write", name="plan", text=SECRET)
    way.do("topic.publish", channel="builds", message=SECRET)
    assert texts(way, "ben") == [f"the {SECRET} is here"]
    assert way.do("doc.read", name="plan")["text"] == SECRET
    assert len(way.do("mail.search", query=SECRET)["messages"]) == 1
    assert way.do("audit.verify")["entries"] == before + 5
    assert files_with(SECRET, user_home) == []


def test_nothing_that_is_shared_can_be_read(way: Way, key_file: Path, user_home: Path) -> None:
    """What is waiting as well as what is done, and what is kept of what others asked for."""
    way.do("queue.push", queue="work", payload=SECRET, tries=1)
    way.do("queue.push", queue="work", payload=SECRET)
    taken = way.do("queue.pop", queue="work")
    way.do("queue.fail", queue="work", receipt=taken["receipt"], reason=SECRET)
    for id in ("a", "b"):
        way.do("task.add", title=SECRET, id=id, text=SECRET)
        way.do("task.claim", id=id, agent="ann", session=f"s-{SECRET}")
        way.do("task.progress", id=id, agent="ann", note=SECRET)
    way.do("task.block", id="a", reason=SECRET)
    way.do("task.done", id="b", agent="ann", note=SECRET)
    way.do("reserve.add", project=str(user_home), globs=["a"], owner="ann", note=SECRET)
    way.do("tx.run", steps=[{"operation": "doc.write", "name": "plan", "text": SECRET}])
    [dead] = way.do("queue.dead", queue="work")["entries"]
    [waiting] = way.do("queue.peek", queue="work")["entries"]
    assert (taken["payload"], dead["payload"], dead["reason"], waiting["payload"]) == (SECRET,) * 4
    blocked, done = (way.do("task.show", id=id) for id in ("a", "b"))
    assert (blocked["title"], blocked["text"], blocked["reason"], done["note"]) == (SECRET,) * 4
    assert way.do("reserve.list")["reservations"][0]["note"] == SECRET
    assert files_with(SECRET, user_home) == []


@pytest.mark.covers("S16")
def test_nothing_that_a_shell_has_begun_can_be_read(tmp_path: Path, key_file: Path, user_home: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", SHELL],
        env={**os.environ, "PATH": f"{Path(ACCORD).parent}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == f"begun\n{SECRET}\n{SECRET}\n"
    assert files_with(SECRET, user_home) == []


SHELL = f"""
    eval "$(accord shellenv)"
    begin_file_transaction && add_to_transaction plan {SECRET} && echo begun
    grep -rl {SECRET} "$HOME"
    safe_read_memory_file plan
    commit_file_transaction && safe_read_memory_file plan
"""


def test_without_the_key_or_with_another(
    lone_shell: CommandLine, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone_shell.do("doc.write", name="plan", text=SECRET)
    key = key_file.read_text().strip()
    monkeypatch.delenv("ACCORD_ENCRYPTION_KEY_FILE")
    refusal("KEY_NEEDED", lone_shell.do, "doc.read", name="plan")
    monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", key)
    assert lone_shell.do("doc.read", name="plan")["text"] == SECRET
    monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", os.urandom(32).hex())
    wrong = refusal("WRONG_KEY", lone_shell.do, "doc.read", name="plan")
    assert os.environ["ACCORD_ENCRYPTION_KEY"] not in wrong.text
    for nonsense in ("abc", "zz" * 32, "00" * 31, "", " "):
        monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", nonsense)
        refusal("INVALID_CONFIG", lone_shell.do, "doc.read", name="plan")


def test_a_key_that_others_may_read_is_none(lone_shell: CommandLine, key_file: Path) -> None:
    key_file.chmod(0o640)
    refusal("INVALID_CONFIG", lone_shell.do, "doc.write", name="plan", text="x")
    for nothing in ("", "\n", "00" * 31):
        key_file.write_text(nothing)
        key_file.chmod(0o600)
        refusal("INVALID_CONFIG", lone_shell.do, "doc.write", name="plan", text="x")
    key_file.unlink()
    refusal("FILE_UNREADABLE", lone_shell.do, "doc.write", name="plan", text="x")


def test_the_key_is_shown_to_nobody(shell: CommandLine, monkeypatch: pytest.MonkeyPatch, user_home: Path) -> None:
    key = os.urandom(32).hex()
    monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", key)
    shell.do("doc.write", name="plan", text="x")
    printed = [shell.run(words) for words in (["config"], ["doctor"], ["doc", "read", "plan"])]
    assert not any(key.encode() in done.stdout + done.stderr for done in printed)
    assert files_with(key, user_home) == []


def test_a_project_may_not_choose_the_key_before_it_is_trusted(lone_shell: CommandLine, user_home: Path) -> None:
    (user_home / "accord.yml").write_text("encryption_key_file: key\n")
    refusal("NOT_TRUSTED", lone_shell.do, "doc.list")


def name_key(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the commands from now on a key, and not the hub that runs already."""
    key = tmp_path / "late-key"
    key.write_text(os.urandom(32).hex())
    key.chmod(0o600)
    monkeypatch.setenv(variable, str(key) if variable.endswith("_FILE") else key.read_text())


@pytest.mark.parametrize("variable", ["ACCORD_ENCRYPTION_KEY", "ACCORD_ENCRYPTION_KEY_FILE"])
def test_a_hub_without_the_key_writes_nothing_for_who_has_one(
    hub_of: Callable[[str], Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    engine = url_of("sqlite", tmp_path)
    hub = hub_of(engine)
    hub.start()
    name_key(variable, tmp_path, monkeypatch)
    HubCommandLine(engine, hub=hub).do("doc.write", name="plan", text=SECRET)
    refusal("KEY_NEEDED", Unix(engine, hub).do, "doc.write", name="other", text=SECRET)
    assert files_with(SECRET, tmp_path) == []
    assert CommandLine(engine).do("doc.read", name="plan")["text"] == SECRET


@pytest.mark.parametrize("variable", ["ACCORD_ENCRYPTION_KEY", "ACCORD_ENCRYPTION_KEY_FILE"])
def test_a_hub_with_another_key_writes_nothing_for_who_has_one(
    hub_of: Callable[[str], Hub], key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    engine = url_of("sqlite", tmp_path)
    hub = hub_of(engine)
    hub.start()
    shell = HubCommandLine(engine, hub=hub)
    shell.do("doc.write", name="plan", text="x")
    name_key(variable, tmp_path, monkeypatch)
    refusal("WRONG_KEY", shell.do, "doc.write", name="plan", text=SECRET)


def damage(engine: str, *keys: tuple[str, str]) -> None:
    with closing(open_store(engine)) as store:
        store.commit([], [Put(*key, b"rubbish") for key in keys])


def test_one_damaged_value_takes_no_other_document_with_it(here: Python, key_file: Path) -> None:
    for text in ("one", "two", "three"):
        here.do("doc.write", name="plan", text=text)
    here.do("doc.write", name="other", text="whole")
    damage(here.engine, ("doc", "plan"), ("version/plan", number_id(3)))
    found = {one["name"]: one["problem"] for one in here.do("doc.list")["documents"]}
    assert found == {"plan": "STORE_DAMAGED", "other": None}
    assert here.do("doc.read", name="other")["text"] == "whole"
    assert "plan" in refusal("STORE_DAMAGED", here.do, "doc.read", name="plan").text
    assert here.do("doc.restore", name="plan")["revision"] == 4
    assert here.do("doc.read", name="plan")["text"] == "two"


def test_a_damaged_lock_fences_a_restore(here: Python, key_file: Path) -> None:
    here.do("doc.write", name="plan", text="one")
    token = here.do("lock.acquire", name="plan", owner="ann")["token"]
    damage(here.engine, ("lock", "plan"))
    refusal("STORE_DAMAGED", here.do, "doc.restore", name="plan", revision=1, fence=f"plan:{token}")


def test_the_doctor_says_whether_the_store_is_encrypted(
    lone_shell: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "; not encrypted;" in lone_shell.run(["doctor"]).stdout.decode()
    name_key("ACCORD_ENCRYPTION_KEY", tmp_path, monkeypatch)
    name = cipherkey.name_of(cipherkey.read(os.environ["ACCORD_ENCRYPTION_KEY"]))
    assert f"; encrypted with the key {name};" in lone_shell.run(["doctor"]).stdout.decode()
