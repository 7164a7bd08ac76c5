"""What can be set, and where its value comes from: a flag, the environment, the project's file, the home's, a default.

Both files are called `accord.yml`. What was read from one is cached in the home until the file changes, so that a
command pays for looking, not for reading YAML.
"""

import os

from accord import errors, jsontext, place
from accord.model import MAX_MESSAGE_BYTES
from accord.place import BACKEND_VARIABLE, KEY_VARIABLE, PASSWORD_VARIABLE, SETTINGS_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from accord.settings.engine import Chosen

LOCAL_ENGINES = ("sqlite", "files")

# What a file says of the engine piece by piece; see `engine.py`.
COMMUNICATION = "communication"

_MOST_SECRET_BYTES = 10_000


class Setting:
    def __init__(self, default: object, help: str, read: "Callable[[object], object]", trust: bool = False) -> None:
        self.default = default
        self.help = help
        self.read = read  # the value, or a ValueError that says what it should be
        self.trust = trust  # a project's file may set it only once its owner trusts the file


def whole(least: int, most: int) -> "Callable[[object], object]":
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
    return f"files:{value[5:]}" if value.startswith("file:") else value


def text_that_prints(value: object) -> object:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("a text that can be printed")
    return value


def _yes_or_no(value: object) -> object:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower(), value)
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _one_of(*words: str) -> "Callable[[object], object]":
    def read(value: object) -> object:
        if value not in words:
            raise ValueError(" or ".join(words))
        return value

    return read


SETTINGS = {
    "engine": Setting(
        "", "where everything is stored, as ENGINE:PLACE; empty: sqlite in the home", _engine, trust=True
    ),
    "engine_password_file": Setting(
        "",
        "a file with the password of an engine elsewhere, that nobody else may read; empty: none",
        text_that_prints,
        trust=True,
    ),
    "encryption_key_file": Setting(
        "", "a file with the key of an encrypted store; empty: none", text_that_prints, trust=True
    ),
    "message_limit": Setting(
        MAX_MESSAGE_BYTES, "bytes that one message may have, at most the default", whole(1, MAX_MESSAGE_BYTES)
    ),
    "lock_timeout_s": Setting(30, "seconds that a command waits for others who change the same things", whole(1, 3600)),
    "wait_timeout_s": Setting(10, "seconds that a command waits for a hub to start", whole(1, 3600)),
    "hub_port": Setting(9000, "the port of the hub, on this machine only", whole(1, 65535)),
    "http_port": Setting(9001, "the port of the hub's HTTP door, on this machine only", whole(1, 65535)),
    "autostart": Setting(True, "whether a command that needs a hub starts one", _yes_or_no),
    "metrics": Setting(False, "whether the hub has /metrics, for Prometheus", _yes_or_no),
    "backup_count": Setting(5, "earlier versions of a document that are kept", whole(0, 1000)),
    "queue_limit": Setting(100_000, "entries after which a queue takes no more", whole(1, 1_000_000_000)),
    "audit": Setting("changes", "what the audit notes: changes, or reads as well", _one_of("changes", "reads")),
    "keep_going_limit": Setting(
        20,
        "how often mail of other agents keeps one going between two prompts of a person; 0: no mail does",
        whole(0, 1_000_000),
    ),
    "thread_hops_limit": Setting(
        50, "messages of agents alone after which a thread keeps none of them going any more", whole(1, 1000)
    ),
    "stop_wait_s": Setting(
        0, "seconds that an agent waits for mail at the end of its turn, where its hooks can wait", whole(0, 3600)
    ),
    "inbox_limit": Setting(100_000, "unread messages after which an inbox takes no more", whole(1, 1_000_000_000)),
}


class Settings:
    def __init__(
        self,
        home: str,
        cwd: str,
        env: "Mapping[str, str]",
        flags: "Mapping[str, object]",
        project: "tuple[str, bytes] | None" = None,
    ) -> None:
        self._home = home
        self._cwd = cwd
        self._env = env
        self._flags = flags
        self._project = project  # the path and text of the project's file, "" for none; None: to be looked for
        self._known: dict[str, object] = {}
        self._files: list[tuple[str, dict[str, Any]]] | None = None
        self._chosen: Chosen | None = None

    def __getitem__(self, name: str) -> "Any":
        if name not in self._known:
            self._known[name] = self.find(name)[0]
        return self._known[name]

    def find(self, name: str) -> tuple[object, str]:
        """The value, and where it comes from: `flag`, `$VARIABLE`, a file, or `default`. No engine's has a password."""
        value, source, folder = self._look_up(name)
        if name == "engine" and not _is_local(value):
            return self.chosen_engine().url, source
        return (value if source == "default" else self._placed(name, value, folder)), source

    def chosen_engine(self) -> "Chosen":
        """Which engine it is, in detail: what it was made of, and the password where that stood in a URL."""
        if self._chosen is None:
            from accord.settings.engine import choose

            self._chosen = choose(self, *self._look_up("engine"))
        return self._chosen

    def _look_up(self, name: str) -> tuple[object, str, str]:
        """As it was written, where, and in which folder that lies; None: an engine that is chosen by its name alone."""
        if name in self._flags:
            return _read(name, self._flags[name], f"--{name}"), "flag", self._cwd
        variable = f"ACCORD_{name.upper()}"
        if self._env.get(variable):
            return _read(name, self._env[variable], f"${variable}"), f"${variable}", self._cwd
        if name == "engine" and self._env.get(BACKEND_VARIABLE):
            return None, f"${BACKEND_VARIABLE}", self._cwd
        for path, values in self.files():
            if name in values:
                return values[name], path, os.path.dirname(path)
            if name == "engine" and "backend" in values.get(COMMUNICATION, ()):
                return None, path, os.path.dirname(path)
        return SETTINGS[name].default, "default", ""

    def _placed(self, name: str, value: object, folder: str) -> object:
        """What lies on this disk is where it was written down, whatever the working directory is by then."""
        if name in ("encryption_key_file", "engine_password_file"):
            return os.path.join(folder, os.path.expanduser(str(value)))
        if name != "engine":
            return value
        engine, colon, place = str(value).partition(":")
        is_relative = engine in LOCAL_ENGINES and place and not place.startswith(("/", "~"))
        return f"{engine}{colon}{folder}/{place}" if is_relative else value

    def placed_engine(self, url: str, flag: str) -> str:
        """The URL of another store than the home's, as `--engine` would be read, which takes no password."""
        try:
            return str(Settings(self._home, self._cwd, self._env, {"engine": url}, self._project)["engine"])
        except errors.InvalidConfig as error:
            if error.details["path"] != "--engine":
                raise
            raise errors.InvalidConfig(path=flag, reason=error.details["reason"]) from None

    def of_backend(self, name: str) -> "Settings":
        """The same, with the engine that `$COMMUNICATION_BACKEND` would choose by this name."""
        env = {variable: value for variable, value in self._env.items() if variable != "ACCORD_ENGINE"}
        return Settings(self._home, self._cwd, {**env, BACKEND_VARIABLE: name}, {}, self._project)

    def complete(self, engine: str) -> str:
        """A store's URL with its password, if it has one: for who opens the store, and to be shown to nobody."""
        if _is_local(engine):
            return engine
        from accord.store.remote import login

        return login.join(engine, self._password(engine))

    def password_place(self, engine: str) -> str:
        """Where the password of a store elsewhere is: `$VARIABLE`, or a file; "": nowhere."""
        if _is_local(engine):
            return ""
        if self["engine"] == engine and self.chosen_engine().password is not None:
            return "$ACCORD_ENGINE"
        return f"${PASSWORD_VARIABLE}" if self._env.get(PASSWORD_VARIABLE) else str(self["engine_password_file"])

    def _password(self, engine: str) -> str:
        where = self.password_place(engine)
        if where == "$ACCORD_ENGINE":
            return str(self.chosen_engine().password)
        if where.startswith("$"):
            return self._env[PASSWORD_VARIABLE]
        return _read_password(where) if where else ""

    def encryption_key(self) -> bytes:
        """The key that the store is encrypted with; nothing: none was given, anywhere. It is shown to nobody."""
        where = self.key_place()
        if not where:
            return b""
        from accord import cipherkey

        text = self._env[KEY_VARIABLE] if where.startswith("$") else _read_private(where).decode("ascii", "replace")
        key = cipherkey.read(text.strip())
        if not key:
            raise errors.InvalidConfig(path=where, reason=f"a key has {2 * cipherkey.KEY_BYTES} hexadecimal digits")
        return key

    def key_place(self) -> str:
        """Where the key is: `$VARIABLE`, even an empty one, or a file; "": nowhere."""
        if KEY_VARIABLE in self._env:
            return f"${KEY_VARIABLE}"
        return str(self["encryption_key_file"])

    def variable(self, name: str) -> str:
        """One of the environment that the settings come from."""
        return self._env.get(name, "")

    @property
    def home(self) -> str:
        return self._home

    @property
    def cwd(self) -> str:
        return self._cwd

    def files(self) -> "list[tuple[str, dict[str, Any]]]":
        """The files there are and what they set, the project's first."""
        if self._files is None:
            self._files = [*self._of_project(), *self._of_home()]
        return self._files

    def without_bad_files(self) -> "tuple[Settings, list[errors.AccordError]]":
        """The same as far as it can be read, and what is wrong with the rest."""
        other = Settings(self._home, self._cwd, self._env, self._flags, self._project)
        other._files = []
        wrong = []
        for read in (self._of_project, self._of_home):
            try:
                other._files += read()
            except errors.AccordError as error:
                wrong.append(error)
        return other, wrong

    def _of_home(self) -> "list[tuple[str, dict[str, Any]]]":
        path = f"{self._home}/{SETTINGS_FILE}"
        if not os.path.lexists(path):
            return []
        from accord.settings.files import check_owner, values_of

        check_owner(path, self._home)
        return [(path, values_of(path, self._home)[0])]

    def _of_project(self) -> "list[tuple[str, dict[str, Any]]]":
        path = place.project_file(self._cwd, self._home) if self._project is None else self._project[0]
        if not path:
            return []
        from accord.settings.files import is_trusted, needs_trust, values_in, values_of

        values, digest = values_of(path, self._home) if self._project is None else values_in(path, self._project[1])
        for name in values:
            if needs_trust(name, values[name]) and not is_trusted(path, digest, self._home):
                raise errors.NotTrusted(path=path, setting=name)
        return [(path, values)]


def _read(name: str, value: object, where: str) -> object:
    try:
        return SETTINGS[name].read(value)
    except ValueError as error:
        raise errors.InvalidConfig(path=where, reason=f"{name} should be {error}") from None


def _is_local(engine: object) -> bool:
    """Whether it is one whose place is a path or a name, or none: such a URL is what it looks like."""
    return isinstance(engine, str) and engine.partition(":")[0] in ("", *LOCAL_ENGINES, "memory")


def _read_password(path: str) -> str:
    try:
        password = _read_private(path).decode().strip("\r\n")
    except UnicodeDecodeError:
        password = ""
    if not password.isprintable() or not password:
        raise errors.InvalidConfig(path=path, reason="a password is one line of text")
    return password


def _read_private(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise errors.InvalidConfig(path=path, reason="others may read it; it should have mode 600")
            return file.read(_MOST_SECRET_BYTES)
    except OSError as error:
        raise errors.FileUnreadable(path=path, reason=error.strerror) from None


def read_cache(path: str) -> "dict[str, Any]":
    """What a file of ours in the cache holds; nothing when it is not there or not whole."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return {}  # in a group's home, where anybody could claim that a file says something else
            found = jsontext.loads(file.read(jsontext.MAX_BYTES))
    except (OSError, errors.InvalidJson):
        return {}
    return found if isinstance(found, dict) else {}
