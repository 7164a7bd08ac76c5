"""Which engine it is, as commands show it; and that no command shows a password."""

import re
from pathlib import Path

import pytest

from tests.cli.test_settings import home_file, project_file, setting
from tests.cli.users import User

pytestmark = pytest.mark.covers("S10", "T3.17")

SECRET = "s3cr3t"


def rows(user: User, env: dict[str, str | None] | None = None) -> list[list[str]]:
    done = user.run("config", env=env)
    assert (done.code, done.err) == (0, ""), done
    return [re.split(r" {2,}", line.strip()) for line in done.out.splitlines()]


def test_config_shows_what_an_engine_is_made_of(user: User) -> None:
    text = "{backend: redis, settings: {redis_host: one, redis_db: 3, transaction_dir: /t, connection_pool_size: 9}}"
    path = str(home_file(user, f"communication: {text}\n"))
    password = user.home / "password"
    password.write_text(SECRET)
    password.chmod(0o600)
    found = rows(user, {"REDIS_PORT": "6380", "ACCORD_ENGINE_PASSWORD_FILE": str(password)})
    at = found.index(["engine", "redis://one:6380/3", path])
    assert found[at + 1 : at + 6] == [
        ["redis_host", "one", path],
        ["redis_port", "6380", "$REDIS_PORT"],
        ["redis_db", "3", path],
        ["password", "(not shown)", str(password)],
        ["engine_password_file", str(password), "$ACCORD_ENGINE_PASSWORD_FILE"],
    ]
    assert found[-2:] == [
        ["transaction_dir", "/t", f"{path}, without effect"],
        ["connection_pool_size", "9", f"{path}, without effect"],
    ]
    shown = user.json("config", env={"REDIS_PORT": "6380"})
    (engine,) = [one for one in shown["settings"] if one["name"] == "engine"]
    assert engine["parts"][1] == {"name": "redis_port", "value": 6380, "source": "$REDIS_PORT"}
    assert [one["name"] for one in shown["unused"]] == ["transaction_dir", "connection_pool_size"]


def test_an_engine_from_one_place_has_no_parts(user: User) -> None:
    path = str(home_file(user, "engine: redis://one\n"))
    found = rows(user)
    at = found.index(["engine", "redis://one", path])
    assert found[at + 1][0] == "engine_password_file"


def test_doctor_says_what_has_no_effect(user: User) -> None:
    path = home_file(user, "communication: {backend: file, settings: {transaction_dir: /t, redis_host: x}}\n")
    done = user.run("doctor")
    assert f"without effect: transaction_dir ({path}), redis_host ({path})" in done.out
    assert re.search(rf"^ok +engine +files:{user.home}/store$", done.out, re.MULTILINE)
    assert done.code == 0


def test_the_backends_of_this_machine_work(user: User) -> None:
    for backend, where in (("file", user.home / "store"), ("sqlite", user.folder / "x.db")):
        env = {"COMMUNICATION_BACKEND": backend, "SQLITE_DB": str(where)}
        assert user.run("register", "ann", env=env).code == 0
        assert where.exists()
    assert not (user.home / "store.db").exists()
    assert user.run("register", "ann", env={"COMMUNICATION_BACKEND": "sqlite"}).code == 0
    assert (user.home / "store.db").exists()


def test_a_file_where_files_is_meant(user: User) -> None:
    assert user.run("--engine", f"file:{user.folder}/f", "register", "ann").code == 0
    assert (user.folder / "f").is_dir()
    assert setting(user, "engine", "--engine", f"file:{user.folder}/f") == (f"files:{user.folder}/f", "flag")


@pytest.mark.parametrize("url", [f"redis://ann:{SECRET}@127.0.0.1:1", f"redis://127.0.0.1:1?password={SECRET}"])
def test_a_password_in_an_argument_or_a_file_is_refused(url: str, user: User) -> None:
    for words in (
        ["--engine", url, "discover"],
        ["discover", f"--engine={url}"],
        ["--json", "doctor", "--engine", url],
    ):
        done = user.run(*words)
        assert "INVALID_CONFIG" in done.out + done.err, done
        assert "ACCORD_ENGINE_PASSWORD" in done.out + done.err
        assert SECRET not in done.out + done.err
    for write in (home_file, project_file):
        path = write(user, f"engine: {url}\n")
        for words in (["discover"], ["config"], ["doctor"], ["trust", str(path)]):
            done = user.run(*words)
            assert "INVALID_CONFIG" in done.err or "holds a password" in done.out or "a password is" in done.out, done
            assert SECRET not in done.out + done.err
        path.unlink()
    assert not holding(user.folder, SECRET)


@pytest.mark.parametrize(
    "env",
    [
        {"ACCORD_ENGINE": f"redis://ann:{SECRET}@127.0.0.1:1/0"},
        pytest.param(
            {"ACCORD_ENGINE": "redis://ann@127.0.0.1:1/0", "ACCORD_ENGINE_PASSWORD": SECRET}, marks=pytest.mark.more
        ),
        {"ACCORD_ENGINE": f"reddis://ann:{SECRET}@127.0.0.1:1/0"},
        {"ACCORD_ENGINE": f"redis://ann:{SECRET}/@127.0.0.1:1/0"},
    ],
)
def test_no_command_shows_a_password(env: dict[str, str | None], user: User) -> None:
    for words in (
        ["config"],
        ["doctor"],
        ["discover"],
        ["register", "ann"],
        ["send", "--from", "ann", "--to", "ben", "--message", "x"],
        ["check", "ann"],
        ["hub", "start"],
        ["hub", "status"],
        ["hub", "logs"],
        ["audit", "list"],
        ["shellenv"],
        ["-v", "init"],
    ):
        for json in ([], ["--json"]):
            done = user.run(*json, *words, env=env)
            assert SECRET not in done.out + done.err, done
            assert "Traceback" not in done.err
    assert not holding(user.folder, SECRET)


@pytest.mark.parametrize("with_hub", [False, True])
def test_an_unknown_backend_is_told_beside_the_rest(with_hub: bool, user: User) -> None:
    if with_hub:
        user.json("hub", "start")
    try:
        env: dict[str, str | None] = {"COMMUNICATION_BACKEND": "reddis"}
        done = user.run("config", env=env)
        assert (done.code, done.error) == (78, "UNKNOWN_ENGINE")
        assert "inbox_limit" in done.out
        assert "perhaps redis" in done.err
        assert user.run("discover", env=env).error == "UNKNOWN_ENGINE"
        checked = user.run("--json", "doctor", env=env)
        assert (checked.code, checked.json["engine"]) == (1, None)
        assert {one["check"] for one in checked.json["checks"] if one["ok"]} >= {"versions", "home", "halt", "hub"}
    finally:
        user.run("hub", "stop")


def holding(folder: Path, text: str) -> list[Path]:
    """The files in which a text stands."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
