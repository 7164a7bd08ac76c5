"""Files are changed all or none, at once, and for those they were for; whatever fails or dies meanwhile."""

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.install import changes, doing
from tests.install.places import SETTINGS, Place, in_child

pytestmark = pytest.mark.covers("I3")

JSON = b'{\n  "mine": 1\n}\n'
TEXTS = {"json": JSON, "comments": JSON, "commas": JSON, "toml": b"mine = 1\n"}
DIED = 9


@pytest.fixture(params=[name for name, scope in SETTINGS if scope == "user"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fill(place: Place, name: str) -> None:
    for path, kind in SETTINGS[name, "user"].items():
        place.write("user", path, TEXTS[kind])


def test_a_link_is_followed(place: Place, name: str) -> None:
    path, kind = list(SETTINGS[name, "user"].items())[-1]
    target = place.write("user", "dotfiles/target", TEXTS[kind])
    link = place.user / path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    before = place.lying()
    place.install(name, "user")
    assert link.is_symlink()
    assert b"accord" in target.read_bytes()
    place.uninstall(name, "user")
    assert place.lying() == before


def test_a_link_that_leads_nowhere_yet(place: Place) -> None:
    (place.user / "dotfiles").mkdir()
    link = place.user / ".claude.json"
    link.symlink_to("dotfiles/claude.json")
    before = place.lying()
    place.install("claude", "user")
    assert link.is_symlink()
    assert b"accord" in (place.user / "dotfiles/claude.json").read_bytes()
    place.uninstall("claude", "user")
    assert place.lying() == before


def test_a_file_that_is_read_only_stays(place: Place, name: str) -> None:
    fill(place, name)
    last = place.user / list(SETTINGS[name, "user"])[-1]
    last.chmod(0o444)
    before = place.lying()
    with pytest.raises(errors.SettingsUnusable, match=r"is read-only\."):
        place.install(name, "user")
    assert place.lying() == before
    last.chmod(0o644)
    place.install(name, "user")
    last.chmod(0o444)
    installed = place.lying()
    with pytest.raises(errors.SettingsUnusable, match=r"is read-only\."):
        place.uninstall(name, "user")
    assert place.lying() == installed


def test_a_folder_in_the_place_of_a_file(place: Place) -> None:
    (place.user / ".claude.json").mkdir()
    with pytest.raises(errors.SettingsUnusable, match="cannot be read"):
        place.install("claude", "user")
    assert place.records() == []


def test_a_file_in_the_place_of_a_folder(place: Place) -> None:
    (place.user / ".claude").write_text("x")
    before = place.lying()
    with pytest.raises(errors.SettingsUnusable):
        place.install("claude", "user")
    assert place.lying() == before


def test_what_is_new_in_a_home_is_for_its_owner_alone(place: Place) -> None:
    for scope, mode in (("user", 0o600), ("project", 0o644)):
        place.install("claude", scope)
        for path in SETTINGS["claude", scope]:
            assert stat.S_IMODE((place.folder(scope) / path).stat().st_mode) == mode


def test_the_record_is_private(place: Place, name: str) -> None:
    fill(place, name)
    place.install(name, "user")
    folder = Path(place.home.path) / "installed"
    assert folder.stat().st_mode & 0o077 == 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("is_install", [True, False])
def test_whoever_dies_between_two_files_leaves_none_half_made(
    place: Place, name: str, step: int, is_install: bool
) -> None:
    fill(place, name)
    before = place.lying()
    place.install(name, "user")
    installed = place.lying()
    if is_install:
        place.uninstall(name, "user")
        assert place.lying() == before

    def work() -> None:
        _fail_at(step, lambda: os._exit(DIED))
        (place.install if is_install else place.uninstall)(name, "user")

    died = in_child(work) == DIED
    assert died or step > 2
    for path, lying in place.lying().items():
        if lying.kind == "file":
            known = [one[path].content for one in (before, installed) if path in one]
            assert lying.content in known or ".accord-" in path  # which is the new file before it had its name
    if is_install:
        place.install(name, "user")
        assert place.lying() == installed
    place.uninstall(name, "user")
    assert place.lying() == before
    assert place.records() == []


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("is_install", [True, False])
@pytest.mark.parametrize("is_full", [True, False])
def test_when_one_file_fails_all_are_as_they_were(
    place: Place, monkeypatch: pytest.MonkeyPatch, name: str, step: int, is_install: bool, is_full: bool
) -> None:
    fill(place, name)
    if not is_install:
        place.install(name, "user")
    before, records = place.lying(), place.records()
    code = errno.ENOSPC if is_full else errno.EACCES

    def fail() -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        _fail_at(step, fail, patch)
        found = _code_of(lambda: (place.install if is_install else place.uninstall)(name, "user"))
    if not found:
        assert step > 1
        return
    assert found in (("STORAGE_FULL",) if is_full else ("SETTINGS_UNUSABLE", "DATA_DIR_ERROR"))
    assert place.lying() == before
    assert place.records() == records


def _code_of(work: Callable[[], object]) -> str:
    """Of the error that it ends with."""
    try:
        work()
    except errors.AccordError as error:
        return error.code
    return ""


def test_what_another_program_writes_meanwhile_is_not_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Claude Code does, which keeps its own state in the same file."""
    fill(place, "claude")
    file = place.user / ".claude.json"
    real = changes.make

    def slow(*args: Any) -> None:
        file.write_bytes(b'{"state": 2}')
        real(*args)

    monkeypatch.setattr(changes, "make", slow)
    with pytest.raises(errors.SettingsUnusable, match="by another program just now"):
        place.install("claude", "user")
    assert file.read_bytes() == b'{"state": 2}'
    assert (place.user / ".claude/settings.json").read_bytes() == JSON
    assert place.records() == []


def test_folders_that_others_use_by_now_stay(place: Place) -> None:
    place.install("claude", "user")
    place.install("skill", "user")
    (place.user / ".agents/mine").write_text("x")
    place.uninstall("claude", "user")
    place.uninstall("skill", "user")
    assert [str(path.relative_to(place.user)) for path in place.user.rglob("*")] == [".agents", ".agents/mine"]
    (place.user / ".agents/mine").unlink()
    place.install("gemini", "user")
    place.uninstall("gemini", "user")
    assert place.lying() == {}


def test_files_of_accords_own_that_were_changed_stay(place: Place) -> None:
    place.install("opencode", "user")
    plugin = place.user / ".config/opencode/plugins/accord.js"
    plugin.write_text(plugin.read_text() + "// mine\n")
    with pytest.raises(errors.SettingsTaken, match="was changed by hand"):
        place.install("opencode", "user", "/new/accord")
    done = place.uninstall("opencode", "user")
    assert done[".config/opencode/plugins/accord.js"] == "kept"
    assert "// mine" in plugin.read_text()


def test_a_foreign_file_under_the_name_of_accords_own_stays(place: Place) -> None:
    place.write("user", ".agents/skills/accord/SKILL.md", b"mine\n")
    before = place.lying()
    with pytest.raises(errors.SettingsTaken, match="is a file of another"):
        place.install("skill", "user")
    assert place.lying() == before
    place.uninstall("skill", "user")
    assert place.lying() == before


def test_without_the_record_what_is_accords_is_still_found(place: Place, name: str) -> None:
    fill(place, name)
    before = place.lying()
    place.install(name, "user")
    for path in (Path(place.home.path) / "installed").glob("*.json"):
        path.unlink()
    place.uninstall(name, "user")
    kept = {path: lying for path, lying in place.lying().items() if lying.kind == "file"}
    assert kept == {path: lying for path, lying in before.items() if lying.kind == "file"}


def test_a_file_that_a_newer_accord_writes_no_more_goes_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from accord.install import skill

    place.install("skill", "project")
    monkeypatch.setattr(skill, "SCRIPTS", skill.SCRIPTS[1:])
    assert place.install("skill", "project")[".agents/skills/accord/scripts/hub.py"] == "removed"
    place.uninstall("skill", "project")
    assert place.lying() == {}


def test_user_and_project_do_not_know_each_other(place: Place, name: str) -> None:
    place.install(name, "user")
    only_user = place.lying()
    place.install(name, "project")
    place.uninstall(name, "project")
    assert place.lying() == only_user


def test_a_look_changes_nothing_and_shows_all(place: Place, name: str) -> None:
    fill(place, name)
    before = place.lying()
    found = doing.look(name, place.site("user"), place.home, True)
    assert place.lying() == before
    assert not Path(place.home.path).exists()
    for change in found:
        assert change.new is not None
        added = [line[1:] for line in change.diff().splitlines() if line.startswith("+") and not line.startswith("+++")]
        assert set(added) == set(change.new.decode().splitlines()) - set((change.old or b"").decode().splitlines())


def test_two_at_once_do_not_mix(place: Place) -> None:
    fill(place, "claude")
    before = place.lying()
    children = []
    for number in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                place.install("claude", "user", f"/{number}/accord")
            finally:
                os._exit(0)
        children.append(pid)
    assert {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children} == {0}
    found = json.loads((place.user / ".claude/settings.json").read_text())
    assert {len(groups) for groups in found["hooks"].values()} == {1}
    place.uninstall("claude", "user")
    assert place.lying() == before


def _fail_at(step: int, fail: Any, patch: Any = None) -> None:
    """Let the file system fail at its nth change from now on, and only there."""
    left = [step]
    for where in ("replace", "rename", "unlink"):
        real = getattr(os, where)

        def broken(*args: Any, real: Any = real) -> None:
            left[0] -= 1
            if left[0] == -1:
                fail()
            real(*args)

        (patch or pytest.MonkeyPatch()).setattr(os, where, broken)
