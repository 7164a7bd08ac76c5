"""Looking whether all is well with a home: each check by itself, so that one failure hides no other."""

import os
import stat
import sys
from collections.abc import Callable
from typing import Any

from accord import __version__, errors, place
from accord.home import Home, Tokens
from accord.services import agents, checkup, discovery, group
from accord.services.halt import Halt
from accord.services.hub import ANSWER_WITHIN_S
from accord.settings import LOCAL_ENGINES, SETTINGS, Settings
from accord.store.protocols import Store

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
    checks: dict[str, Callable[[], Any]] = {
        "versions": _versions,
        "settings": lambda: _settings(settings),
        "home": lambda: _home(home.path),
        "free space": lambda: _free_space(home.path),
        "engine": lambda: _engine(engine(), home.path),
        "store": lambda: _store(open_store()),
        "agents": lambda: _agents(open_store(), halt.count()),
        "tokens": lambda: _tokens(open_store(), tokens()),
        "clock": lambda: checkup.of_clock(open_store()),
        "locks": lambda: checkup.of_locks(open_store()),
        "queues": lambda: checkup.of_queues(open_store()),
        "tasks": lambda: checkup.of_tasks(open_store()),
        "halt": lambda: _halt(halt),
        "hub": lambda: _hub(hub_status()),
    }
    return [{"check": name, **_look(look)} for name, look in checks.items()]


def _look(look: "Callable[[], str | dict[str, Any]]") -> dict[str, Any]:
    try:
        found = look()
        return {"ok": True, **(found if isinstance(found, dict) else {"found": found})}
    except errors.AccordError as error:
        beside: Any = error.details.get("beside", {})  # what was found all the same
        return {"ok": False, "found": str(error), "error_code": error.code, **beside}


def shown(engine: str) -> str:
    """The URL of a store, without what logs a user in there."""
    kind, slashes, rest = engine.partition("://")
    host, slash, path = rest.partition("/")
    return f"{kind}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def _versions() -> str:
    import apsw

    python = ".".join(str(part) for part in sys.version_info[:3])
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < LEAST_SQLITE:
        what = f"SQLite {apsw.sqlite_lib_version()} can damage a store that several processes write to"
        raise errors.NeedsAttention(what=what, see="pip install --upgrade apsw")
    return f"accord {__version__}, Python {python}, SQLite {apsw.sqlite_lib_version()}"


def _settings(settings: Settings) -> str:
    sources = {source for _, source in (settings.find(name) for name in SETTINGS)}
    return f"from {', '.join(sorted(sources))}"


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
