"""The Agent Skill: a folder with instructions and scripts, for every agent that reads such."""

import json

from accord.install.edits import Whole
from accord.install.vendor import data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.install.edits import Edit
    from accord.install.site import Site

MOVED_BY = "CLAUDE_CONFIG_DIR"
SCRIPTS = ("hub", "register", "unregister", "send", "check", "discover")


def edits(site: "Site") -> "list[Edit]":
    """The same twice: Codex, Gemini CLI and OpenCode look in .agents, Claude Code only in .claude."""
    claude = site.in_home(MOVED_BY, ".claude") if site.is_user else f"{site.project}/.claude"
    found: list[Edit] = []
    for folder in (f"{site.folder}/.agents", claude):
        files = ["SKILL.md", "scripts/_accord.py", *(f"scripts/{name}.py" for name in SCRIPTS)]
        found += [Whole(f"{folder}/skills/accord/{name}", _content(site, name)) for name in files]
    return found


def _content(site: "Site", name: str) -> str:
    """A project's is for others too, whose accord lies elsewhere: theirs is found where they have it."""
    known = site.words() if site.is_user else []
    return data(f"skill/{name}").replace("INSTALLED: list[str] = []", f"INSTALLED: list[str] = {json.dumps(known)}")


def notes(site: "Site") -> list[str]:
    return []
