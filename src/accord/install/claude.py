"""Claude Code: hooks in its settings, an MCP server in a file of its own."""

from accord.install import jsonc
from accord.install.edits import Hook, Json, Server
from accord.install.vendor import STOP_S, TIMEOUT_S, off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.install.edits import Edit
    from accord.install.site import Site

MOVED_BY = "CLAUDE_CONFIG_DIR"

# PostToolBatch, and not PostToolUse: see docs/design/agents.md.
EVENTS = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolBatch": "step",
    "Stop": "stop",
    "SessionEnd": "end",
}


def edits(site: "Site") -> "list[Edit]":
    settings = _settings(site)[-1]
    servers = f"{site.moved(MOVED_BY) or site.user_home}/.claude.json" if site.is_user else f"{site.project}/.mcp.json"
    command, *args = site.words("mcp")
    server = {"type": "stdio", "command": command, "args": args}
    return [Json(settings, hooks(site)), Json(servers, [Server(("mcpServers",), server)])]


def hooks(site: "Site") -> "list[Server | Hook]":
    return [
        Hook(
            event,
            "claude",
            {
                "type": "command",
                "command": site.hook(name, "claude"),
                "timeout": STOP_S if name == "stop" else TIMEOUT_S,
            },
        )
        for event, name in EVENTS.items()
    ]


def notes(site: "Site") -> list[str]:
    said = off("Claude Code", _settings(site), _value, "disableAllHooks", when=True)
    if not site.is_user:
        said.append("Claude Code asks once whether it may use the project's MCP server: say yes.")
    return said


def _settings(site: "Site") -> list[str]:
    """The files with settings that count there, and as the last one that in which accord's stand."""
    own = f"{site.in_home(MOVED_BY, '.claude')}/settings.json"
    return [own] if site.is_user else [own, f"{site.project}/.claude/settings.json"]


def _value(text: str) -> object:
    return jsonc.value(text, jsonc.STRICT)
