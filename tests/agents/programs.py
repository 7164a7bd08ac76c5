"""The real programs of agents that tests run: which versions, and where they lie."""

import os
from pathlib import Path
from typing import NamedTuple

from tests.need import need_file


class Program(NamedTuple):
    package: str  # of npm
    version: str
    command: str

    @property
    def folder(self) -> Path:
        """One for each package, so that one that npm fails to install harms no other."""
        return cache() / self.package.strip("@").replace("/", "-")

    @property
    def path(self) -> Path:
        return self.folder / "node_modules/.bin" / self.command

    @property
    def manifest(self) -> Path:
        return self.folder / "node_modules" / self.package / "package.json"


# By the name that users of `accord install` type.
PROGRAMS = {
    "claude": Program("@anthropic-ai/claude-code", "2.1.325", "claude"),
    "codex": Program("@openai/codex", "0.166.0", "codex"),
    "opencode": Program("opencode-ai", "1.18.33", "opencode"),
    "gemini": Program("@google/gemini-cli", "0.61.0", "gemini"),
}


def cache() -> Path:
    """Outside the checkout: they take a gigabyte, and `make clean` shall not cost them."""
    return Path(os.environ.get("ACCORD_AGENTS_CACHE") or "~/.cache/accord-agents").expanduser()


def need_program(name: str) -> str:
    """The path of an agent's program; without it the test is skipped, or fails if ACCORD_REQUIRE_ALL=1."""
    return need_file(PROGRAMS[name].path, name, "make test-agents")
