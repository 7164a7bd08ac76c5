"""Settings: which value holds, what the files may say, and what reading them costs."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from accord.settings import SETTINGS
from tests.cli.users import Done, User, contents
from tests.need import need

pytestmark = pytest.mark.covers("T3.17")

MAIL = ("send", "--from", "ann", "--to", "ben", "--message")


def setting(user: User, name: str, *words: str, env: dict[str, str | None] | None = None) -> tuple[Any, str]:
    """The value, and where it comes from."""
    (found,) = [found for found in user.json(*words, "config", env=env)["settings"] if found["name"] == name]
    return found["value"], found["source"]


def home_file(user: User, text: str) -> Path:
    user.home.mkdir(mode=0o700, exist_ok=True)
    path = user.home / "accord.yml"
    path.write_text(text)
    return path


def project_file(user: User, text: str) -> Path:
    path = user.work / "accord.yml"
    path.write_text(text)
    return path


def test_the_nearer_wins(user: User) -> None:
    assert setting(user, "inbox_limit") == (100_000, "default")
    in_home = home_file(user, "inbox_limit: 1\nmessage_limit: 100\n")
    assert setting(user, "inbox_limit") == (1, str(in_home))
    in_project = project_file(user, "inbox_limit: 2\n")
    assert setting(user, "inbox_limit") == (2, str(in_project))
    assert setting(user, "message_limit") == (100, str(in_home)), "what the project does not set"
    env: dict[str, str | None] = {"ACCORD_INBOX_LIMIT": "3"}
    assert setting(user, "inbox_limit", env=env) == (3, "$ACCORD_INBOX_LIMIT")
    assert setting(user, "inbox_limit", env={"ACCORD_INBOX_LIMIT": ""}) == (2, str(in_project))


def test_a_flag_wins_over_everything(user: User) -> None:
    in_home = home_file(user, f"engine: files:{user.folder}/home-store\n")
    assert setting(user, "engine") == (f"files:{user.folder}/home-store", str(in_home))
    env: dict[str, str | None] = {"ACCORD_ENGINE": f"files:{user.folder}/env-store"}
    assert setting(user, "engine", env=env)[1] == "$ACCORD_ENGINE"
    flag = f"files:{user.folder}/flag-store"
    assert setting(user, "engine", "--engine", flag, env=env) == (flag, "flag")
    assert user.run("--engine", flag, "register", "ann", env=env).code == 0
    assert (user.folder / "flag-store").is_dir()
    assert not (user.folder / "env-store").exists()
    assert not (user.folder / "home-store").exists()
    assert not (user.home / "store.db").exists()


def test_the_nearest_project_upwards(user: User) -> None:
    deep = user.work / "a" / "b"
    deep.mkdir(parents=True)
    outer = project_file(user, "inbox_limit: 2\n")
    assert user.run("--json", "config", cwd=deep).json["settings"]
    inner = user.work / "a" / "accord.yml"
    inner.write_text("message_limit: 7\n")
    found = {one["name"]: one for one in user.run("--json", "config", cwd=deep).json["settings"]}
    assert found["message_limit"]["source"] == str(inner)
    assert found["inbox_limit"]["source"] == "default", "the nearest one, and not those above it"
    inner.unlink()
    found = {one["name"]: one for one in user.run("--json", "config", cwd=deep).json["settings"]}
    assert found["inbox_limit"]["source"] == str(outer)


def test_config_for_people_has_every_setting(user: User) -> None:
    done = user.run("config")
    assert (done.code, done.err) == (0, "")
    for name in SETTINGS:
        assert f"\n{name} " in done.out
    assert str(user.home) in done.out


def test_a_setting_has_its_effect(ann: User) -> None:
    home_file(ann, "message_limit: 10\ninbox_limit: 1\n")
    assert ann.run(*MAIL, "x" * 11).error == "MESSAGE_TOO_LARGE"
    assert ann.run(*MAIL, "x" * 10).code == 0
    assert ann.run(*MAIL, "x").error == "INBOX_FULL"
    assert ann.run(*MAIL, "x", env={"ACCORD_INBOX_LIMIT": "2"}).code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("inbox_limt: 3", "inbox_limit"),
        ("inbox-limit: 3", "inbox_limit"),
        ("qqqqqq: 3", "there are engine"),
        ("inbox_limit: [", "not YAML"),
        ("a: b: c", "not YAML"),
        ("\t- x", "not YAML"),
        ("inbox_limit: &a [*a]", "inbox_limit should be"),
        ("- inbox_limit", "NAME: VALUE"),
        ("just text", "NAME: VALUE"),
        ("3", "NAME: VALUE"),
        ("inbox_limit: many", "inbox_limit should be a whole number"),
        ("inbox_limit: 0", "inbox_limit should be"),
        ("inbox_limit: -1", "inbox_limit should be"),
        ("inbox_limit: true", "inbox_limit should be"),
        ("inbox_limit: 1.5", "inbox_limit should be"),
        ("inbox_limit:", "inbox_limit should be"),
        ("inbox_limit: 99999999999999999999999", "inbox_limit should be"),
        ("message_limit: 1048577", "message_limit should be"),
        ("engine: 3", "engine should be"),
        ('engine: "a\\u001b[31m"', "engine should be"),
        ("inbox_limit: !!python/object/apply:os.system ['touch pwned']", "not YAML"),
        ("{[a]: 1}", "YAML"),
        ("? [a]\n: 1", "YAML"),
        ("3: 4", "no setting"),
        ("null: 4", "no setting"),
        ("\x00", "YAML"),
        ("\ufffe", "YAML"),
        ('"\\ud800": 1', "no setting"),
        ("inbox_limit: 1\nmessage_limit: 2\ninbox_limit: 3", "'inbox_limit' twice"),
        ("inbox_limit: 2026-01-01", "inbox_limit should be"),
        ("inbox_limit: 2026-99-99", "YAML"),
        ("[" * 500, "YAML"),
        ("a: &a [x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", "no setting"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_files_that_cannot_be_read(text: str, reason: str, user: User) -> None:
    """In the home or in a project; the file and the cure are named, and `config` says so too."""
    for write in (home_file, project_file):
        path = write(user, text)
        for verb in (["config"], ["discover"]):
            done = user.run("--json", *verb)
            assert (done.code, done.error, done.err) == (78, "INVALID_CONFIG", ""), done
            assert reason in done.json["error_message"]
            assert done.json["details"]["path"] == str(path)
        path.unlink()
    assert not (user.work / "pwned").exists()


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"inbox_limit: \xff", b"x" * (1 << 21), b"\x80"], ids=lambda data: data[:9]
)
def test_files_of_other_bytes(data: bytes, user: User) -> None:
    home_file(user, "").write_bytes(data)
    assert user.run("config").error == "INVALID_CONFIG"


def test_a_file_that_is_none(user: User) -> None:
    user.home.mkdir(mode=0o700)
    path = user.home / "accord.yml"
    path.mkdir()
    assert user.run("config").error == "INVALID_CONFIG"
    path.rmdir()
    path.symlink_to("nowhere")
    assert user.run("config").error == "INVALID_CONFIG"


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(user: User) -> None:
    user.home.mkdir(mode=0o700)
    os.mkfifo(user.home / "accord.yml")
    done = user.run("2", "accord", "config", command=(need("timeout"),))
    assert done.error == "INVALID_CONFIG", done


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n...\n", "{}", "~"], ids=ascii)
def test_files_that_set_nothing(text: str, user: User) -> None:
    home_file(user, text)
    assert setting(user, "inbox_limit") == (100_000, "default")


@pytest.mark.parametrize("value", ["0", "-1", "x", "1e3", "٣", "9" * 400])
def test_a_variable_that_cannot_be_read(value: str, user: User) -> None:
    done = user.run("--json", "config", env={"ACCORD_INBOX_LIMIT": value})
    assert (done.code, done.error) == (78, "INVALID_CONFIG")
    assert "$ACCORD_INBOX_LIMIT" in done.json["error_message"]


def loads_yaml(user: User, *words: str) -> bool:
    """Whether a command reads YAML."""
    done = user.run(*words, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert "accord.cli.run" in done.err
    return "yaml" in done.err


@pytest.mark.covers("Q2")
def test_a_file_is_read_once_for_each_change(ann: User) -> None:
    in_home = home_file(ann, "inbox_limit: 5\n")
    project_file(ann, "inbox_limit: 6\n")
    assert loads_yaml(ann, *MAIL, "x")
    assert not loads_yaml(ann, *MAIL, "x")
    assert not loads_yaml(ann, "config")
    assert setting(ann, "inbox_limit")[0] == 6
    for number in range(5):
        project_file(ann, f"inbox_limit: {number + 1}\n")  # of the same length, and at once
        assert setting(ann, "inbox_limit")[0] == number + 1
        assert not loads_yaml(ann, "config")
    (ann.work / "accord.yml").unlink()
    assert setting(ann, "inbox_limit") == (5, str(in_home))
    in_home.unlink()
    assert setting(ann, "inbox_limit") == (100_000, "default")


def test_an_edit_that_keeps_size_and_time_is_seen(ann: User) -> None:
    """As of `cp -p`, `rsync -t` and git: another file in its place, or another change time."""
    path = home_file(ann, "inbox_limit: 5\n")
    assert setting(ann, "inbox_limit")[0] == 5
    before = path.stat()
    path.write_text("inbox_limit: 6\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert setting(ann, "inbox_limit")[0] == 6


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"x": 1}', b"null"])
def test_a_damaged_cache_costs_time_only(damage: bytes, user: User) -> None:
    home_file(user, "inbox_limit: 5\n")
    setting(user, "inbox_limit")
    cache = user.home / "cache" / f"settings-{os.geteuid()}.json"
    assert cache.is_file()
    cache.write_bytes(damage)
    assert setting(user, "inbox_limit")[0] == 5


@pytest.mark.parametrize("entry", ['{"%s": {}}', '{"%s": {"stamp": "%s"}}', '{"%s": 3}'])
def test_a_strange_entry_of_the_cache_costs_time_only(entry: str, user: User) -> None:
    path = home_file(user, "inbox_limit: 5\n")
    setting(user, "inbox_limit")
    cache = user.home / "cache" / f"settings-{os.geteuid()}.json"
    found = path.stat()
    stamp = f"{found.st_mtime_ns} {found.st_size} {found.st_ino} {found.st_dev}"
    cache.write_text(entry % (path, stamp) if entry.count("%s") == 2 else entry % path)
    assert setting(user, "inbox_limit")[0] == 5


def refused(done: Done, path: Path) -> bool:
    assert done.code in (0, 78), done
    if done.code:
        assert done.error == "NOT_TRUSTED"
        assert f"accord trust {path}" in done.err
    return done.code == 78


def test_a_project_chooses_an_engine_only_once_it_is_trusted(user: User) -> None:
    store = user.folder / "project-store"
    path = project_file(user, f"engine: files:{store}\n")
    for words in (["register", "ann"], ["discover"], ["config"]):
        assert refused(user.run(*words), path)
    assert not store.exists()
    before = contents(user.work)
    assert user.run("trust", ".").code == 0
    assert contents(user.work) == before
    assert not refused(user.run("register", "ann"), path)
    assert store.is_dir()
    assert setting(user, "engine") == (f"files:{store}", str(path))

    path.write_text(f"engine: files:{store}2\n")
    assert refused(user.run("discover"), path), "another text"
    assert user.run("trust", str(path)).code == 0
    assert not refused(user.run("discover"), path)
    path.write_text(f"engine: files:{store}\n")
    assert refused(user.run("discover"), path), "the earlier text, which is no longer the one that was trusted last"


def test_trust_is_for_one_file_in_one_home(user: User) -> None:
    path = project_file(user, "engine: 'memory:'\n")
    assert user.run("trust", ".").code == 0
    assert not refused(user.run("discover"), path)
    assert refused(user.run("discover", "--home", str(user.folder / "other")), path)
    copy = user.folder / "copy"
    copy.mkdir()
    (copy / "accord.yml").write_text(path.read_text())
    assert refused(user.run("discover", cwd=copy), copy / "accord.yml")


def test_what_needs_no_trust(user: User) -> None:
    path = project_file(user, "inbox_limit: 3\n")
    assert not refused(user.run("discover"), path)
    home_file(user, f"engine: files:{user.folder}/store\n")
    assert not refused(user.run("discover"), path)


def test_an_agent_may_not_trust(user: User) -> None:
    path = project_file(user, "engine: 'memory:'\n")
    done = user.run("trust", ".", env={"ACCORD_AGENT": "ann"})
    assert (done.code, done.error) == (77, "NOT_PERMITTED")
    assert "ann" in done.err
    assert refused(user.run("discover"), path)


def test_trusting_what_is_not_there(user: User) -> None:
    for words in (["trust", "."], ["trust", "nowhere"], ["trust", "/dev/null"]):
        done = user.run(*words)
        assert (done.code, done.error) == (66, "FILE_UNREADABLE"), done
    project_file(user, "no_such_setting: 1\n")
    assert user.run("trust", ".").error == "INVALID_CONFIG"


@pytest.mark.parametrize("what", ["bad", "not trusted", "variable"])
def test_the_rest_is_shown_beside_what_is_wrong(what: str, user: User) -> None:
    env: dict[str, str | None] = {"ACCORD_METRICS": "true"}
    in_home = home_file(user, "inbox_limit: 7\n")
    code = "INVALID_CONFIG"
    if what == "bad":
        project_file(user, "inbox_limit: [")
    elif what == "not trusted":
        project_file(user, "engine: files:/tmp/elsewhere\n")
        code = "NOT_TRUSTED"
    else:
        env["ACCORD_INBOX_LIMIT"] = "many"
    done = user.run("config", env=env)
    assert (done.code, done.error) == (78, code), done
    assert re.search(r"^metrics +True +\$ACCORD_METRICS$", done.out, re.MULTILINE)
    assert (f"  {in_home}\n" in done.out) == (what != "variable")
    for_programs = user.run("--json", "config", env=env).json
    assert for_programs["error_code"] == code
    assert "metrics" in [setting["name"] for setting in for_programs["details"]["settings"]]
    found = user.run("--json", "doctor", env=env)
    rows = {row["check"]: row for row in found.json["checks"]}
    assert (found.code, rows["settings"]["ok"], rows["settings"]["error_code"]) == (1, False, code)
    assert all(rows[name]["ok"] for name in ("versions", "home", "free space", "halt", "hub"))
