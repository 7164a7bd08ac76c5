"""How each program of an agent is set up and started. One class for each, under the name that users type."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.agents.model import Model

Env = dict[str, str]


class Vendor(Protocol):
    name: str
    proves_by_step: bool  # that the model has answered is shown by its next tool already, not only by the turn's end

    def start(self, home: Path, model: Model) -> tuple[list[str], Env]:
        """What comes before the prompt, and the variables. Settings that name the model are written here."""
        ...

    def resume(self, command: list[str], session: str) -> list[str]:
        """The same, going on with a session."""
        ...

    def session(self, event: Mapping[str, Any]) -> str:
        """The session's id, if this event on standard output has it."""
        ...


class Claude:
    name = "claude"
    proves_by_step = True

    def start(self, home: Path, model: Model) -> tuple[list[str], Env]:
        env = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        command = ["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash", "Agent", "-p"]
        return command, env

    def resume(self, command: list[str], session: str) -> list[str]:
        return ["--resume", session, *command]

    def session(self, event: Mapping[str, Any]) -> str:
        return str(event.get("session_id", ""))


TRUSTING = "--dangerously-bypass-hook-trust"


class Codex:
    name = "codex"
    proves_by_step = False

    def start(self, home: Path, model: Model) -> tuple[list[str], Env]:
        settings = {"name": "stub", "base_url": f"{model.url}/v1", "env_key": "STUB_KEY", "wire_api": "responses"}
        provider = [word for name, value in settings.items() for word in ("-c", f"model_providers.stub.{name}={value}")]
        flags = [
            "--json",
            "--skip-git-repo-check",
            TRUSTING,
            "--sandbox",
            "danger-full-access",
        ]
        return ["exec", *flags, "-c", "model=stub", "-c", "model_provider=stub", *provider], {"STUB_KEY": "none"}

    def resume(self, command: list[str], session: str) -> list[str]:
        return [*command, "resume", session]

    def session(self, event: Mapping[str, Any]) -> str:
        return str(event.get("thread_id", ""))


BY_KEY = {"security": {"auth": {"selectedType": "gemini-api-key"}}}


class Gemini:
    name = "gemini"
    proves_by_step = False

    def start(self, home: Path, model: Model) -> tuple[list[str], Env]:
        path = home / ".gemini/settings.json"
        settings = path.read_text() if path.exists() else "{}"
        if "gemini-api-key" not in settings:
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({**json.loads(settings), **BY_KEY}))
        env = {
            "GOOGLE_GEMINI_BASE_URL": model.url,
            "GEMINI_API_KEY": "none",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        # With any other name it first asks a model which model to ask.
        return ["--yolo", "-m", "gemini-2.5-flash", "--output-format", "stream-json", "-p"], env

    def resume(self, command: list[str], session: str) -> list[str]:
        return ["--resume", session, *command]

    def session(self, event: Mapping[str, Any]) -> str:
        return str(event.get("session_id", ""))


class OpenCode:
    name = "opencode"
    proves_by_step = True

    def start(self, home: Path, model: Model) -> tuple[list[str], Env]:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Stub",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
            "models": {"stub": {"name": "Stub", "limit": {"context": 100_000, "output": 8_000}}},
        }
        settings = {
            "model": "stub/stub",
            "small_model": "stub/stub",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"stub": provider},
        }
        env = {
            "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }
        give_what_plugins_import(home / ".config/opencode")
        return ["run", "--format", "json"], env

    def resume(self, command: list[str], session: str) -> list[str]:
        return [*command, "--session", session]

    def session(self, event: Mapping[str, Any]) -> str:
        return str(event.get("sessionID", ""))


def give_what_plugins_import(folder: Path) -> None:
    """To OpenCode's eyes: else it asks npm for it, where it has a folder for plugins.

    It does so under a lock, for which the next start waits a minute where the last one ended, or was killed, meanwhile.
    """
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (folder / "package-lock.json").write_text(json.dumps(lock))


VENDORS: tuple[Vendor, ...] = (Claude(), Codex(), Gemini(), OpenCode())
