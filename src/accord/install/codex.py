"""Codex: hooks in hooks.json, an MCP server in config.toml, both in ~/.codex or the project's .codex."""

from accord.install import tomltext
from accord.install.edits import Hook, Json, Toml
from accord.install.vendor import STOP_S, TIMEOUT_S, off
from accord.place import ENGINE_VARIABLES, PASSWORD_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.install.edits import Edit
    from accord.install.site import Site

MOVED_BY = "CODEX_HOME"

EVENTS = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "step",
    "Stop": "stop",
    "SessionEnd": "end",
}
# It passes no others on to an MCP server.
_VARIABLES = ["ACCORD_AGENT", "ACCORD_ENGINE", "ACCORD_HOME", "ACCORD_TOKEN", PASSWORD_VARIABLE, *ENGINE_VARIABLES]
_MOST_CONTEXT = 40_000  # characters; without, it cuts what a hook adds to some 10,000, and messages with it
_SECONDS = {"stop": STOP_S, "end": 3}  # it gives SessionEnd no more


def edits(site: "Site") -> "list[Edit]":
    folder = _folders(site)[-1]
    command, *args = site.words("mcp")
    hooks = [
        Hook(
            event,
            "codex",
            {
                "type": "command",
                "command": site.hook(name, "codex"),
                "timeout": _SECONDS.get(name, TIMEOUT_S),
                **({"additionalContextLimit": _MOST_CONTEXT} if name in ("start", "prompt", "step") else {}),
            },
        )
        for event, name in EVENTS.items()
    ]
    server = {"command": command, "args": args, "env_vars": _VARIABLES}
    return [
        Json(f"{folder}/hooks.json", [*hooks]),
        Toml(f"{folder}/config.toml", ("mcp_servers", "accord"), server),
    ]


def notes(site: "Site") -> list[str]:
    said = off(
        "Codex", [f"{folder}/config.toml" for folder in _folders(site)], tomltext.value, "features", "hooks", when=False
    )
    said += ["Codex runs new hooks only once you trust them: start codex, type /hooks, and trust those of accord."]
    if not site.is_user:
        said.append("Codex reads the project's .codex only where you trust the project.")
    return said


def _folders(site: "Site") -> list[str]:
    """Those with settings that count there, and as the last one that in which accord's stand."""
    own = site.in_home(MOVED_BY, ".codex")
    return [own] if site.is_user else [own, f"{site.project}/.codex"]
