"""`reserve` in a work tree: what names mean there, and the hook that stops commits of others' files."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from accord.cli.forward import is_here
from tests.cli.users import Done, User
from tests.need import need

pytestmark = pytest.mark.covers("S6")

ANN = {"ACCORD_AGENT": "ann"}
BEN = {"ACCORD_AGENT": "ben"}


class Repository:
    def __init__(self, user: User) -> None:
        need("git")
        self.user = user
        self.path = user.work
        self.env = {**user.env, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        self.git("init", "-q")
        self.git("config", "user.name", "x")
        self.git("config", "user.email", "x@example.org")

    def git(self, *words: str, cwd: Path | None = None, **env: str) -> str:
        done = self.try_git(*words, cwd=cwd, **env)
        assert done.code == 0, done
        return done.out

    def try_git(self, *words: str, cwd: Path | None = None, **env: str) -> Done:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.path, env={**self.env, **env}, capture_output=True, text=True, timeout=60
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def commit(self, *names: str, cwd: Path | None = None, agent: str = "ben", **env: str) -> Done:
        """Change files and commit them."""
        for name in names:
            path = (cwd or self.path) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.read_text() + "x" if path.exists() else "x")
        self.git("add", "-A", cwd=cwd)
        return self.try_git("commit", "-qm", "x", cwd=cwd, **({"ACCORD_AGENT": agent} if agent else {}), **env)

    @property
    def hook(self) -> Path:
        return self.path / ".git/hooks/pre-commit"

    def install(self, *words: str, cwd: Path | None = None) -> Done:
        return self.user.run("reserve", "install-hook", *words, cwd=cwd)


@pytest.fixture
def repository(user: User) -> Repository:
    return Repository(user)


def reserve(user: User, owner: str, *globs: str, cwd: Path | None = None) -> Done:
    return user.run("--json", "reserve", "add", "--owner", owner, *globs, cwd=cwd)


def test_names_are_relative_to_where_one_is(repository: Repository) -> None:
    user = repository.user
    below = repository.path / "src/[id]"
    below.mkdir(parents=True)
    found = reserve(user, "ann", "*.py", "../b", f"{repository.path}/docs/*.md", cwd=below).json
    assert found["project"] == str(repository.path)
    assert found["globs"] == ["src/[[]id]/*.py", "src/b", "docs/*.md"]
    assert user.run("reserve", "check", "a.py", "--owner", "ben", cwd=below).error == "RESERVED"
    assert user.run("reserve", "check", "src/i/a.py", "--owner", "ben").code == 0
    assert reserve(user, "ann", ".", cwd=below).json["globs"] == ["src/[[]id]"]
    assert reserve(user, "ann", ".").json["globs"] == ["."]
    refused = reserve(user, "ann", "../../../x", cwd=below)
    assert refused.error == "USAGE"
    assert "outside of the project" in refused.out
    assert reserve(user, "ann", "/etc/*").error == "USAGE"
    assert user.run("reserve", "release", "--all", "--owner", "ann", cwd=below).code == 0
    assert user.json("reserve", "list")["reservations"] == []


def test_without_git_the_project_is_where_one_is_or_what_is_named(user: User) -> None:
    (user.work / "sub").mkdir()
    assert reserve(user, "ann", "x", cwd=user.work / "sub").json["project"] == str(user.work / "sub")
    found = reserve(user, "ann", "x", "--project", "..", cwd=user.work / "sub").json
    assert (found["project"], found["globs"]) == (str(user.work), ["sub/x"])
    found = reserve(user, "ann", "x", "--project", "work/sub", cwd=user.folder).json
    assert (found["project"], found["globs"]) == (str(user.work / "sub"), ["x"])


def test_the_owner_is_the_agent(user: User) -> None:
    assert user.json("reserve", "add", "x", env=ANN)["owner"] == "ann"
    assert user.run("reserve", "check", "x", env=ANN).code == 0
    assert user.run("reserve", "check", "x", env=BEN).error == "RESERVED"
    assert user.run("reserve", "check", "x").error == "RESERVED"  # a person
    assert user.run("reserve", "add", "y").error == "USAGE"


def test_a_commit_of_anothers_files_is_stopped(repository: Repository) -> None:
    assert repository.install().code == 0
    assert os.access(repository.hook, os.X_OK)
    reserve(repository.user, "ann", "src/**")
    stopped = repository.commit("src/a.py", "b.py")
    assert stopped.code == 1
    assert "src/a.py is reserved by ann (src/**, until" in stopped.err
    assert "b.py is" not in stopped.err
    assert repository.commit("b.py", agent="ann").code == 0
    assert repository.commit("b.py").code == 0
    assert repository.commit("src/a.py", agent="").code == 1  # a person without a name of an agent
    assert repository.try_git("commit", "-qm", "x", "--no-verify").code == 0
    repository.user.json("reserve", "release", "--all", "--owner", "ann")
    assert repository.commit("src/a.py").code == 0


def test_what_is_staged_as_a_script_asks(repository: Repository) -> None:
    user = repository.user
    reserve(user, "ann", "a")
    assert user.run("--json", "reserve", "check", "--staged").json == {"status": "ok", "held": []}
    (repository.path / "a").write_text("x")
    repository.git("add", "a")
    stopped = user.run("--json", "reserve", "check", "--staged")
    assert (stopped.code, stopped.error) == (8, "COMMIT_STOPPED")
    assert user.run("reserve", "check", "--staged", env=ANN).out == ""
    assert user.run("reserve", "check", "--staged", "a").error == "USAGE"
    assert user.run("reserve", "check").error == "USAGE"
    elsewhere = user.run("reserve", "check", "--staged", cwd=user.folder)
    assert elsewhere.error == "FILE_UNREADABLE"
    assert "not a git repository" in elsewhere.err


def test_a_person_may_commit_what_is_reserved_for_a_person(repository: Repository) -> None:
    repository.install()
    reserve(repository.user, "human", "a")
    assert repository.commit("a", agent="").code == 0
    assert repository.commit("a").code == 1


def test_an_advisory_one_only_warns(repository: Repository) -> None:
    repository.install()
    repository.user.json("reserve", "add", "a", "--owner", "ann", "--advisory", "--note", "mine soon")
    done = repository.commit("a")
    assert done.code == 0
    assert "a is reserved by ann" in done.err
    assert "mine soon" in done.err


def test_renames_and_deletions_count(repository: Repository) -> None:
    repository.commit("old", "other")
    repository.install()
    reserve(repository.user, "ann", "old")
    repository.git("mv", "old", "new")
    assert repository.try_git("commit", "-qm", "x", ACCORD_AGENT="ben").code == 1
    repository.git("reset", "-q", "--hard")
    repository.git("rm", "-q", "old")
    assert repository.try_git("commit", "-qm", "x", ACCORD_AGENT="ben").code == 1
    repository.git("reset", "-q", "--hard")
    (repository.path / "old").write_text("changed")
    (repository.path / "other").write_text("changed")
    assert repository.try_git("commit", "-qm", "x", "other", ACCORD_AGENT="ben").code == 0  # only that one
    assert repository.try_git("commit", "-qm", "x", "-a", ACCORD_AGENT="ben").code == 1


@pytest.mark.parametrize(
    "name", ["a b", "-x", "--help", "$(touch made)", "new\nline", "'\"", "ü", "[id].tsx", "\x1b[31m"]
)
def test_any_name_of_a_file(repository: Repository, name: str) -> None:
    repository.install()
    reserve(repository.user, "ann", "odd")
    stopped = repository.commit(f"odd/{name}")
    assert stopped.code == 1, stopped
    assert "\x1b" not in stopped.err
    assert repository.commit(f"even/{name}").code == 1  # the first is still there to be committed
    repository.user.json("reserve", "release", "--all", "--owner", "ann")
    assert repository.commit("x").code == 0
    assert not (repository.path / "made").exists()


def test_a_name_that_is_no_text(repository: Repository) -> None:
    repository.install()
    reserve(repository.user, "ann", "odd")
    (repository.path / "odd").mkdir()
    with open(os.fsencode(repository.path) + b"/odd/\xff", "wb"):
        pass
    assert repository.commit().code == 1


OWN = "#!/bin/sh -e\n# mine\necho mine-ran\nexit 0\n"


def test_a_hook_that_is_there_goes_on_working(repository: Repository) -> None:
    repository.hook.write_text(OWN)
    repository.hook.chmod(0o750)
    assert repository.install().code == 0
    once = repository.hook.read_text()
    assert "already" in repository.install().out
    assert repository.hook.read_text() == once
    assert repository.hook.stat().st_mode & 0o777 == 0o750
    assert "mine-ran" in repository.commit("a").err + repository.commit("a").out
    reserve(repository.user, "ann", "a")
    assert repository.commit("a").code == 1  # though the other would have let it
    assert repository.install("--remove").code == 0
    assert repository.hook.read_text() == OWN
    assert "nothing of accord" in repository.install("--remove").out
    assert repository.commit("a").code == 0


def test_a_hook_of_its_own_is_removed_whole(repository: Repository) -> None:
    repository.install()
    repository.install("--remove")
    assert not repository.hook.exists()


def test_an_older_block_is_replaced(repository: Repository) -> None:
    repository.hook.write_text(OWN)
    repository.hook.chmod(0o755)
    repository.install()
    right = repository.hook.read_text()
    repository.hook.write_text(right.replace("reserve check", "reserve look"))
    repository.install()
    assert repository.hook.read_text() == right


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [("#!/usr/bin/env python3\nprint()\n", 0o755, "is no shell script"), (OWN, 0o644, "may not be run"),
     ("\x7fELF", 0o755, "is no shell script"), ("#!/usr/bin/fish\n", 0o755, "is no shell script")],
)  # fmt: skip
def test_a_hook_that_cannot_be_added_to_is_left_alone(
    repository: Repository, text: str, mode: int, reason: str
) -> None:
    repository.hook.write_text(text)
    repository.hook.chmod(mode)
    done = repository.install()
    assert (done.code, done.error) == (73, "HOOK_FOREIGN")
    assert reason in done.err
    assert "accord reserve check --staged" in done.err
    assert repository.hook.read_text() == text


def test_where_git_looks_for_hooks(repository: Repository) -> None:
    repository.git("config", "core.hooksPath", ".husky")
    repository.install()
    assert not repository.hook.exists()
    assert (repository.path / ".husky/pre-commit").exists()
    reserve(repository.user, "ann", "a")
    assert repository.commit("a").code == 1


def test_another_work_tree_has_the_hook_too(repository: Repository) -> None:
    repository.commit("first")
    tree = repository.user.folder / "tree"
    repository.git("worktree", "add", "-q", str(tree))
    (tree / "sub").mkdir()
    repository.install(cwd=tree / "sub")
    assert repository.hook.exists()
    reserve(repository.user, "ann", "a", cwd=tree)
    assert repository.commit("a", cwd=tree).code == 1
    assert repository.commit("a").code == 0  # which is another project


def test_without_git_there_is_no_hook(user: User) -> None:
    done = user.run("reserve", "install-hook")
    assert done.error == "FILE_UNREADABLE"
    assert "not a git repository" in done.err


@pytest.mark.parametrize("broken", ["missing", "crashes", "cannot read its home"])
def test_a_commit_goes_on_without_accord(repository: Repository, broken: str) -> None:
    repository.install()
    reserve(repository.user, "ann", "a")
    env: dict[str, Any] = {}
    if broken == "cannot read its home":
        env = {"ACCORD_HOME": "/dev/null"}
    else:
        folder = repository.user.folder / "bin"
        folder.mkdir()
        for program in ("git", "sh"):
            (folder / program).symlink_to(f"/usr/bin/{program}")
        if broken == "crashes":
            (folder / "accord").write_text("#!/bin/sh\nexit 1\n")
            (folder / "accord").chmod(0o755)
        env = {"PATH": f"{folder}"}
    done = repository.commit("a", **env)
    assert done.code == 0, done
    assert "reservations were not checked" in done.err


def test_a_wrong_name_stops_a_commit(repository: Repository) -> None:
    """Else whoever mistypes it would get past what others reserved."""
    repository.user.json("reserve", "install-hook")
    done = repository.commit("a", agent="not a name")
    assert done.code == 1, done
    assert "INVALID_IDENTITY" in done.err


def test_nothing_is_no_glob(user: User) -> None:
    """As from a variable that is not set: it would be the whole project."""
    done = user.run("reserve", "add", "", "--owner", "ann")
    assert done.code == 2
    assert user.json("reserve", "list")["reservations"] == []


def test_what_needs_its_own_process() -> None:
    assert is_here(["reserve", "check"])
    assert is_here(["lock", "run"])
    assert not is_here(["lock", "acquire"])
