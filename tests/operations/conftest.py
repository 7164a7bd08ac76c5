import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.engines import ENGINES
from tests.hubs import Hub
from tests.operations.ways import CommandLine, Http, HubCommandLine, Python, Unix, Way, Zmq

# What a test of operations runs through; what stays in memory dies with a process. A hub adds nothing to an engine, so
# one of them will do.
WAYS: list[tuple[Callable[[str, Hub], Way], str]] = [
    (lambda engine, hub: Python(engine), "python-memory"),
    (lambda engine, hub: Python(engine), "python-sqlite"),
    (lambda engine, hub: Python(engine), "python-files"),
    (lambda engine, hub: Python(engine), "python-redis"),
    (lambda engine, hub: Python(engine), "python-etcd"),
    (lambda engine, hub: Python(engine), "python-firebase"),
    (lambda engine, hub: CommandLine(engine), "commandline-sqlite"),
    (lambda engine, hub: CommandLine(engine), "commandline-files"),
    (lambda engine, hub: HubCommandLine(engine, hub=hub), "hubcommandline-sqlite"),
    (Unix, "unix-sqlite"),
    (Zmq, "zmq-sqlite"),
    (Http, "http-sqlite"),
]


ALL = {engine.name for engine in ENGINES}


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a user and one of accord in it, for this process and those it starts; nobody is an agent."""
    for name in ("ACCORD_AGENT", "ACCORD_TOKEN", "ACCORD_ENGINE", "ACCORD_INBOX_LIMIT", "ACCORD_MESSAGE_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ACCORD_HOME", str(tmp_path / "accord"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def url_of(name: str, folder: Path) -> str:
    """A place of the test's own on an engine."""
    return next(engine for engine in ENGINES if engine.name == name).url(folder / name)


@pytest.fixture
def hub_of(tmp_path: Path) -> Iterator[Callable[[str], Hub]]:
    """Gives the hub of the home, on some engine. It starts when it is first needed."""
    started: list[Hub] = []

    def hub_of(engine: str) -> Hub:
        started.append(Hub(tmp_path / "accord", os.environ, ACCORD_ENGINE=engine))
        return started[-1]

    yield hub_of
    for hub in started:
        hub.close()


def params(*names: str) -> list[Any]:
    """Parameters named after engines; those of servers come with `make test-more`."""
    servers = {engine.name for engine in ENGINES if engine.server}
    return [pytest.param(name, marks=[pytest.mark.more] if name in servers else []) for name in names if name in ALL]


# Each door has tests of its own, too; `make test` goes through one of them, and through commands without a hub. What
# engines on servers promise to services is in their conformance.
MORE = ("commandline-files", "hubcommandline-sqlite", "zmq-sqlite", "http-sqlite", "python-redis", "python-etcd",
        "python-firebase")  # fmt: skip


@pytest.fixture(
    params=[
        pytest.param(way, id=way[1], marks=[pytest.mark.more] if way[1] in MORE else [])
        for way in WAYS
        if way[1].partition("-")[2] in ALL
    ]
)
def way(request: pytest.FixtureRequest, tmp_path: Path, hub_of: Callable[[str], Hub]) -> Way:
    make, name = request.param
    url = url_of(name.partition("-")[2], tmp_path)
    found: Way = make(url, hub_of(url))
    return found


@pytest.fixture(params=params("memory", "sqlite", "files", "redis", "etcd", "firebase"))
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Python:
    """In this process, on every engine."""
    return Python(url_of(request.param, tmp_path))


@pytest.fixture(params=params(*[engine.name for engine in ENGINES if engine.own_clock]))
def steady(request: pytest.FixtureRequest, tmp_path: Path) -> Python:
    """The same, on every engine whose clock nobody here can set."""
    return Python(url_of(request.param, tmp_path))


@pytest.fixture(params=params(*[engine.name for engine in ENGINES if not engine.server]))
def booted(request: pytest.FixtureRequest, tmp_path: Path) -> Python:
    """The same, on every engine whose time begins with this machine's."""
    return Python(url_of(request.param, tmp_path))


@pytest.fixture
def memory(tmp_path: Path) -> Python:
    """In this process and on one engine, for rules that no engine knows of."""
    return Python(url_of("memory", tmp_path))


@pytest.fixture(params=params("sqlite", "files", "redis", "etcd", "firebase"))
def lone_shell(request: pytest.FixtureRequest, tmp_path: Path) -> CommandLine:
    """Processes that do all of it themselves, on every engine that outlives one."""
    return CommandLine(url_of(request.param, tmp_path))


@pytest.fixture(params=["sqlite", "files"])
def disk_shell(request: pytest.FixtureRequest, tmp_path: Path) -> CommandLine:
    """The same, on every engine that keeps files of this machine."""
    return CommandLine(url_of(request.param, tmp_path))


@pytest.fixture(params=["sqlite", pytest.param("files", marks=pytest.mark.more), "hub"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, hub_of: Callable[[str], Hub]) -> CommandLine:
    """Processes, on every engine that outlives one, and with a hub that does what they are told to."""
    if request.param == "hub":
        url = url_of("sqlite", tmp_path)
        return HubCommandLine(url, hub=hub_of(url))
    return CommandLine(url_of(request.param, tmp_path))
