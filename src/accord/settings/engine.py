"""Which engine everything is stored in, where that is not just a path: `communication` of accord.yml, variables, URLs.

The engine is the first that is named: by a flag, `$ACCORD_ENGINE`, `$COMMUNICATION_BACKEND`, the project's file, the
home's. A URL says all by itself. A backend's mere name leaves the rest to single values, each of which comes from its
variable, the project's file, the home's, or its default; values that the engine does not know have no effect.
"""

import os

from accord import errors
from accord.place import BACKEND_VARIABLE
from accord.settings import COMMUNICATION, SETTINGS, text_that_prints, whole
from accord.store.open import ALIASES, unknown
from accord.store.remote import login

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from accord.settings import Settings


class Key:
    """One of the `settings` below `communication`."""

    def __init__(
        self,
        help: str,
        read: "Callable[[object], object]",
        default: object = None,
        variable: str = "",
        engines: "tuple[str, ...]" = (),
        same_as: str = "",
    ) -> None:
        self.help = help
        self.read = read
        self.default = default
        self.variable = variable  # that comes before the files
        self.engines = engines  # that it is for; none: it has no effect
        self.same_as = same_as  # a setting of its own, of which this is the old name


class Part:
    """What an engine's URL was made of: a value, and where it comes from."""

    __slots__ = ("name", "source", "value")

    def __init__(self, name: str, value: "str | int", source: str) -> None:
        self.name = name
        self.value = value
        self.source = source


class Chosen:
    def __init__(self, url: str, parts: "list[Part]", password: "str | None") -> None:
        self.url = url  # without its password; "": sqlite in the home
        self.parts = parts
        self.password = password  # from the URL; None: it had none


def _word(what: str, more: str) -> "Callable[[object], object]":
    """A name as it can stand in a URL: letters, digits and some more."""

    def read(value: object) -> object:
        good = isinstance(value, str) and value and all(c.isascii() and (c.isalnum() or c in more) for c in value)
        if not good:
            raise ValueError(what)
        return value

    return read


_MACHINE = "the name or the address of a machine"
_host_and_port = _word(_MACHINE, "-._:[]")


def _host(value: object) -> object:
    """An address of IPv6 has several colons; with one, a port follows, which belongs elsewhere."""
    host = str(_host_and_port(value))
    if host.count(":") == 1:
        raise ValueError(f"{_MACHINE}, without a port")
    return host


def _hosts(value: object) -> object:
    """A list, or the same with commas."""
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise ValueError("one or more machines, such as [one:2379, two:2379]")
    return [_host_and_port(host.strip() if isinstance(host, str) else host) for host in found]


def _anything(value: object) -> object:
    return value if isinstance(value, str | int) else str(value)


_REDIS = ("redis", "rediss")
KEYS = {
    "lock_timeout": Key("lock_timeout_s", SETTINGS["lock_timeout_s"].read, same_as="lock_timeout_s"),
    "backup_count": Key("backup_count", SETTINGS["backup_count"].read, same_as="backup_count"),
    "redis_host": Key("the machine", _host, "localhost", "REDIS_HOST", _REDIS),
    "redis_port": Key("its port", whole(1, 65535), 6379, "REDIS_PORT", _REDIS),
    "redis_db": Key("the number of the database", whole(0, 1_000_000), 0, "", _REDIS),
    "database_path": Key("the file; none: store.db in the home", text_that_prints, "", "SQLITE_DB", ("sqlite",)),
    "etcd_hosts": Key(
        "the machines of the cluster, with ports, as a list or with commas", _hosts, ["localhost:2379"], "", ("etcd",)
    ),
    "project_id": Key(
        "the project, which must be named", _word("a project's id", "-_."), None, "FIREBASE_PROJECT_ID", ("firebase",)
    ),
    "service_account_key_path": Key(
        "the file with the service account's key", text_that_prints, "", "GOOGLE_APPLICATION_CREDENTIALS", ("firebase",)
    ),
    "transaction_dir": Key("every transaction is in the store", _anything),
    "connection_pool_size": Key("a command needs one connection", _anything),
}
EMULATOR_VARIABLE = "FIREBASE_DATABASE_EMULATOR_HOST"


def needs_trust(communication: "dict[str, object]") -> bool:
    """Whether there is anything in it that says where everything is stored."""
    return any(name == "backend" or KEYS[name].engines for name in communication)


def unused(settings: "Settings") -> "list[Part]":
    """What the files say of the engine, to no effect."""
    used = {part.name for part in settings.chosen_engine().parts}
    files = [(path, values.get(COMMUNICATION, {})) for path, values in settings.files()]
    return [
        Part(name, _shown(value), path)
        for path, found in files
        for name, value in found.items()
        if name != "backend" and name not in used
    ]


def choose(settings: "Settings", value: object, source: str, folder: str) -> Chosen:
    """The engine, from what was written and where; None: it is named as a backend."""
    if value is None:
        chosen = _Backend(settings, source).choose()
    else:
        url, password = _split(str(value), source)
        chosen = Chosen(_placed(url, folder), [], password)
    if chosen.url.startswith("firebase://"):
        _complete_firebase(settings, chosen)
    return chosen


def _split(url: str, source: str) -> "tuple[str, str | None]":
    try:
        found, password = login.split(url)
    except errors.InvalidConfig as error:
        raise errors.InvalidConfig(path=_place(source), reason=f"engine: {error.details['reason']}") from None
    if password and not source.startswith("$"):
        reason = f"its URL holds a password that others could see: {login.CURE}"
        raise errors.InvalidConfig(path=_place(source), reason=reason)
    if password is None:
        return found, None
    from urllib.parse import unquote

    return found, unquote(password)


def check_url(url: object, path: str) -> None:
    """Refuse one with a password in a file, before anything of that is kept anywhere."""
    _split(str(url), path)


def _place(source: str) -> str:
    return "--engine" if source == "flag" else source


class _Backend:
    """An engine that was chosen by its name."""

    def __init__(self, settings: "Settings", source: str) -> None:
        self._settings = settings
        self._source = source
        self.parts: list[Part] = []

    def choose(self) -> Chosen:
        name = str(self._named())
        engine = ALIASES.get(name, name)
        if engine not in _URLS:
            raise unknown(name, f" in {self._source}", sorted(_URLS))
        url = _URLS[engine](self, engine)
        return Chosen(url, self.parts, None)

    def _named(self) -> object:
        if self._source.startswith("$"):
            return self._settings.variable(BACKEND_VARIABLE)
        return dict(self._settings.files())[self._source][COMMUNICATION]["backend"]

    def value(self, name: str) -> "Any":
        """What holds of one of the keys; noted."""
        key = KEYS[name]
        for value, source, folder in self._everywhere(name, key):
            if name in ("database_path", "service_account_key_path") and value:
                value = os.path.join(folder, os.path.expanduser(str(value)))
            if value not in ("", None):
                self.parts.append(Part(name, _shown(value), source))
            return value
        return None

    def _everywhere(self, name: str, key: Key) -> "Iterator[tuple[Any, str, str]]":
        given = self._settings.variable(key.variable) if key.variable else ""
        if given:
            yield _read(name, key, given), f"${key.variable}", self._settings.cwd
        for path, values in self._settings.files():
            if name in values.get(COMMUNICATION, {}):
                yield values[COMMUNICATION][name], path, os.path.dirname(path)
        yield key.default, "default", ""

    def redis(self, engine: str) -> str:
        host = self.value("redis_host")
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"{engine}://{host}:{self.value('redis_port')}/{self.value('redis_db')}"

    def sqlite(self, engine: str) -> str:
        path = self.value("database_path")
        return f"sqlite:{path}" if path else ""

    def etcd(self, engine: str) -> str:
        return f"etcd://{','.join(self.value('etcd_hosts'))}"

    def firebase(self, engine: str) -> str:
        project = self.value("project_id")
        if not project:
            reason = f"the backend firebase needs a project: set {COMMUNICATION}.settings.project_id"
            raise errors.InvalidConfig(path=self._source, reason=f"{reason} or $FIREBASE_PROJECT_ID")
        # An emulator is nobody's, and takes no key.
        key = "" if self._settings.variable(EMULATOR_VARIABLE) else self.value("service_account_key_path")
        return f"firebase://{project}{f'?key={_quoted(key)}' if key else ''}"

    def files(self, engine: str) -> str:
        return f"files:{self._settings.home}/store"

    def memory(self, engine: str) -> str:
        return "memory:"


_URLS: "dict[str, Callable[[_Backend, str], str]]" = {
    "sqlite": _Backend.sqlite,
    "files": _Backend.files,
    "redis": _Backend.redis,
    "rediss": _Backend.redis,
    "etcd": _Backend.etcd,
    "firebase": _Backend.firebase,
    "memory": _Backend.memory,
}


def _complete_firebase(settings: "Settings", chosen: Chosen) -> None:
    """What Firebase's own tools take from the environment, where the URL does not say it."""
    options = {option.partition("=")[0] for option in chosen.url.partition("?")[2].split("&")}
    emulator = settings.variable(EMULATOR_VARIABLE)
    key = settings.variable(KEYS["service_account_key_path"].variable)
    if emulator and not options & {"emulator", "key", "url"}:
        _add(chosen, "emulator", "emulator", emulator, EMULATOR_VARIABLE)
    elif key and not options & {"emulator", "key"}:
        path = os.path.join(settings.cwd, os.path.expanduser(key))
        _add(chosen, "key", "service_account_key_path", path, KEYS["service_account_key_path"].variable)


def _add(chosen: Chosen, option: str, name: str, value: str, variable: str) -> None:
    chosen.url += f"{'&' if '?' in chosen.url else '?'}{option}={_quoted(value)}"
    chosen.parts.append(Part(name, value, f"${variable}"))


def _placed(url: str, folder: str) -> str:
    """With the files that its options name where they are, whatever the working directory is by then."""
    head, mark, query = url.partition("?")
    if not mark:
        return url
    from urllib.parse import unquote

    options = []
    for option in query.split("&"):
        name, equals, value = option.partition("=")
        if name in login.FILES and value and not value.startswith(("/", "%2F", "%2f")):
            value = _quoted(os.path.join(folder, os.path.expanduser(unquote(value))))
        options.append(f"{name}{equals}{value}")
    return f"{head}?{'&'.join(options)}"


def _quoted(value: str) -> str:
    from urllib.parse import quote

    return quote(value, safe="/:")


def _read(name: str, key: Key, value: object) -> object:
    try:
        return key.read(value)
    except ValueError as error:
        raise errors.InvalidConfig(path=f"${key.variable}", reason=f"{name} should be {error}") from None


def _shown(value: object) -> "str | int":
    return ",".join(value) if isinstance(value, list) else value if isinstance(value, int) else str(value)
