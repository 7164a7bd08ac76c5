"""Claude Code: hooks in its settings, an MCP server in a file of its own."""

from accord.install.edits import Hook, Json, Server
from accord.install.vendor import STOP_S, TIMEOUT_S

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
    moved = site.moved(MOVED_BY)
    if site.is_user:
        settings = f"{moved or f'{site.user_home}/.claude'}/settings.json"
        servers = f"{moved or site.user_home}/.claude.json"
    else:
        settings, servers = f"{site.project}/.claude/settings.json", f"{site.project}/.mcp.json"
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
    if site.is_user:
        return []
    return ["Claude Code asks once whether it may use the project's MCP server: say yes."]
