"""Codex: hooks in hooks.json, an MCP server in config.toml, both in ~/.codex or the project's .codex."""

from accord.install.edits import Hook, Json, Toml
from accord.install.vendor import STOP_S, TIMEOUT_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.install.edits import Edit
    from accord.install.site import Site

EVENTS = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "step",
    "Stop": "stop",
    "SessionEnd": "end",
}
_SECONDS = {"stop": STOP_S, "end": 3}  # it gives SessionEnd no more


def edits(site: "Site") -> "list[Edit]":
    folder = site.in_home("CODEX_HOME", ".codex") if site.is_user else f"{site.project}/.codex"
    command, *args = site.words("mcp")
    hooks = [
        Hook(
            event,
            "codex",
            {"type": "command", "command": site.hook(name, "codex"), "timeout": _SECONDS.get(name, TIMEOUT_S)},
        )
        for event, name in EVENTS.items()
    ]
    table = Toml(f"{folder}/config.toml", ("mcp_servers", "accord"), {"command": command, "args": args})
    return [Json(f"{folder}/hooks.json", [*hooks]), table]


def notes(site: "Site") -> list[str]:
    said = ["Codex runs new hooks only once you trust them: start codex, type /hooks, and trust those of accord."]
    if not site.is_user:
        said.append("Codex reads the project's .codex only where you trust the project.")
    return said
