"""Where something is installed, and what it is to call."""

import os
import shlex

from accord import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT = "project"
USER = "user"


class Site:
    def __init__(self, scope: str, project: str, env: "Mapping[str, str]", accord: str, options: "list[str]") -> None:
        self.scope = scope
        self.project = project
        self.user_home = place.user_home(env)
        self.accord = accord  # the absolute path of the command
        self._env = env
        self._options = options  # that each command gets besides, as --home

    @property
    def is_user(self) -> bool:
        return self.scope == USER

    @property
    def folder(self) -> str:
        """What the paths of this site begin with."""
        return self.user_home if self.is_user else self.project

    def in_home(self, variable: str, usual: str) -> str:
        """A folder of a vendor in the user's home, which a variable of the vendor's may move."""
        return self.moved(variable) or f"{self.user_home}/{usual}"

    def moved(self, variable: str) -> str:
        """Where a variable of the vendor's has moved a folder; "" where it has not."""
        path = self._env.get(variable, "")
        return path and os.path.abspath(path)

    def root(self, variable: str) -> str:
        """What tells this install from others: one who moves the folder back and forth has two of them."""
        return (self.is_user and self.moved(variable)) or self.folder

    def words(self, *words: str) -> list[str]:
        """A command of accord, as words."""
        return [self.accord, *words, *self._options]

    def hook(self, event: str, brain: str) -> str:
        """The command for one event of a vendor, as its shell reads it."""
        return shlex.join(self.words("hook", event, "--brain", brain))
