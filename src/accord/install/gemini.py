"""Gemini CLI: hooks and an MCP server, in one settings.json."""

from accord.install import jsonc
from accord.install.edits import Hook, Json, Server
from accord.install.vendor import STOP_S, TIMEOUT_S, off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.install.edits import Edit
    from accord.install.site import Site

MOVED_BY = "GEMINI_CLI_HOME"

EVENTS = {
    "SessionStart": "start",
    "BeforeAgent": "prompt",
    "AfterTool": "step",
    "AfterAgent": "stop",
    "SessionEnd": "end",
}


def edits(site: "Site") -> "list[Edit]":
    command, *args = site.words("mcp")
    hooks = [
        Hook(
            event,
            "gemini",
            {
                "type": "command",
                "command": site.hook(name, "gemini"),
                "name": "accord",
                "timeout": 1000 * (STOP_S if name == "stop" else TIMEOUT_S),  # it counts in milliseconds
            },
        )
        for event, name in EVENTS.items()
    ]
    server = Server(("mcpServers",), {"command": command, "args": args})
    return [Json(_settings(site)[-1], [*hooks, server], dialect=jsonc.COMMENTS)]


def notes(site: "Site") -> list[str]:
    said = off("Gemini CLI", _settings(site), _value, "hooksConfig", "enabled", when=False)
    if not site.is_user:
        said.append("Gemini CLI reads the project's settings only where you trust the folder.")
    return said


def _settings(site: "Site") -> list[str]:
    """The files with settings that count there, and as the last one that in which accord's stand."""
    folders = [site.in_home(MOVED_BY, ""), *([] if site.is_user else [site.project])]
    return [f"{folder.rstrip('/')}/.gemini/settings.json" for folder in folders]


def _value(text: str) -> object:
    return jsonc.value(text, jsonc.COMMENTS)
