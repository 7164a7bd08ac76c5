"""Looking whether all is well with a home: each check by itself, so that one failure hides no other."""

import os
import stat
import sys
from collections.abc import Callable
from typing import Any

from accord import __version__, errors, place
from accord.home import Home, Tokens
from accord.services import agents, checkup, discovery, group, server
from accord.services.halt import Halt
from accord.services.hub import ANSWER_WITHIN_S
from accord.settings import LOCAL_ENGINES, SETTINGS, Settings
from accord.settings.engine import unused
from accord.store.protocols import Store
from accord.store.remote import login

LEAST_FREE_MIB = 100
LEAST_SQLITE = (3, 51, 3)


def examine(
    home: Home,
    tokens: Callable[[], Tokens],
    settings: Settings,
    engine: Callable[[], str],
    halt: Halt,
    open_store: Callable[[], Store],
    hub_status: Callable[[], dict[str, Any]],
) -> list[dict[str, Any]]:
    """What was looked at, whether it is well, and what was found."""
    opened = _Once(open_store)
    checks: dict[str, Callable[[], Any]] = {
        "versions": lambda: _versions(_is_elsewhere(engine)),
        "settings": lambda: _settings(settings),
        "home": lambda: _home(home.path),
        "free space": lambda: _free_space(home.path),
        "engine": lambda: _engine(engine(), home.path),
        "store": lambda: _store(opened()),
        **({"server": lambda: server.look(opened())} if _is_elsewhere(engine) else {}),
        "agents": lambda: _agents(opened(), halt.count()),
        "tokens": lambda: _tokens(opened(), tokens()),
        "clock": lambda: checkup.of_clock(opened()),
        "locks": lambda: checkup.of_locks(opened()),
        "queues": lambda: checkup.of_queues(opened()),
        "tasks": lambda: checkup.of_tasks(opened()),
        "halt": lambda: _halt(halt),
        "hub": lambda: _hub(hub_status()),
    }
    return _said_once([{"check": name, **_look(look)} for name, look in checks.items()])


class _Once:
    """The store, opened at most once: what keeps it closed keeps all who ask from waiting for that again."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._error: errors.AccordError | None = None

    def __call__(self) -> Store:
        if self._error is not None:
            raise self._error
        try:
            return self._open_store()
        except errors.AccordError as error:
            self._error = error
            raise


def _is_elsewhere(engine: Callable[[], str]) -> bool:
    """Whether the store is on another machine, or could be."""
    try:
        return engine().partition(":")[0] not in login.LOCAL
    except errors.AccordError:
        return False  # which other checks will say


def _look(look: "Callable[[], str | dict[str, Any]]") -> dict[str, Any]:
    try:
        found = look()
        return {"ok": True, **(found if isinstance(found, dict) else {"found": found})}
    except errors.AccordError as error:
        beside: Any = error.details.get("beside", {})  # what was found all the same
        return {"ok": False, "found": str(error), "error_code": error.code, **beside}


def _said_once(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What keeps the store closed is told by the check that met it first, which the others name."""
    tellers: dict[str, str] = {}
    for check in checks:
        if not check["ok"]:
            teller = tellers.setdefault(check["found"], check["check"])
            if teller != check["check"]:
                check["found"] = f"not looked at; see {teller}"
    return checks


def shown(engine: str) -> str:
    """The URL of a store, without what logs a user in there."""
    kind, slashes, rest = engine.partition("://")
    host, slash, path = rest.partition("/")
    return f"{kind}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def _versions(is_elsewhere: bool) -> str:
    python = ".".join(str(part) for part in sys.version_info[:3])
    if is_elsewhere:
        return f"accord {__version__}, Python {python}"
    import apsw

    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < LEAST_SQLITE:
        what = f"SQLite {apsw.sqlite_lib_version()} can damage a store that several processes write to"
        raise errors.NeedsAttention(what=what, see="pip install --upgrade apsw")
    return f"accord {__version__}, Python {python}, SQLite {apsw.sqlite_lib_version()}"


def _settings(settings: Settings) -> str:
    sources = {source for _, source in (settings.find(name) for name in SETTINGS)}
    without_effect = [f"{part.name} ({part.source})" for part in unused(settings)]
    return f"from {', '.join(sorted(sources))}" + (
        f"; without effect: {', '.join(without_effect)}" if without_effect else ""
    )


def _home(path: str) -> str:
    gid = Home(path).gid()
    if gid is not None:
        return f"{path}, of the group {group.name(gid)}"
    if os.path.isdir(path):
        _check_private(path)
    return path


def _engine(url: str, home: str) -> str:
    """Which it is; a store elsewhere than in the home must be as private, and have as much room."""
    engine, _, path = url.partition(":")
    path = os.path.realpath(os.path.expanduser(path.partition("?")[0]))
    if engine not in LOCAL_ENGINES or path.startswith(f"{os.path.realpath(home)}/"):
        return shown(url)
    above = os.path.dirname(path)
    if os.path.exists(path) and not place.is_shared(path) and not place.is_shared(above):
        _check_private(path)
        if _mode(above) & 0o022 and not _mode(above) & stat.S_ISVTX:
            reason = f"others may put something else in the place of {path} (mode {_mode(above):o})"
            raise errors.DataDirError(path=above, errno=0, reason=reason)
    return f"{shown(url)}; {_free_space(path)} free there"


def _check_private(path: str) -> None:
    mode = _mode(path)
    if mode & 0o077:
        wanted = "700, or 2770 for a group" if os.path.isdir(path) else "600"
        reason = f"others may look into it (mode {mode:o}; it should be {wanted})"
        raise errors.DataDirError(path=path, errno=0, reason=reason)


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def _free_space(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path)
    disk = os.statvfs(path)
    free_mib = disk.f_bavail * disk.f_frsize >> 20
    if free_mib < LEAST_FREE_MIB:
        raise errors.StorageFull(path=path)
    return f"{free_mib} MiB"


def _store(store: Store) -> str:
    with store.snapshot() as snapshot:
        revision = f"{snapshot.epoch}.{snapshot.revision}"
    key = getattr(store, "key_name", "")
    secrecy = f"encrypted with the key {key}" if key else "not encrypted"
    return f"revision {revision}; {secrecy}; what is sent survives: {store.durability}"


def _halt(halt: Halt) -> str:
    halt.check()
    return "nothing is halted"


def _hub(found: dict[str, Any]) -> str:
    if not found["running"]:
        return "none runs; what listens waits for one"
    if not found["pid"]:
        return "it is just starting"
    if not found["answers"]:
        raise errors.HubSilent(pid=found["pid"], timeout_seconds=ANSWER_WITHIN_S)
    if found["version"] != __version__:
        raise errors.HubOutdated(path=found["home"])
    return f"process {found['pid']}, port {found['port']}, http {found['http_port']}"


def _agents(store: Store, halts: int) -> str:
    found = discovery.everybody(store, halts, {})["identities"]
    waiting = [one["identity"] for one in found if not one["engaged"]]
    if waiting:
        raise errors.NotEngaged(identity=" ".join(waiting))
    return f"{len(found) - 1} registered, {sum(one['pending'] for one in found)} messages unread"


def _tokens(store: Store, tokens: Tokens) -> str:
    """Each token that lies here is private, and that of a registered agent; those of other members are theirs."""
    found = tokens.names()
    for name in found:
        path = tokens.path_of(name)
        about = os.stat(path)
        mode = stat.S_IMODE(about.st_mode)
        if about.st_uid != os.geteuid() and place.is_shared(tokens.path):
            continue
        if mode & 0o077:
            reason = f"others may read it (mode {mode:o}; it should be 600)"
            raise errors.DataDirError(path=path, errno=0, reason=reason)
        agents.resume(store, agents.Actor(name, agents.hash_token(tokens.read(name)), token_path=path))
    return f"{len(found)} in {tokens.path}"
