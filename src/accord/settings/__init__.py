"""What can be set, and where its value comes from: a flag, the environment, the project's file, the home's, a default.

Both files are called `accord.yml`. What was read from one is cached in the home until the file changes, so that a
command pays for looking, not for reading YAML.
"""

import os

from accord import errors, jsontext
from accord.model import MAX_MESSAGE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

FILE = "accord.yml"
LOCAL_ENGINES = ("sqlite", "files")


class Setting:
    def __init__(self, default: object, help: str, read: "Callable[[object], object]", trust: bool = False) -> None:
        self.default = default
        self.help = help
        self.read = read  # the value, or a ValueError that says what it should be
        self.trust = trust  # a project's file may set it only once its owner trusts the file


def _whole(least: int, most: int) -> "Callable[[object], object]":
    def read(value: object) -> object:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return read


def _engine(value: object) -> object:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("an engine's URL, such as sqlite:PATH")
    return value


SETTINGS = {
    "engine": Setting(
        "", "where everything is stored, as ENGINE:PLACE; empty: sqlite in the home", _engine, trust=True
    ),
    "message_limit": Setting(
        MAX_MESSAGE_BYTES, "bytes that one message may have, at most the default", _whole(1, MAX_MESSAGE_BYTES)
    ),
    "lock_timeout_s": Setting(
        30, "seconds that a command waits for others who change the same things", _whole(1, 3600)
    ),
    "inbox_limit": Setting(100_000, "unread messages after which an inbox takes no more", _whole(1, 1_000_000_000)),
}


class Settings:
    def __init__(self, home: str, cwd: str, env: "Mapping[str, str]", flags: "Mapping[str, object]") -> None:
        self._home = home
        self._cwd = cwd
        self._env = env
        self._flags = flags
        self._known: dict[str, object] = {}
        self._files: list[tuple[str, dict[str, object]]] | None = None

    def __getitem__(self, name: str) -> "Any":
        if name not in self._known:
            self._known[name] = self.find(name)[0]
        return self._known[name]

    def find(self, name: str) -> tuple[object, str]:
        """The value, and where it comes from: `flag`, `$VARIABLE`, a file, or `default`."""
        if name in self._flags:
            return self._placed(name, _read(name, self._flags[name], f"--{name}"), self._cwd), "flag"
        variable = f"ACCORD_{name.upper()}"
        if self._env.get(variable):
            return self._placed(name, _read(name, self._env[variable], f"${variable}"), self._cwd), f"${variable}"
        for path, values in self.files():
            if name in values:
                return self._placed(name, values[name], os.path.dirname(path)), path
        return SETTINGS[name].default, "default"

    def _placed(self, name: str, value: object, folder: str) -> object:
        """An engine's place on this disk is where it was written down, whatever the working directory is by then."""
        if name != "engine":
            return value
        engine, colon, place = str(value).partition(":")
        is_relative = engine in LOCAL_ENGINES and place and not place.startswith(("/", "~"))
        return f"{engine}{colon}{folder}/{place}" if is_relative else value

    def files(self) -> list[tuple[str, dict[str, object]]]:
        """The files there are and what they set, the project's first."""
        if self._files is None:
            home_file = f"{self._home}/{FILE}"
            project_file = self._project_file(home_file)
            paths = [path for path in (project_file, home_file) if path and os.path.lexists(path)]
            self._files = [(path, self._values(path, path == project_file)) for path in paths]
        return self._files

    def _project_file(self, home_file: str) -> str:
        """The nearest one upwards from the working directory; "" when there is none."""
        folder = self._cwd
        while folder:
            path = f"{folder.rstrip('/')}/{FILE}"
            if path != home_file and os.path.lexists(path):
                return path
            parent = os.path.dirname(folder)
            folder = parent if parent != folder else ""
        return ""

    def _values(self, path: str, in_project: bool) -> dict[str, object]:
        from accord.settings.files import is_trusted, values_of

        values, digest = values_of(path, self._home)
        for name in values:
            if in_project and SETTINGS[name].trust and not is_trusted(path, digest, self._home):
                raise errors.NotTrusted(path=path, setting=name)
        return values


def _read(name: str, value: object, where: str) -> object:
    try:
        return SETTINGS[name].read(value)
    except ValueError as error:
        raise errors.InvalidConfig(path=where, reason=f"{name} should be {error}") from None


def read_cache(path: str) -> "dict[str, Any]":
    """What a file of ours in the cache holds; nothing when it is not there or not whole."""
    try:
        with open(path, "rb") as file:
            found = jsontext.loads(file.read(jsontext.MAX_BYTES))
    except (OSError, errors.InvalidJson):
        return {}
    return found if isinstance(found, dict) else {}
