"""The real programs of agents, once `accord install` has changed their settings: they take them, and call accord."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.install.model import WORD, Model
from tests.install.places import SCOPES, SETTINGS, Place

pytestmark = [pytest.mark.agents, pytest.mark.covers("I3")]

TIMEOUT_S = 150.0  # OpenCode asks npm for what plugins may import, and waits for an answer
PACKAGES = {
    "claude": "anthropic-ai-claude-code",
    "codex": "openai-codex",
    "gemini": "google-gemini-cli",
    "opencode": "opencode-ai",
}
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
        output = {{"hookEventName": given["hook_event_name"], "additionalContext": text}}
        print(json.dumps({{"hookSpecificOutput": output}}))
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

    def __init__(self, done: "subprocess.CompletedProcess[str]", calls: list[dict[str, Any]], shown: str) -> None:
        self.out = done.stdout
        self.err = done.stderr
        self.calls = calls
        self.shown = shown
        assert done.returncode == 0, done
        assert WORD in self.out

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
        subprocess.run(["git", "init", "-q", str(place.project)], check=True)

    def run(self, name: str, *more: str) -> Run:
        """One turn of a program, with its settings as they are."""
        self.log.write_text("")
        with Model() as model:
            words, env = START[name](model.url, self.place)
            done = subprocess.run(
                [program(name), *words, *more],
                env={"HOME": str(self.place.user), "PATH": os.environ["PATH"], "TMPDIR": str(self.place.user), **env},
                cwd=self.place.project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
            return Run(done, [json.loads(line) for line in self.log.read_text().splitlines()], model.shown)


def program(name: str) -> str:
    cache = Path(os.environ.get("ACCORD_AGENTS_CACHE") or "~/.cache/accord-agents").expanduser()
    path = cache / PACKAGES[name] / "node_modules/.bin" / name
    if not path.exists():
        (pytest.fail if os.environ.get("ACCORD_REQUIRE_ALL") == "1" else pytest.skip)(f"{path} is not there")
    return str(path)


def claude(url: str, place: Place) -> tuple[list[str], Mapping[str, str]]:
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return ["-p", "Go.", "--output-format", "stream-json", "--verbose"], env


def codex(url: str, place: Place) -> tuple[list[str], Mapping[str, str]]:
    provider = {"name": "stub", "base_url": f"{url}/v1", "env_key": "STUB_KEY", "wire_api": "responses"}
    settings = [word for name, value in provider.items() for word in ("-c", f"model_providers.stub.{name}={value}")]
    return ["exec", "--json", "-c", "model=stub", "-c", "model_provider=stub", *settings, "Go."], {"STUB_KEY": "x"}


def gemini(url: str, place: Place) -> tuple[list[str], Mapping[str, str]]:
    env = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return ["--yolo", "-m", "gemini-2.5-flash", "--output-format", "stream-json", "-p", "Go."], env


def opencode(url: str, place: Place) -> tuple[list[str], Mapping[str, str]]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"stub": {"limit": {"context": 100_000, "output": 8_000}}},
    }
    settings = {"model": "stub/stub", "small_model": "stub/stub", "autoupdate": False, "provider": {"stub": provider}}
    env = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "npm_config_registry": "http://127.0.0.1:9",
        "npm_config_fetch_retries": "0",
    }
    return ["run", "--format", "json", "Go."], env


START: dict[str, Callable[[str, Place], tuple[list[str], Mapping[str, str]]]] = {
    "claude": claude,
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
}
TRUSTED = {"codex": ["--dangerously-bypass-hook-trust"]}

# What somebody may have there; Gemini CLI does not start without.
MINE = {
    ".gemini/settings.json": b'{\n  // mine\n  "security": {"auth": {"selectedType": "gemini-api-key"}}\n}\n',
    ".claude/settings.json": b'{\r\n\t"env": {"MINE": "1"}\r\n}',
    ".codex/config.toml": b"# mine\n[features]\nhooks = true",
}


@pytest.fixture
def desk(place: Place) -> Desk:
    for path, text in MINE.items():
        place.write("user", path, text)
    return Desk(place)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", START)
def test_a_program_takes_its_settings_and_calls_accord(desk: Desk, name: str, scope: str) -> None:
    program(name)
    place = desk.place
    place.install(name, scope, str(desk.accord))
    found = desk.run(name, *TRUSTED.get(name, []))
    assert found.events[:2] == ["start", "prompt"]
    assert found.events[-1] == "end"
    assert "stop" in found.events
    for call in found.calls:
        if call["words"][0] == "hook":
            assert call["words"][2:] == ["--brain", name]
            assert call["given"]["session_id"]
    assert {call["given"].get("cwd") for call in found.calls if "given" in call} == {str(place.project)}
    assert "added at start" in found.shown
    assert f"added at prompt {LONG} end of prompt" in found.shown
    if (name, scope) != ("claude", "project"):  # where it asks first whether it may
        assert found.has_server
        assert name == "claude" or "probe_of_accord" in found.shown  # which begins before its servers are there
    for word in ("invalid", "unrecognized", "failed to parse", "accord.js", "hooks.json"):
        assert word not in found.err.lower()
    place.uninstall(name, scope, str(desk.accord))
    for path in SETTINGS[name, scope]:
        file = place.folder(scope) / path
        assert not file.exists() or str(desk.accord) not in file.read_text(), path
    if scope == "user":
        for path, text in MINE.items():
            assert (place.user / path).read_bytes().startswith(text), path
    assert desk.run(name, *TRUSTED.get(name, [])).calls == []


def test_codex_runs_no_hook_that_nobody_trusts(desk: Desk) -> None:
    """Which is why `accord install codex` says what to do."""
    desk.place.install("codex", "user", str(desk.accord))
    found = desk.run("codex")
    assert found.events == []
    assert found.has_server
