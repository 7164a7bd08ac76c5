"""OpenCode: a plugin, which is a file of accord's own, and an MCP server in opencode.json."""

import json
import os

from accord.install import jsonc
from accord.install.edits import MARK, Json, Server, Whole
from accord.install.vendor import data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.install.edits import Edit
    from accord.install.site import Site


MOVED_BY = "XDG_CONFIG_HOME"


def edits(site: "Site") -> "list[Edit]":
    if site.is_user:
        folder = f"{site.in_home(MOVED_BY, '.config')}/opencode"
        config, plugins = _config(folder), f"{folder}/plugins"
    else:
        config, plugins = _config(site.project), f"{site.project}/.opencode/plugins"
    server = {"type": "local", "command": site.words("mcp"), "enabled": True}
    return [
        Whole(f"{plugins}/accord.js", _plugin(site)),
        Json(config, [Server(("mcp",), server)], dialect=jsonc.COMMAS),
    ]


def _config(folder: str) -> str:
    """The one that is there; of both, OpenCode lets the second win."""
    with_comments = f"{folder}/opencode.jsonc"
    return with_comments if os.path.lexists(with_comments) else f"{folder}/opencode.json"


def _plugin(site: "Site") -> str:
    head = f"// {MARK}. `accord uninstall opencode` takes it out again, unless it was changed.\n//\n"
    return head + data("opencode.js").replace('["accord"]', json.dumps(site.words()))


def notes(site: "Site") -> list[str]:
    return ["OpenCode reads its settings and plugins when it starts: start it anew."]
