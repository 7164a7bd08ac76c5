"""Gemini CLI: hooks and an MCP server, in one settings.json."""

from accord.install import jsonc
from accord.install.edits import Hook, Json, Server
from accord.install.vendor import STOP_S, TIMEOUT_S

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
    folder = site.in_home(MOVED_BY, "") if site.is_user else site.project
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
    return [Json(f"{folder.rstrip('/')}/.gemini/settings.json", [*hooks, server], dialect=jsonc.COMMENTS)]


def notes(site: "Site") -> list[str]:
    return [] if site.is_user else ["Gemini CLI reads the project's settings only where you trust the folder."]
