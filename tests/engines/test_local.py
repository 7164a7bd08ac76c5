"""The gate, the mkdir lock, the bell and private folders, with real processes."""

import errno
import importlib.util
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accord import errors, platform
from accord.store.local import ear, folder
from accord.store.local.bell import Bell
from accord.store.local.claim import Claim
from accord.store.local.gate import Gate
from accord.store.open import open_store
from accord.store.transaction import transact

HOLD = """
import sys
from accord.store.local.claim import Claim
from accord.store.local.gate import Gate
lock = {"Gate": Gate, "Claim": Claim}[sys.argv[1]](sys.argv[2])
lock.acquire(10)
print("inside", flush=True)
sys.stdin.read()
lock.release()
print("outside", flush=True)
"""


class Holder:
    """Another process that holds a lock."""

    def __init__(self, kind: type[Gate] | type[Claim], path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, kind.__name__, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"inside\n"

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=10)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


@pytest.fixture
def hold() -> Iterator[Callable[[type[Gate] | type[Claim], Path], Holder]]:
    holders: list[Holder] = []

    def start(kind: type[Gate] | type[Claim], path: Path) -> Holder:
        holders.append(Holder(kind, path))
        return holders[-1]

    yield start
    for holder in holders:
        holder.kill()


Hold = Callable[[type[Gate] | type[Claim], Path], Holder]
both_locks = pytest.mark.parametrize("kind", [Gate, Claim])


@both_locks
def test_a_wait_in_vain_names_the_holder(kind: type[Gate] | type[Claim], tmp_path: Path, hold: Hold) -> None:
    holder = hold(kind, tmp_path / "lock")
    lock = kind(str(tmp_path / "lock"))
    started = time.monotonic()
    with pytest.raises(errors.LockTimeout, match=f"process {holder.process.pid}"):
        lock.acquire(0.2)
    assert 0.2 <= time.monotonic() - started < 2


@both_locks
@pytest.mark.parametrize("end", ["let_go", "kill"])
def test_a_wait_ends_when_the_holder_leaves_or_dies(
    kind: type[Gate] | type[Claim], end: str, tmp_path: Path, hold: Hold
) -> None:
    holder = hold(kind, tmp_path / "lock")
    lock = kind(str(tmp_path / "lock"))
    threading.Timer(0.1, getattr(holder, end)).start()
    lock.acquire(10)
    lock.release()


@both_locks
def test_after_a_wait_in_vain_the_lock_is_free_for_others(
    kind: type[Gate] | type[Claim], tmp_path: Path, hold: Hold
) -> None:
    holder = hold(kind, tmp_path / "lock")
    lock = kind(str(tmp_path / "lock"))
    for _ in range(3):
        with pytest.raises(errors.LockTimeout):
            lock.acquire(0.05)
    holder.let_go()
    other = hold(kind, tmp_path / "lock")  # gets it: no abandoned wait took it
    other.let_go()
    lock.acquire(10)
    lock.release()


@both_locks
def test_a_stopped_holder_goes_on_where_it_was(kind: type[Gate] | type[Claim], tmp_path: Path, hold: Hold) -> None:
    holder = hold(kind, tmp_path / "lock")
    holder.process.send_signal(signal.SIGSTOP)
    lock = kind(str(tmp_path / "lock"))
    with pytest.raises(errors.LockTimeout, match=f"process {holder.process.pid}"):
        lock.acquire(0.1)
    holder.process.send_signal(signal.SIGCONT)
    holder.let_go()
    lock.acquire(10)
    lock.release()


@both_locks
def test_threads_exclude_each_other(kind: type[Gate] | type[Claim], tmp_path: Path) -> None:
    lock = kind(str(tmp_path / "lock"))
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            lock.acquire(30)
            inside += 1
            most = max(most, inside)
            inside -= 1
            lock.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_mark_that_cannot_be_written_is_known_to_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(str(tmp_path / "gate"))
    gate.acquire(1)
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", failing)
        with pytest.raises(OSError, match="on purpose"):
            gate.mark(True)
    gate.release()
    assert gate.marked()
    assert gate.try_acquire()
    assert gate.was_marked
    gate.mark(False)
    assert not gate.marked()


def test_a_gate_that_cannot_be_signed_is_left_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, other = Gate(str(tmp_path / "gate")), Gate(str(tmp_path / "gate"))
    for enter in (gate.try_acquire, lambda: gate.acquire(1)):
        with monkeypatch.context() as broken:
            broken.setattr(os, "pread", failing)
            with pytest.raises(OSError, match="on purpose"):
                enter()
        for lock in (other, gate):
            assert lock.try_acquire()
            lock.release()


def failing(*args: object) -> None:
    raise OSError(errno.EIO, "on purpose")


def test_a_mark_in_the_gate_is_seen_by_others(tmp_path: Path) -> None:
    gate, other = Gate(str(tmp_path / "gate")), Gate(str(tmp_path / "gate"))
    assert not gate.marked()
    gate.acquire(1)
    gate.mark(True)
    gate.release()
    other.acquire(1)
    assert other.marked()
    other.mark(False)
    assert not gate.marked()


@pytest.mark.covers("S3")
@pytest.mark.parametrize(("word", "value"), [(0, "elsewhere"), (1, "another-boot")])
def test_a_lock_of_another_host_or_boot_is_left_to_a_person(word: int, value: str, tmp_path: Path, hold: Hold) -> None:
    holder = hold(Claim, tmp_path / "lock")
    owner = tmp_path / "lock" / "owner"
    words = owner.read_text().split(" ")
    holder.kill()
    words[word] = value
    owner.write_text(" ".join(words))
    with pytest.raises(errors.LockTimeout, match="remove the folder"):
        Claim(str(tmp_path / "lock")).acquire(0.2)


@pytest.mark.covers("S3")
def test_a_lock_whose_pid_was_given_to_another_process_is_broken(tmp_path: Path, hold: Hold) -> None:
    holder = hold(Claim, tmp_path / "lock")
    owner = tmp_path / "lock" / "owner"
    words = owner.read_text().split(" ")
    holder.kill()
    words[2] = str(os.getpid())  # alive, but started at another time
    owner.write_text(" ".join(words))
    lock = Claim(str(tmp_path / "lock"))
    lock.acquire(5)
    lock.release()


@pytest.mark.covers("S3")
def test_a_breaker_that_died_is_followed_by_the_next(tmp_path: Path, hold: Hold) -> None:
    holder = hold(Claim, tmp_path / "lock")
    owner = (tmp_path / "lock" / "owner").read_text()
    token = owner.rpartition(" ")[2]
    holder.kill()
    (tmp_path / f"lock.broken.{token}.0").write_text(owner)  # its maker is as dead as the holder
    lock = Claim(str(tmp_path / "lock"))
    lock.acquire(5)
    lock.release()
    lock.close()
    Claim(str(tmp_path / "lock")).close()
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.covers("S3")
def test_a_live_breaker_keeps_others_from_breaking(tmp_path: Path, hold: Hold) -> None:
    holder = hold(Claim, tmp_path / "lock")
    owner = (tmp_path / "lock" / "owner").read_text()
    words = owner.split(" ")
    holder.kill()
    words[2:4] = [str(os.getpid()), platform.process_started(os.getpid())]
    (tmp_path / f"lock.broken.{words[4]}.0").write_text(" ".join(words))
    with pytest.raises(errors.LockTimeout):
        Claim(str(tmp_path / "lock")).acquire(0.2)


@pytest.mark.covers("S3")
def test_macos_names_the_start_of_a_process_in_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of the owner's file are what tells a lock whose owner is gone."""
    monkeypatch.setattr(sys, "platform", "darwin")
    spec = importlib.util.spec_from_file_location("accord_platform_of_macos", platform.__file__)
    assert spec is not None
    assert spec.loader is not None
    macos = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(macos)
    monkeypatch.undo()

    def ps(command: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        started = b"Mon Nov 16 17:01:28 2026    \n" if command[-1] == str(os.getpid()) else b""
        return subprocess.CompletedProcess(command, 0, started)

    monkeypatch.setattr(subprocess, "run", ps)
    monkeypatch.setattr(platform, "process_started", macos.process_started)
    assert platform.process_started(1) == ""
    lock = Claim(str(tmp_path / "lock"))
    lock.acquire(1)
    owner = (tmp_path / "lock" / "owner").read_text().split(" ")
    assert len(owner) == 5
    (tmp_path / "lock" / "owner").write_text(" ".join([*owner[:2], "1", *owner[3:]]))  # who is gone
    other = Claim(str(tmp_path / "lock"))
    other.acquire(5)
    other.release()


def test_the_bell_keeps_the_latest_ring(tmp_path: Path) -> None:
    rung = Bell(str(tmp_path / "bell"))
    assert rung.read() == ("", 0)
    rung.ring("epoch", 7)
    rung.ring("epoch", 5)
    assert (rung.heard("epoch"), rung.heard("other")) == (7, 0)
    rung.ring("other", 1)
    assert rung.read() == ("other", 1)


@pytest.mark.parametrize("events", [True, False])
def test_an_ear_hears_the_bell_with_and_without_events(
    events: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung = Bell(str(tmp_path / "bell"))
    if not events:
        monkeypatch.setattr(platform, "watch_file", lambda path: None)
    waiting = ear.Ear(rung)
    rung.ring("epoch", 1)
    started = time.monotonic()
    assert waiting.wait(10) == events
    assert time.monotonic() - started < (ear.LOOK_ANYWAY_S if events else 0.5)
    waiting.close()


@pytest.mark.parametrize("url", ["sqlite:{}/store.db", "files:{}/files"])
def test_a_watch_works_where_the_system_gives_no_events(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "watch_file", lambda path: None)
    store, other = open_store(url.format(tmp_path)), open_store(url.format(tmp_path))
    with store.watch([""], since=0) as watch:
        threading.Timer(0.1, lambda: transact(other, lambda tx: tx.append("log", b""))).start()
        change = watch.next(10)
    assert change is not None
    assert change.revision == 1


def test_sqlite_can_leave_the_flushing_to_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, where only SQLite's own fullfsync reaches the disk."""
    monkeypatch.setattr("accord.store.engines.sqlite.link.FLUSH_BY_HAND", False)

    def never(fd: int) -> None:
        raise AssertionError("flushed by hand")

    monkeypatch.setattr(platform, "flush", never)
    store = open_store(f"sqlite:{tmp_path}/store.db")
    assert transact(store, lambda tx: tx.append("log", b"x")) == 1
    link = store.borrow()  # type: ignore[attr-defined]
    assert link.row("pragma synchronous")[0] == 2
    assert link.row("pragma fullfsync")[0] == 1


@pytest.mark.covers("S14.1")
@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o777])
def test_folders_and_files_are_private_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        folder.make_folder(str(tmp_path / "a" / "b"))
        os.close(folder.open_private(str(tmp_path / "a" / "b" / "file")))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("a", "a/b", "a/b/file")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("not ours")
    (tmp_path / "bell").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(errors.DataDirError, match="symbolic link"):
        Bell(str(tmp_path / "bell"))
