"""`accord install` and `accord uninstall`, as people and programs call them; the skill's scripts, as agents do."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.cli.forward import is_here
from accord.install import NAMES
from tests.cli.users import ACCORD, Done, User
from tests.install.conftest import MEMORY
from tests.need import need

pytestmark = pytest.mark.covers("I3")


@pytest.fixture
def user() -> Iterator[User]:
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY if MEMORY.is_dir() else None))
    yield User(folder)
    shutil.rmtree(folder)


def files(user: User) -> dict[str, bytes]:
    found = [path for path in user.folder.rglob("*") if path.is_file() and user.home not in path.parents]
    return {str(path.relative_to(user.folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("name", NAMES)
def test_in_and_out_again(user: User, name: str) -> None:
    done = user.run("install", name)
    assert (done.code, done.err) == (0, "")
    assert f"created    {user.folder}/" in done.out
    there = files(user)
    assert there
    assert ACCORD.encode() in b"".join(there.values())
    again = user.run("install", name)
    assert (again.code, again.err) == (0, "")
    assert f"unchanged  {user.folder}/" in again.out
    assert files(user) == there
    assert user.run("uninstall", name).code == 0
    assert files(user) == {}


def test_programs_are_told_which_files_and_what_was_done(user: User) -> None:
    found = user.json("install", "codex", "--project")
    assert found.pop("notes")[0].startswith("Codex runs new hooks only once you trust them")
    assert found == {
        "status": "ok",
        "name": "codex",
        "scope": "project",
        "folder": str(user.work),
        "dry_run": False,
        "files": [
            {"path": f"{user.work}/.codex/hooks.json", "done": "created"},
            {"path": f"{user.work}/.codex/config.toml", "done": "created"},
        ],
    }
    assert user.json("uninstall", "codex", "--project")["files"][0]["done"] == "removed"


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_shows_what_would_change_and_writes_nothing(user: User, name: str) -> None:
    for words in (["install", name, "--dry-run"], ["uninstall", "--dry-run", name]):
        done = user.run(*words)
        assert (done.code, done.err) == (0, "")
        assert not user.home.exists()
        assert files(user) == {}
    shown = user.run("install", name, "--dry-run").out
    assert "+++ " in shown
    assert f"would be created    {user.folder}/" in shown
    user.run("install", name)
    there = files(user)
    found = user.json("uninstall", name, "--dry-run")
    assert found["diff"].count("+++ /dev/null") == len(there)
    assert {file["done"] for file in found["files"]} == {"removed"}
    assert files(user) == there


def test_a_project_is_the_work_tree_that_one_is_in(user: User) -> None:
    below = user.work / "a/b"
    below.mkdir(parents=True)
    subprocess.run([need("git"), "init", "-q", str(user.work)], check=True)
    assert user.run("install", "claude", "--project", cwd=below).code == 0
    assert (user.work / ".mcp.json").exists()
    assert user.run("uninstall", "claude", "--project").code == 0
    assert not (user.work / ".mcp.json").exists()


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_ones_home_is_no_project(user: User, verb: str) -> None:
    """Its .claude/settings.json is one's own: taken out for the project, it would be gone for all of them."""
    done = user.run(verb, "claude", "--project", cwd=user.folder)
    assert (done.code, done.error) == (2, "USAGE")
    assert "The project here is your home" in done.err
    assert files(user) == {}


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_what_an_agent_may_not(user: User, verb: str) -> None:
    user.json("register", "ann")
    for more in ([], ["--dry-run"]):
        done = user.run(verb, "claude", *more, env={"ACCORD_AGENT": "ann"})
        assert (done.code, done.error) == (77, "NOT_PERMITTED")
        assert f"accord {verb} is for the operator" in done.err
    assert files(user) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name one of claude, codex, gemini, opencode, skill"),
        (["cursor"], "Name one of"),
        (["../claude"], "Name one of"),
        (["claude", "codex"], "one word too many"),
        (["claude", "--project", "--user"], "Give either --project or --user"),
        (["claude", "--global"], "There is no option"),
    ],
)
def test_what_is_no_such_command(user: User, words: list[str], said: str) -> None:
    for verb in ("install", "uninstall"):
        done = user.run(verb, *words)
        assert (done.code, done.error) == (2, "USAGE")
        assert said in done.err
    assert files(user) == {}


def test_a_file_that_cannot_be_read_is_named(user: User) -> None:
    path = user.folder / ".claude.json"
    path.write_text("{")
    found = user.run("install", "claude", "--json").json
    assert found["error_code"] == "SETTINGS_UNUSABLE"
    assert found["details"] == {"path": str(path), "reason": "is no JSON, in line 1"}
    assert files(user) == {".claude.json": b"{"}


def test_a_home_that_is_named_is_named_in_every_command(user: User) -> None:
    assert user.run("--home", "other", "install", "claude").code == 0
    settings = json.loads((user.folder / ".claude/settings.json").read_text())
    command = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert command == f"{ACCORD} hook stop --brain claude --home {user.work}/other"
    servers = json.loads((user.folder / ".claude.json").read_text())["mcpServers"]
    assert servers["accord"]["args"] == ["mcp", "--home", f"{user.work}/other"]
    assert user.run("install", "claude").code == 0
    assert "--home" not in (user.folder / ".claude/settings.json").read_text()


def test_a_link_to_accord_stays_one(user: User) -> None:
    """As pipx makes them, which outlive upgrades."""
    link = user.folder / "bin/accord"
    link.parent.mkdir()
    link.symlink_to(ACCORD)
    assert user.run("install", "gemini", command=[str(link)]).code == 0
    assert f"{link} hook" in (user.folder / ".gemini/settings.json").read_text()
    assert (
        user.run("install", "gemini", command=["accord"], env={"PATH": f"{link.parent}:{os.environ['PATH']}"}).code == 0
    )
    assert f"{link} hook" in (user.folder / ".gemini/settings.json").read_text()


def test_they_are_done_by_their_own_process() -> None:
    assert is_here(["install", "claude"])
    assert is_here(["uninstall", "claude"])


# The skill.


@pytest.fixture(params=["user", "project"])
def scripts(user: User, request: pytest.FixtureRequest) -> Path:
    assert user.run("install", "skill", f"--{request.param}").code == 0
    folder = user.folder if request.param == "user" else user.work
    return folder / ".agents/skills/accord/scripts"


def script(user: User, scripts: Path, name: str, *words: str, **env: str | None) -> Done:
    return user.run(str(scripts / f"{name}.py"), *words, command=[sys.executable], env=env)


def test_the_skill_is_valid(user: User, scripts: Path) -> None:
    validate = Path(sys.executable).with_name("agentskills")
    for folder in (scripts.parent, user.folder / ".claude/skills/accord", user.work / ".claude/skills/accord"):
        if folder.exists():
            done = subprocess.run([validate, "validate", folder], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def test_the_scripts_do_what_the_first_document_says(user: User, scripts: Path) -> None:
    for name in ("alpha", "beta"):
        assert script(user, scripts, "register", "--identity", name).json["status"] == "ok"
    assert script(user, scripts, "send", "--from", "alpha", "--to", "beta", "--message", "one").json["status"] == "ok"
    (user.work / "long.txt").write_text("two")
    done = script(user, scripts, "send", "--from", "alpha", "--to", "beta", "--message-file", "long.txt")
    assert done.json["status"] == "ok"
    there = script(user, scripts, "discover").json["identities"]
    assert {agent["identity"] for agent in there} >= {"alpha", "beta"}
    for _ in range(2):
        found = script(user, scripts, "check", "--identity", "beta").json["messages"]
        assert [message["message"] for message in found] == ["one", "two"]
    found = script(user, scripts, "check", "--identity", "beta", "--clear", "--limit", "1").json["messages"]
    assert [message["message"] for message in found] == ["one"]
    found = script(user, scripts, "check", "--identity", "beta", "--limit", "9").json["messages"]
    assert [message["message"] for message in found] == ["two"]
    assert script(user, scripts, "unregister", "--identity", "beta").json["status"] == "ok"
    done = script(user, scripts, "send", "--from", "alpha", "--to", "beta", "--message", "three")
    assert done.json["error_code"] == "RECIPIENT_GONE"
    assert not (scripts / "__pycache__").exists()


def test_uv_runs_the_scripts(user: User, scripts: Path) -> None:
    """As the first document has them. They need no packages, so that nothing is fetched."""
    env = {"UV_OFFLINE": "1", "UV_PYTHON": sys.executable, "UV_CACHE_DIR": str(user.folder / "uv")}
    command = [str(Path(sys.executable).with_name("uv")), "run"]
    for words in (
        ["register.py", "--identity", "alpha"],
        ["send.py", "--from", "alpha", "--to", "alpha", "--message", "one"],
        ["check.py", "--identity", "alpha", "--limit", "1", "--clear"],
        ["discover.py"],
        ["hub.py", "status"],
        ["unregister.py", "--identity", "alpha"],
    ):
        done = user.run(f"scripts/{words[0]}", *words[1:], command=command, cwd=scripts.parent, env=env)
        assert done.json["status"] == "ok", done
    assert not (scripts / "__pycache__").exists()


def test_the_scripts_start_and_stop_a_hub(user: User, scripts: Path) -> None:
    assert script(user, scripts, "hub").code == 1
    assert script(user, scripts, "hub", "status").json["running"] is False
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    try:
        assert script(user, scripts, "hub", "start", "--port", port).json["port"] == int(port)
        assert script(user, scripts, "hub", "status", "--port", port).json["running"] is True
        assert script(user, scripts, "discover", "--hub-port", port).code == 0
        assert script(user, scripts, "discover", "--hub-port", "1").json["error_code"] == "HUB_NOT_RUNNING"
        assert script(user, scripts, "hub", "stop", "--port", port).json["stopped"] is True
    finally:
        user.run("hub", "stop")


@pytest.mark.parametrize("name", ["hub", "register", "unregister", "send", "check", "discover"])
def test_every_script_says_its_version_and_how_to_run_it(user: User, scripts: Path, name: str) -> None:
    text = (scripts / f"{name}.py").read_text()
    assert text.startswith('# /// script\n# requires-python = ">=3.11"\n# dependencies = []\n# ///\n')
    assert f"{name}.py " in text
    assert script(user, scripts, name, "--version").json["version"]
    assert f"`uv run scripts/{name}.py" in (scripts.parent / "SKILL.md").read_text()


def test_the_scripts_find_accord_as_a_module_too(user: User) -> None:
    user.run("install", "skill", "--project")
    scripts = user.work / ".agents/skills/accord/scripts"
    assert ACCORD not in (scripts / "_accord.py").read_text()
    assert script(user, scripts, "discover", PATH="/nowhere").code == 0
    done = user.run("-S", str(scripts / "discover.py"), command=[sys.executable], env={"PATH": "/nowhere"})
    assert (done.code, done.json["error_code"]) == (127, "COMMAND_NOT_FOUND")
    assert "accord is not on the PATH" in done.json["error_message"]
