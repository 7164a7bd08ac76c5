"""The real programs of agents, once `accord install` has changed their settings: they take them, and call accord."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.agents.model import Model, say
from tests.agents.vendors import BY_KEY, TRUSTING, VENDORS, Codex, Vendor, give_what_plugins_import
from tests.install.places import SCOPES, SETTINGS, Place
from tests.need import need_from_npm
from tools.npm import with_node

pytestmark = [pytest.mark.agents, pytest.mark.covers("I3")]

TIMEOUT_S = 120.0
WORD = "Done."
LONG = "x" * 9_000  # characters; see below

# In the place of accord: notes how it is called, adds a text to what the model is shown, and is an MCP server.
FAKE = """#!{python}
import json, sys
def note(**what):
    with open({log!r}, "a") as file:
        file.write(json.dumps(what) + "\\n")
if sys.argv[1] == "hook":
    given = json.load(sys.stdin)
    event, brain = sys.argv[2], sys.argv[4]
    note(words=sys.argv[1:], given=given)
    if event in ("start", "prompt"):
        text = f"added at {{event}} {{'{long}' if event == 'prompt' else ''}} end of {{event}}"
        output = {{"hookEventName": given.get("hook_event_name"), "additionalContext": text}}
        print(json.dumps({{"text": text}} if brain == "opencode" else {{"hookSpecificOutput": output}}))
elif sys.argv[1] == "mcp":
    note(words=sys.argv[1:])
    for line in sys.stdin:
        asked = json.loads(line)
        method, version = asked.get("method"), asked.get("params", {{}}).get("protocolVersion")
        info = {{"name": "accord", "version": "0"}}
        schema = {{"type": "object", "properties": {{}}}}
        tool = {{"name": "probe_of_accord", "description": "x", "inputSchema": schema}}
        answers = {{
            "initialize": {{"protocolVersion": version, "capabilities": {{"tools": {{}}}}, "serverInfo": info}},
            "tools/list": {{"tools": [tool]}},
        }}
        if "id" in asked:
            result = {{"result": answers.get(method)}} if method in answers else {{"error": {{"code": -32601}}}}
            print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], **result}}), flush=True)
"""


class Run:
    """What came of a program's one turn."""

    def __init__(self, done: "subprocess.CompletedProcess[str]", calls: list[dict[str, Any]], model: Model) -> None:
        self.err = done.stderr
        self.calls = calls
        self.shown = "".join(request.shown for request in model.requests)
        self.asked = json.dumps([request.body for request in model.requests])
        assert done.returncode == 0, done
        assert WORD in done.stdout

    @property
    def events(self) -> list[str]:
        return [call["words"][1] for call in self.calls if call["words"][0] == "hook"]

    @property
    def has_server(self) -> bool:
        return any(call["words"] == ["mcp"] for call in self.calls)


class Desk:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.log = place.user / "accord.log"
        self.accord = place.write(
            "user", "b in/accord", FAKE.format(python=sys.executable, log=str(self.log), long=LONG).encode()
        )
        self.accord.chmod(0o755)
        trusted = f'[projects."{place.project}"]\ntrust_level = "trusted"\n'
        place.write("user", ".codex/config.toml", MINE[".codex/config.toml"] + b"\n" + trusted.encode())
        give_what_plugins_import(place.project / ".opencode")
        subprocess.run(["git", "init", "-q", str(place.project)], check=True)

    def run(self, vendor: Vendor, without: str = "") -> Run:
        """One turn of a program, with its settings as they are."""
        self.log.write_text("")
        user = str(self.place.user)
        with Model(say(WORD)) as model:
            words, env = vendor.start(self.place.user, model)
            done = subprocess.run(
                [need_from_npm(vendor.name), *(word for word in words if word != without), "Go."],
                env=with_node({"HOME": user, "PATH": os.environ["PATH"], "TMPDIR": user, **env}),
                cwd=self.place.project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
            return Run(done, [json.loads(line) for line in self.log.read_text().splitlines()], model)


# What somebody may have there; Gemini CLI does not start without.
MINE = {
    ".gemini/settings.json": b"// mine\n" + json.dumps(BY_KEY, indent=2).encode() + b"\n",
    ".claude/settings.json": b'{\r\n\t"env": {"MINE": "1"}\r\n}',
    ".codex/config.toml": b"# mine\n[features]\nhooks = true",
}


@pytest.fixture
def desk(place: Place) -> Desk:
    for path, text in MINE.items():
        place.write("user", path, text)
    return Desk(place)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_a_program_takes_its_settings_and_calls_accord(desk: Desk, vendor: Vendor, scope: str) -> None:
    name = vendor.name
    place = desk.place
    place.install(name, scope, str(desk.accord))
    found = desk.run(vendor)
    assert found.events[:2] == ["start", "prompt"]
    assert found.events[-1] == "end"
    assert "stop" in found.events
    for call in found.calls:
        if call["words"][0] == "hook":
            assert call["words"][2:] == ["--brain", name]
            assert call["given"]["session_id"]
    assert {call["given"]["cwd"] for call in found.calls if call["words"][1:2] == ["prompt"]} == {str(place.project)}
    assert "added at start" in found.shown
    assert f"added at prompt {LONG} end of prompt" in found.shown
    if (name, scope) != ("claude", "project"):  # where it asks first whether it may
        assert found.has_server
        assert name == "claude" or "probe_of_accord" in found.asked  # which begins before its servers are there
    for word in ("invalid", "unrecognized", "failed to parse", "accord.js", "hooks.json"):
        assert word not in found.err.lower()
    place.uninstall(name, scope, str(desk.accord))
    for path in SETTINGS[name, scope]:
        file = place.folder(scope) / path
        assert not file.exists() or str(desk.accord) not in file.read_text(), path
    if scope == "user":
        for path, text in MINE.items():
            assert (place.user / path).read_bytes().startswith(text), path
    assert desk.run(vendor).calls == []


def test_codex_runs_no_hook_that_nobody_trusts(desk: Desk) -> None:
    """Which is why `accord install codex` says what to do."""
    desk.place.install("codex", "user", str(desk.accord))
    found = desk.run(Codex(), without=TRUSTING)
    assert found.events == []
    assert found.has_server
