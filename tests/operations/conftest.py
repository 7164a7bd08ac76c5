from pathlib import Path

import pytest

from tests.operations.ways import CommandLine, Python, Way

# What a test of operations runs through; what stays in memory dies with a process.
WAYS: list[tuple[type[Python | CommandLine], str]] = [
    (Python, "memory"),
    (Python, "sqlite"),
    (Python, "files"),
    (CommandLine, "sqlite"),
    (CommandLine, "files"),
]


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a user and one of accord in it, for this process and those it starts; nobody is an agent."""
    for name in ("ACCORD_AGENT", "ACCORD_TOKEN", "ACCORD_ENGINE", "ACCORD_INBOX_LIMIT", "ACCORD_MESSAGE_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ACCORD_HOME", str(tmp_path / "accord"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def url_of(engine: str, folder: Path) -> str:
    return f"{engine}:{folder}/store.{engine}"


@pytest.fixture(params=WAYS, ids=[f"{way.__name__.lower()}-{engine}" for way, engine in WAYS])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    kind: type[Python | CommandLine]
    kind, engine = request.param
    return kind(url_of(engine, tmp_path))


@pytest.fixture(params=["memory", "sqlite", "files"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Python:
    """In this process, on every engine."""
    return Python(url_of(request.param, tmp_path))


@pytest.fixture
def memory(tmp_path: Path) -> Python:
    """In this process and on one engine, for rules that no engine knows of."""
    return Python(url_of("memory", tmp_path))


@pytest.fixture(params=["sqlite", "files"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> CommandLine:
    """Processes, on every engine that outlives one."""
    return CommandLine(url_of(request.param, tmp_path))
