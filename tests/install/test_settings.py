"""Settings files of vendors, as tidy and as odd as people have them: changed, and changed back."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.install import doing, jsonc
from tests.install.places import ACCORD, SCOPES, SETTINGS, Place

pytestmark = pytest.mark.covers("I3")

HOOKS = """{
  "unknown": {"kept": [1, 2.50, null]},
  "hooks": {
    "SessionStart": [
      {"matcher": "startup", "hooks": [{"type": "command", "command": "mine start"}]}
    ],
    "Stop": [],
    "AfterTool": [{"hooks": []}]
  },
  "mcpServers": {"mine": {"command": "x"}},
  "mcp": {"mine": {"type": "local", "command": ["x"]}}
}
"""
JSON = {
    "an empty file": "",
    "a blank file": "\n\n",
    "an empty object": "{}",
    "an empty object on lines": "{\n}\n",
    "all of it": HOOKS,
    "other line ends": HOOKS.replace("\n", "\r\n"),
    "no line end": HOOKS.rstrip(),
    "a byte order mark": "\ufeff" + HOOKS,
    "tabs": HOOKS.replace("  ", "\t"),
    "wide": HOOKS.replace("  ", "        "),
    "on one line": '{"a":1,"hooks":{"Stop":[{"hooks":[]}]}}',
    "on one line with an end": '{ "a" : 1 }\n',
    "other letters": '{\n  "\u00e4 \\u00e4 \U0001f600": "\u2028"\n}\n',
    "a key twice": '{\n  "a": 1,\n  "a": 2\n}\n',
    "brackets in texts": '{\n  "a": "}\\"{[ // no comment",\n  "b": "/* none */"\n}\n',
}
COMMENTS = {
    "a comment first": "// mine\n" + HOOKS,
    "comments everywhere": '/* a */{ // b\n  "a": /* c */ 1 // d\n  // e\n} // f',
    "only comments": "{\n  // nothing yet\n}\n",
    "a comment within": '{\n  "hooks": {\n    // mine\n    "Stop": [ // none\n    ]\n  } // end\n}\n',
}
COMMAS = {
    "a comma behind the last": '{\n  "a": 1,\n  "mcp": {"mine": {"command": ["x",],},},\n}\n',
    "a comma on one line": '{"a": [1,],}',
}
TOML = {
    "an empty file": "",
    "keys": 'model = "x"\n',
    "no line end": 'model = "x"',
    "other line ends": 'model = "x"\r\n\r\n[mcp_servers.mine]\r\ncommand = "x"\r\n',
    "comments": '# mine\n[mcp_servers.mine] # this one\ncommand = "x" # and that\n\n# the end\n',
    "a byte order mark": '\ufeffmodel = "x"\n',
    "a header in a text": 'a = """\n[mcp_servers.accord]\ncommand = "x"\n"""\n',
    "lists over lines": 'a = [\n  ["x"],\n  [\n  "y"]\n]\n[b]\nc = 1\n',
    "dotted keys": 'mcp_servers.mine.command = "x"\n',
}
TEXTS = [
    *[("json", what, text) for what, text in JSON.items()],
    *[("comments", what, text) for what, text in COMMENTS.items()],
    *[("commas", what, text) for what, text in COMMAS.items()],
    *[("toml", what, text) for what, text in TOML.items()],
]
READERS = {
    "json": ("json", "comments", "commas"),
    "comments": ("comments", "commas"),
    "commas": ("commas",),
    "toml": ("toml",),
}
EVERY = [
    pytest.param(name, scope, path, kind, text, id=f"{name}-{scope}-{os.path.basename(path)}-{what}")
    for (name, scope), paths in SETTINGS.items()
    for path, kind in paths.items()
    for written, what, text in TEXTS
    if kind in READERS[written]
]


@pytest.mark.parametrize(("name", "scope", "path", "kind", "text"), EVERY)
def test_what_was_there_stays_and_comes_back(
    place: Place, name: str, scope: str, path: str, kind: str, text: str
) -> None:
    file = place.write(scope, path, text.encode())
    file.chmod(0o640)
    before = place.lying()
    place.install(name, scope)
    first = place.lying()
    original = _value(text, kind)
    assert _without_own(_value(file.read_text(), kind), original) == original
    assert set(place.install(name, scope).values()) == {"unchanged"}
    assert place.lying() == first
    assert file.stat().st_mode & 0o777 == 0o640
    done = place.uninstall(name, scope)
    assert done[path] == "restored"
    assert place.lying() == before


@pytest.mark.parametrize(("name", "scope"), [*SETTINGS, ("skill", "user"), ("skill", "project")])
def test_where_there_was_nothing_there_is_nothing_again(place: Place, name: str, scope: str) -> None:
    assert set(place.install(name, scope).values()) == {"created"}
    first = place.lying()
    assert set(place.install(name, scope).values()) == {"unchanged"}
    assert place.lying() == first
    others = place.project if scope == "user" else place.user
    assert list(others.iterdir()) == []
    assert set(place.uninstall(name, scope).values()) == {"removed"}
    assert place.lying() == {}
    assert place.records() == []
    assert set(place.uninstall(name, scope).values()) == {"unchanged"}


@pytest.mark.parametrize(("name", "scope"), SETTINGS)
def test_every_event_calls_accord(place: Place, name: str, scope: str) -> None:
    place.install(name, scope)
    read = "".join(path.read_text() for path in place.folder(scope).rglob("*") if path.is_file())
    if name == "opencode":
        assert f"const COMMAND = {json.dumps([ACCORD])} " in read
        return
    for event in ("start", "prompt", "step", "stop", "end"):
        assert read.count(f"\"'{ACCORD}' hook {event} --brain {name}\"") == 1


@pytest.mark.parametrize(("name", "scope"), SETTINGS)
def test_another_path_of_accord_takes_the_place_of_the_first(place: Place, name: str, scope: str) -> None:
    for path, kind in SETTINGS[name, scope].items():
        place.write(scope, path, b"" if kind == "toml" else HOOKS.encode())
    before = place.lying()
    place.install(name, scope)
    first = place.lying()
    assert set(place.install(name, scope, "/new/accord").values()) == {"changed"}
    updated = place.lying()
    assert ACCORD.encode() not in b"".join(file.content for file in updated.values())
    assert [file.content.count(b"accord") for file in updated.values()] == [
        file.content.replace(ACCORD.encode(), b"/new/accord").count(b"accord") for file in first.values()
    ]
    place.uninstall(name, scope, "/new/accord")
    assert place.lying() == before


@pytest.mark.parametrize(("name", "scope"), SETTINGS)
@pytest.mark.parametrize("is_there", [False, True])
def test_what_is_added_later_stays(place: Place, name: str, scope: str, is_there: bool) -> None:
    """As when the vendor itself writes the file anew."""
    files = {path: kind for path, kind in SETTINGS[name, scope].items() if kind != "toml"}
    for path in files if is_there else ():
        place.write(scope, path, HOOKS.encode())
    place.install(name, scope)
    mine: dict[str, Any] = {"matcher": "x", "hooks": [{"type": "command", "command": "later"}]}
    for path, kind in files.items():
        file = place.folder(scope) / path
        found = _value(file.read_text(), kind)
        found["later"] = {"a": [1]}
        for groups in found.get("hooks", {}).values():
            groups.insert(0, mine)
        for group in found.get("hooks", {}).get("SessionStart", []):
            group["hooks"].append({"type": "command", "command": "beside it"})
        file.write_text(json.dumps(found, indent=3))
        expected = _without_own(found, json.loads(HOOKS) if is_there else {})
        place.uninstall(name, scope)
        assert _value(file.read_text(), kind) == expected
        assert "accord" not in file.read_text()
        place.install(name, scope)


def test_a_comment_that_is_added_later_stays(place: Place) -> None:
    file = place.write("user", ".gemini/settings.json", b'{\n  // one\n  "a": 1 // two\n}\n')
    place.install("gemini", "user")
    file.write_text(file.read_text().replace('  "hooks"', '  // three\n  "hooks"').replace("// one", "// first"))
    place.uninstall("gemini", "user")
    assert file.read_text() == '{\n  // first\n  "a": 1 // two\n  // three\n}\n'


def test_a_comment_in_a_file_that_accord_made_stays(place: Place) -> None:
    place.install("gemini", "user")
    file = place.user / ".gemini/settings.json"
    file.write_text("// mine\n" + file.read_text())
    place.uninstall("gemini", "user")
    assert file.read_text() == "// mine\n{}\n"


def test_tables_that_are_added_later_stay(place: Place) -> None:
    file = place.write("user", ".codex/config.toml", b'# mine\nmodel = "x"\n')
    place.install("codex", "user")
    text = file.read_text()
    later = '\n# trusted\n[projects."/x"]\ntrust_level = "trusted"\n'
    file.write_text(text + '[mcp_servers.accord.env]\nA = "[b]"\n' + later)
    place.install("codex", "user", "/new/accord")
    assert tomllib.loads(file.read_text())["mcp_servers"]["accord"]["env"] == {"A": "[b]"}
    place.uninstall("codex", "user")
    assert file.read_text() == '# mine\nmodel = "x"\n' + later


def test_what_a_person_added_to_the_server_survives_another_install(place: Place) -> None:
    file = place.write("user", ".claude.json", b"{}")
    place.install("claude", "user")
    found = json.loads(file.read_text())
    found["mcpServers"]["accord"]["env"] = {"A": "b"}
    file.write_text(json.dumps(found))
    place.install("claude", "user", "/new/accord")
    assert json.loads(file.read_text())["mcpServers"]["accord"] == {
        "type": "stdio",
        "command": "/new/accord",
        "args": ["mcp"],
        "env": {"A": "b"},
    }


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": ', "is no JSON, in line 1"),
        (b'{"a": 1}\n}', "has something behind its end, in line 2"),
        (b'{\n"a": 1,,\n}', "is no JSON, in line 2"),
        (b"{'a': 1}", "is no JSON"),
        (b'{"a": 01x}', "is no JSON"),
        (b'{"a": "\xff"}', "is not UTF-8, at byte 7"),
        (b"[" * 100_000, "is nested too deeply"),
        (b"[]", "has a top level that is no object"),
        (b'{"hooks": [], "mcpServers": [], "mcp": 1}', "that is no object"),
        (b'{"hooks": {"Stop": {}, "AfterAgent": 1}, "mcpServers": null, "mcp": null}', "that is no"),
        (b'{"mcpServers": {"accord": {"command": "x"}}, "mcp": {"accord": 1}, "hooks": 1}', ""),
    ],
)
def test_what_cannot_be_read_is_left_alone(place: Place, name: str, scope: str, text: bytes, reason: str) -> None:
    """The last of its files is broken: nothing is done with the others either."""
    path, kind = list(SETTINGS[name, scope].items())[-1]
    if kind == "toml":
        path = ".codex/hooks.json"
    place.write(scope, path, text)
    before = place.lying()
    with pytest.raises((errors.SettingsUnusable, errors.SettingsTaken)) as caught:
        place.install(name, scope)
    assert str(place.folder(scope) / path) in str(caught.value)
    assert reason in str(caught.value)
    assert place.lying() == before
    assert place.records() == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("claude", '{"mcpServers": {"accord": {"command": "/bin/other", "args": ["mcp"]}}}'),
        ("claude", '{"mcpServers": {"accord": {"type": "http", "url": "https://example.org"}}}'),
        ("codex", '[mcp_servers.accord]\ncommand = "other"\n'),
        ("codex", 'mcp_servers = {accord = {url = "https://example.org"}}\n'),
    ],
)
def test_a_foreign_server_of_that_name_is_left_alone(place: Place, path: str, text: str) -> None:
    name = {"claude": ".claude.json", "codex": ".codex/config.toml"}[path]
    place.write("user", name, text.encode())
    before = place.lying()
    with pytest.raises(errors.SettingsTaken, match="another mcp"):
        place.install(path, "user")
    assert place.lying() == before
    assert set(place.uninstall(path, "user").values()) == {"unchanged"}
    assert place.lying() == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = ", "is no TOML"),
        ("[[[", "is no TOML"),
        ("mcp_servers = 1\n", "that is no table"),
        ('mcp_servers = {mine = {command = "x"}}\n', r"not as \[mcp_servers.NAME\]"),
    ],
)
def test_toml_that_cannot_be_changed_is_left_alone(place: Place, text: str, reason: str) -> None:
    place.write("user", ".codex/config.toml", text.encode())
    before = place.lying()
    with pytest.raises(errors.SettingsUnusable, match=reason):
        place.install("codex", "user")
    assert place.lying() == before


def test_comments_where_the_vendor_reads_none_are_said(place: Place) -> None:
    place.write("user", ".claude/settings.json", b"// mine\n{}")
    with pytest.raises(errors.SettingsUnusable, match="in line 1, which has a comment"):
        place.install("claude", "user")


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode"])
def test_a_broken_file_does_not_keep_the_record_from_undoing_later(place: Place, name: str) -> None:
    path = next(path for path, kind in SETTINGS[name, "user"].items() if kind != "toml")
    place.install(name, "user")
    file = place.user / path
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    with pytest.raises(errors.SettingsUnusable):
        place.uninstall(name, "user")
    file.write_bytes(whole)
    place.uninstall(name, "user")
    assert place.lying() == {}


def test_an_open_jsonc_of_opencode_is_the_one_that_is_changed(place: Place) -> None:
    file = place.write("user", ".config/opencode/opencode.jsonc", b"{ // mine\n}")
    assert place.install("opencode", "user")[".config/opencode/opencode.jsonc"] == "changed"
    assert "accord" in file.read_text()
    place.uninstall("opencode", "user")
    assert file.read_bytes() == b"{ // mine\n}"


@pytest.mark.parametrize(
    ("name", "variable", "there"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", {"settings.json", ".claude.json"}),
        ("codex", "CODEX_HOME", {"hooks.json", "config.toml"}),
        ("gemini", "GEMINI_CLI_HOME", {".gemini/settings.json"}),
        ("opencode", "XDG_CONFIG_HOME", {"opencode/opencode.json", "opencode/plugins/accord.js"}),
        ("skill", "CLAUDE_CONFIG_DIR", {"skills/accord/SKILL.md"}),
    ],
)
def test_the_vendors_variables_move_the_files(place: Place, name: str, variable: str, there: set[str]) -> None:
    moved = place.user / "moved"
    found = doing.look(name, place.site("user", env={variable: str(moved)}), place.home, True)
    paths = {change.path.removeprefix(f"{moved}/") for change in found if change.path.startswith(str(moved))}
    assert there <= paths


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("claude", "CLAUDE_CONFIG_DIR"),
        ("codex", "CODEX_HOME"),
        ("gemini", "GEMINI_CLI_HOME"),
        ("opencode", "XDG_CONFIG_HOME"),
    ],
)
def test_who_has_two_folders_of_settings_installs_in_each(place: Place, name: str, variable: str) -> None:
    """As one for work, beside the usual one: what is done in one leaves the other alone."""
    work = place.user / "work"
    sites = [place.site("user", env={variable: f"{work}/"}), place.site("user")]
    there = []
    for site in sites:
        found = doing.do(name, site, place.home, True, 10)
        assert {change.did for change in found} == {"created"}
        there.append([Path(change.path) for change in found])
    assert all(work in path.parents for path in there[0])
    found = doing.do(name, sites[0], place.home, False, 10)
    assert {change.did for change in found} == {"removed"}
    assert not any(path.exists() for path in there[0])
    assert all(path.exists() for path in there[1])
    doing.do(name, sites[1], place.home, False, 10)
    assert not place.lying()


@pytest.mark.parametrize(
    ("name", "path", "text", "said"),
    [
        ("claude", ".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks is true"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks is false"),
        (
            "gemini",
            ".gemini/settings.json",
            '{"hooksConfig": {"enabled": false}} // mine',
            "hooksConfig.enabled is false",
        ),
    ],
)
def test_who_has_turned_hooks_off_is_told(place: Place, name: str, path: str, text: str, said: str) -> None:
    """Their program would skip those of accord without a word; in a project, too."""
    sites = [place.site(scope) for scope in SCOPES]
    assert not any("runs no hooks" in note for site in sites for note in doing.notes(name, site))
    file = place.write("user", path, text.encode())
    for site in sites:
        assert any(f"while {said} in {file}." in note for note in doing.notes(name, site))
    for odd in (b"[1]", b"{", b"\xff", b"features = 1"):
        place.write("user", path, odd)
        assert not any("runs no hooks" in note for note in doing.notes(name, sites[0]))


def _value(text: str, kind: str) -> Any:
    text = text.removeprefix("\ufeff")
    if kind == "toml":
        return tomllib.loads(text)
    return jsonc.value(text if text.strip() else "{}", {"json": "", "comments": "//", "commas": "//,"}[kind])


def _without_own(found: Any, original: Any) -> Any:
    """What a file says without what is accord's; what is empty without that is gone, unless it was there before."""
    found = json.loads(json.dumps(found))
    for key in ("mcp", "mcpServers", "mcp_servers"):
        found.get(key, {}).pop("accord", None)
    for event, groups in found.get("hooks", {}).items():
        kept = [(_own_out(group), group) for group in groups]
        found["hooks"][event] = [rest for rest, group in kept if rest["hooks"] or rest == group]
    for event in [event for event, groups in found.get("hooks", {}).items() if not groups]:
        if event not in original.get("hooks", {}):
            del found["hooks"][event]
    return {key: value for key, value in found.items() if value or key in original}


def _own_out(group: Any) -> Any:
    return {**group, "hooks": [hook for hook in group["hooks"] if "accord" not in hook.get("command", "")]}
