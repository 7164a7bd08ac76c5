"""A user's home, a project and a home of accord's that nobody else uses, and what lies in them."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from accord.home import Home
from accord.install import doing
from accord.install.site import Site

ACCORD = "/opt/acc ord/bin/accord"  # with a blank, since commands are quoted
SCOPES = ("user", "project")

# Where each vendor's settings are, by scope, and what reads them.
SETTINGS = {
    ("claude", "user"): {".claude/settings.json": "json", ".claude.json": "json"},
    ("claude", "project"): {".claude/settings.json": "json", ".mcp.json": "json"},
    ("codex", "user"): {".codex/hooks.json": "json", ".codex/config.toml": "toml"},
    ("codex", "project"): {".codex/hooks.json": "json", ".codex/config.toml": "toml"},
    ("gemini", "user"): {".gemini/settings.json": "comments"},
    ("gemini", "project"): {".gemini/settings.json": "comments"},
    ("opencode", "user"): {".config/opencode/opencode.json": "commas"},
    ("opencode", "project"): {"opencode.json": "commas"},
}


class Lying(NamedTuple):
    """What lies under a name."""

    kind: str
    content: bytes
    mode: int


class Place:
    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        self.project = folder / "project"
        self.home = Home(str(folder / "accord"))
        self.user.mkdir()
        self.project.mkdir()

    def folder(self, scope: str) -> Path:
        return self.user if scope == "user" else self.project

    def site(self, scope: str, accord: str = ACCORD, env: Mapping[str, str] | None = None) -> Site:
        return Site(scope, str(self.project), {"HOME": str(self.user), **(env or {})}, accord, [])

    def install(self, name: str, scope: str, accord: str = ACCORD) -> dict[str, str]:
        """Install; what was done with each file."""
        return self._do(name, scope, accord, True)

    def uninstall(self, name: str, scope: str, accord: str = ACCORD) -> dict[str, str]:
        return self._do(name, scope, accord, False)

    def _do(self, name: str, scope: str, accord: str, is_install: bool) -> dict[str, str]:
        found = doing.do(name, self.site(scope, accord), self.home, is_install, 10)
        return {os.path.relpath(change.path, self.folder(scope)): change.did for change in found}

    def lying(self) -> dict[str, Lying]:
        """Everything in the user's home and in the project."""
        paths = [*self.user.rglob("*"), *self.project.rglob("*")]
        return {str(path): _look(path) for path in paths}

    def write(self, scope: str, name: str, data: bytes) -> Path:
        path = self.folder(scope) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def records(self) -> list[str]:
        folder = Path(self.home.path) / "installed"
        return sorted(path.name for path in folder.glob("*.json")) if folder.is_dir() else []


def _look(path: Path) -> Lying:
    mode = path.lstat().st_mode & 0o7777
    if path.is_symlink():
        return Lying("link", os.fsencode(path.readlink()), mode)
    return Lying("folder", b"", mode) if path.is_dir() else Lying("file", path.read_bytes(), mode)


def in_child(work: Callable[[], object]) -> int:
    """Do something in a process of its own; how that ended."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
