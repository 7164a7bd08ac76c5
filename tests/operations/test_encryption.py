"""Encryption at rest: what people and agents wrote is in no file of the home."""

import os
from pathlib import Path

import pytest

from tests.operations.people import refusal, register, send, texts
from tests.operations.ways import CommandLine, Way

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
    register(way, "ann", "ben")
    send(way, "ann", "ben", f"the {SECRET} is here", conversation="talk")
    way.do("doc.write", name="plan", text=SECRET)
    way.do("topic.publish", channel="builds", message=SECRET)
    assert texts(way, "ben") == [f"the {SECRET} is here"]
    assert way.do("doc.read", name="plan")["text"] == SECRET
    assert len(way.do("mail.search", query=SECRET)["messages"]) == 1
    assert way.do("audit.verify")["entries"] == 5
    assert files_with(SECRET, user_home) == []


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
    for nonsense in ("abc", "zz" * 32, "00" * 31):
        monkeypatch.setenv("ACCORD_ENCRYPTION_KEY", nonsense)
        refusal("INVALID_CONFIG", lone_shell.do, "doc.read", name="plan")


def test_a_key_that_others_may_read_is_none(lone_shell: CommandLine, key_file: Path) -> None:
    key_file.chmod(0o640)
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
