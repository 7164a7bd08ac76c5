"""`accord migrate` as people meet it: what is refused and why, and what that leaves behind."""

import os
from collections.abc import Iterator

import pytest

from tests.cli.users import NOBODY, User
from tests.hub.hubs import somebody, start
from tests.robustness.disks import need_root

pytestmark = pytest.mark.covers("S11")


@pytest.fixture
def user() -> Iterator[User]:
    with somebody() as user:
        user.json("register", "ann")
        user.json("send", "--from", "ann", "--to", "ann", "--message", "hello")
        yield user


def here(user: User) -> str:
    return f"sqlite:{user.home}/store.db"


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("EMPTY", "files:new", "NOTHING_TO_MIGRATE"),
        ("sqlite:none.db", "files:new", "NOTHING_TO_MIGRATE"),
        ("files:none", "files:new", "NOTHING_TO_MIGRATE"),
        ("memory:", "files:new", "USAGE"),
        ("HERE", "HERE", "USAGE"),
        ("HERE", "sqlite:../.accord/./store.db", "USAGE"),
        ("HERE", "memory:", "USAGE"),
        ("HERE", "nothing", "UNKNOWN_ENGINE"),
        ("reddis://x", "files:new", "UNKNOWN_ENGINE"),
        ("HERE", "redis://ann:s3cr3t@localhost/0", "INVALID_CONFIG"),
        ("HERE", "redis://127.0.0.1:1/0", "ENGINE_UNREACHABLE"),
        ("HERE", "etcd://127.0.0.1:1", "ENGINE_UNREACHABLE"),
    ],
)
def test_what_cannot_be_done(source: str, target: str, error: str, user: User) -> None:
    """It is said, and nothing is made."""
    places = {"HERE": here(user), "EMPTY": f"sqlite:{user.folder}/empty.db"}
    user.run("init", env={"ACCORD_ENGINE": places["EMPTY"]})
    source, target = (places.get(url, url) for url in (source, target))
    for more in ([], ["--dry-run"]):
        done = user.run("--json", "migrate", "--from", source, "--to", target, *more)
        told = [problem["error_code"] for problem in done.json.get("problems", [])]
        assert [*told, done.json.get("error_code")][0] == error, done
        assert "s3cr3t" not in done.out
        assert not (user.work / "new").exists()


def test_a_target_that_cannot_be_made(user: User) -> None:
    """Which only a try tells: --dry-run makes nothing."""
    done = user.run("migrate", "--from", here(user), "--to", "files:/proc/x")
    assert (done.code, done.error) == (73, "DATA_DIR_ERROR")


def test_a_source_that_one_may_not_read_is_not_said_to_be_empty(user: User) -> None:
    need_root()
    theirs = user.folder / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    words = ["migrate", "--from", here(user), "--to", f"files:{theirs}/new"]
    done = user.as_nobody(*words, env={"ACCORD_HOME": str(theirs / "home")})
    assert (done.code, done.error) == (73, "DATA_DIR_ERROR")
    assert str(user.home) in done.err
    assert not (theirs / "new").exists()


def test_with_the_hub_running(user: User) -> None:
    """The source's own; one that runs on the copy is no matter of this home."""
    pid = start(user)
    words = ["migrate", "--from", here(user), "--to", "files:new"]
    done = user.run(*words)
    assert (done.code, done.error) == (75, "HUB_RUNNING")
    assert str(pid) in done.err
    assert "accord hub stop" in user.run(*words, "--dry-run").out
    user.json("hub", "stop")
    assert user.json(*words)["how"] == "copied"
    user.json("hub", "start", env={"ACCORD_ENGINE": "files:new"})
    assert user.json("check", "ann", env={"ACCORD_ENGINE": "files:new"})["messages"][0]["message"] == "hello"


def test_somebody_who_goes_on_with_the_old_store_is_caught_up(user: User) -> None:
    """As long as nobody has used the copy: a second run brings what was sent since."""
    words = ["migrate", "--from", here(user), "--to", "files:new"]
    first = user.json(*words)
    user.json("send", "--from", "ann", "--to", "ann", "--message", "late")
    second = user.json(*words)
    assert (first["how"], first["mended"], second["how"]) == ("copied", 0, "compared")
    assert second["mended"] > 0
    there = {"ACCORD_ENGINE": "files:new"}
    assert [found["message"] for found in user.json("check", "ann", env=there)["messages"]] == ["hello", "late"]
    user.json("send", "--from", "ann", "--to", "ann", "--message", "too late")
    assert user.run(*words).error == "MIGRATED_BEFORE"


def test_a_person_sees_how_far_it_is(user: User) -> None:
    for number in range(60):
        user.json("doc", "write", f"d{number}", "--text", "x")
    code, screen = user.at_terminal("migrate", "--from", here(user), "--to", "files:new")
    assert code == 0
    assert b"\r[########......................] 100 of " in screen
