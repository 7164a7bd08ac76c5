"""What the hot verbs do not do: import, write, flush."""

import sys

import pytest

from tests.cli.users import ACCORD, User
from tests.need import need

MAIL = ("send", "--from", "ann", "--to", "ben", "--message")

# Each costs more than a durable send, or brings something that does.
HEAVY = {
    "argparse", "asyncio", "collections", "concurrent", "contextlib", "copy", "ctypes", "dataclasses", "datetime",
    "decimal", "difflib", "email", "enum", "functools", "getpass", "hashlib", "heapq", "http", "importlib.metadata",
    "inspect", "ipaddress", "json", "locale", "logging", "multiprocessing", "optparse", "pathlib", "pickle", "platform",
    "random", "re", "secrets", "select", "shlex", "shutil", "signal", "socket", "sqlite3", "ssl", "statistics",
    "string", "struct", "subprocess", "tempfile", "textwrap", "threading", "tokenize", "traceback", "typing", "urllib",
    "uuid", "warnings", "weakref", "yaml", "zipfile",
}  # fmt: skip

# Of accord, what a verb that goes well does not need.
UNUSED = {
    "accord.errors.table", "accord.cli.help", "accord.cli.complete", "accord.api", "accord.testing", "accord.demo",
    "accord.store.engines.files", "accord.store.engines.memory", "accord.store.wrap", "accord.services.search",
    "accord.services.channels", "accord.services.discovery", "accord.settings.files", "accord.operations.schema",
    "accord.operations.results", "accord.settings.engine", "accord.store.remote",
}  # fmt: skip


def imported(user: User, *words: str) -> set[str]:
    """All that a command imported, and the interpreter before it."""
    done = user.run("-X", "importtime", ACCORD, *words, command=(sys.executable,))
    assert done.code == 0, done
    names = [line.rpartition("|")[2].strip() for line in done.err.splitlines() if line.startswith("import time:")]
    assert "accord.cli.main" in names
    return set(names)


def interpreter(user: User) -> set[str]:
    """What an interpreter with this environment imports for a program that does nothing."""
    done = user.run("-X", "importtime", "-c", "", command=(sys.executable,))
    return {line.rpartition("|")[2].strip() for line in done.err.splitlines()}


@pytest.mark.covers("Q2")
def test_with_a_hub_they_import_next_to_nothing(ann: User) -> None:
    base = interpreter(ann)
    ann.json("hub", "start")
    try:
        for words in ([*MAIL, "hello"], ["check", "ben"]):
            found = {name for name in imported(ann, *words) - base if name.startswith("accord")}
            assert found == {
                "accord", "accord.cli", "accord.cli.forward", "accord.cli.io", "accord.cli.main", "accord.client",
                "accord.errors", "accord.jsontext", "accord.place",
            }  # fmt: skip
    finally:
        ann.json("hub", "stop")


@pytest.mark.covers("Q2")
def test_hot_verbs_import_nothing_heavy(ann: User) -> None:
    base = interpreter(ann)
    id = ann.json(*MAIL, "hello")["message_id"]
    for words in (
        [*MAIL, "hello"],
        [*MAIL, "hello", "--json"],
        ["check", "ben", "--peek"],
        ["check", "ben", "--json", "--peek"],
        ["ack", "--identity", "ben", id],
        ["check", "ben"],
        ["check", "ben"],
        ["register", "zoe"],
    ):
        found = imported(ann, *words) - base
        assert not {name for name in found if name in HEAVY or name.partition(".")[0] in HEAVY}, words
        assert not {name for name in found if any(f"{name}.".startswith(f"{unused}.") for unused in UNUSED)}, words


@pytest.mark.covers("Q2")
def test_a_settings_file_costs_the_hot_verbs_no_more_than_a_look(ann: User) -> None:
    (ann.home / "accord.yml").write_text("inbox_limit: 100\n")
    (ann.work / "accord.yml").write_text("message_limit: 100\n")
    ann.json("check", "ben")
    ann.json(*MAIL, "hello")
    base = interpreter(ann)
    found = imported(ann, *MAIL, "hello") - base
    assert not {name for name in found if name.partition(".")[0] in HEAVY}


@pytest.mark.covers("Q2", "S10")
def test_a_backend_costs_the_hot_verbs_nothing_heavy(ann: User) -> None:
    path = ann.home / "store.db"
    (ann.home / "accord.yml").write_text(f"communication: {{backend: sqlite, settings: {{database_path: {path}}}}}\n")
    ann.json("register", "cyd")
    base = interpreter(ann)
    for env in ({}, {"COMMUNICATION_BACKEND": "sqlite", "SQLITE_DB": str(path)}):
        ann.env |= env
        found = imported(ann, "send", "--from", "cyd", "--to", "cyd", "--message", "hello") - base
        assert "accord.settings.engine" in found
        assert not {name for name in found if name.partition(".")[0] in HEAVY}


@pytest.mark.covers("Q2")
def test_the_version_needs_no_store(user: User) -> None:
    found = imported(user, "--version")
    assert not {name for name in found if name.startswith(("accord.store.engines", "accord.services"))}


def changes(user: User, *words: str) -> list[str]:
    """The system calls of a command that change a file, or make it durable."""
    log = user.folder / "log"
    calls = "write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,msync,ftruncate,truncate,fallocate"
    names = "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,chmod,fchmod,fchmodat,openat,utimensat"
    tracing = (need("strace"), "-f", "-qq", "-y", "-e", f"trace={calls},{names}", "-o", str(log))
    done = user.run(ACCORD, *words, command=tracing)
    assert done.code == 0, done
    lines = [line.partition(" ")[2].strip() for line in log.read_text().splitlines()]
    return [line for line in lines if changing(line)]


def changing(line: str) -> bool:
    """Not what is printed, nor calls that fail, nor the memory that the users of a database share in a file."""
    if line.startswith(("write(1<", "write(2<", "+++", "---")) or " = -1 E" in line or "store.db-shm" in line:
        return False
    return not line.startswith("openat") or ("O_CREAT" in line and "store.db-wal" not in line)


def files(user: User) -> dict[str, tuple[int, int]]:
    """Every file of the home, with its size and when it was changed."""
    found = [path for path in user.home.rglob("*") if path.name != "store.db-shm"]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


@pytest.mark.covers("Q2")
@pytest.mark.parametrize("settings", [False, True], ids=["plain", "with settings"])
def test_a_check_with_nothing_new_changes_nothing(settings: bool, ann: User) -> None:
    if settings:
        (ann.home / "accord.yml").write_text("inbox_limit: 100\n")
    ann.json(*MAIL, "hello")
    assert any("fsync" in line or "fdatasync" in line for line in changes(ann, *MAIL, "hello")), "strace sees nothing"
    ann.json("check", "ben")
    before = files(ann)
    for words in (["check", "ben"], ["check", "ben", "--json"], ["check", "ben", "--peek"]):
        assert changes(ann, *words) == []
    assert files(ann) == before
