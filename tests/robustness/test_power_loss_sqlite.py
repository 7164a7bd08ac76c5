"""A power cut at any moment under several writers, with any part of what was not synced lost, keeps all promises."""

import errno
import fcntl
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from accord import errors, platform
from accord.store.engines.sqlite import Sqlite, link
from accord.store.transaction import transact
from tests.robustness.homes import applied, check_store, prepare
from tests.robustness.simdisk import CacheFiles, Disk, path_of
from tests.robustness.worker import change

SEEDS = 300
CUTS = 4  # moments of each run at which the power may have gone
STEPS = 400  # writes and syncs of each run
STORES = 3
NESTED = 3  # commits of others between one's commit and its flush, each in the other


@dataclass(frozen=True)
class Cut:
    """A moment: what was promised by then, and what a power cut leaves."""

    promised: frozenset[int]
    files: dict[str, bytes]


class Run:
    """A few stores in one process, on a simulated disk, until it has seen enough steps."""

    def __init__(self, home: Path, seed: int, flushes: bool = True, refusals: float = 0.0) -> None:
        self.chance = random.Random(seed)
        self.epoch = prepare("sqlite", home, ())
        self.cuts: list[Cut] = []
        self._flushes = flushes
        self._refusals = refusals  # how often the disk refuses what a flush is to save
        self._path = str(home / "store.db")
        self._bell = home / "store.db-bell"
        self._disk = Disk()
        self._disk.add(self._path, Path(self._path).read_bytes())
        self._disk.on_step = self._step
        self._cut_at = set(self.chance.sample(range(1, STEPS), CUTS))
        self._steps = 0
        self._depth = 0
        self._failed = 0  # flushes
        self._tried = 0  # changes, in the order of their commits
        self._promised: set[int] = set()
        with under_sqlite(self._disk, self._flush, tidy_at=self.chance.choice((5, 20, 1000))):
            self._stores = [Sqlite(self._path) for _ in range(STORES)]
            self._other = apsw.Connection(self._path)
            self._other.set_busy_timeout(0)
            while self._steps < STEPS:
                self._act()
            self.committed = applied(self._stores[0])  # promised or not, in order
            self._other.close()
            for store in self._stores:
                store.close()

    def _act(self) -> None:
        what = self.chance.random()
        try:
            if what < 0.15:
                self._checkpoint()
            elif what < 0.3:
                self._watch()
            else:
                self._commit()
        except (errors.OutcomeUnknown, errors.StorageFailing):
            assert self._refusals

    def _commit(self) -> None:
        self._tried += 1
        n = self._tried
        failed = self._failed
        transact(self.chance.choice(self._stores), change(n))
        self._promised.add(n)
        if self._failed > failed:
            self._cut()  # others were told that the disk refused something, and this one was not

    def _checkpoint(self) -> None:
        """Another program copies the WAL, as long as the disk takes everything: it knows nothing of refusals."""
        if not self._refusals:
            mode = self.chance.choice(("passive", "full", "restart", "truncate"))
            self._other.execute(f"pragma wal_checkpoint({mode})").fetchall()

    def _watch(self) -> None:
        """What a watch gave out is promised too: a subscriber keeps its revision."""
        store = self.chance.choice(self._stores)
        with store.snapshot() as snapshot:
            since = self.chance.randrange(snapshot.revision + 1)
        with store.watch(["mail"], since, self.epoch) as watch:
            while found := watch.next(0):
                with store.snapshot() as snapshot:
                    letter = snapshot.get(*found.keys[0])
                    assert letter is not None
                    self._promised.add(int(letter.value))

    def _flush(self, fd: int) -> None:
        """A flush by the engine, before which others act if they may."""
        path = path_of(fd)
        self._depth += 1
        while self._depth <= NESTED and self.chance.random() < 0.4 and self._gate_is_free():
            self._act()
        self._depth -= 1
        if self.chance.random() < self._refusals:
            self._disk.refuse(path)
        if self._flushes and not self._disk.sync(path, fd):
            self._failed += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _gate_is_free(self) -> bool:
        with open(f"{self._path}-gate") as gate:
            try:
                fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def _step(self) -> None:
        self._steps += 1
        if self._steps in self._cut_at:
            self._cut()

    def _cut(self) -> None:
        """The power may have gone at this moment."""
        files = {Path(path).name: self._disk.after_power_cut(path, self.chance) for path in self._disk.seen}
        # The bell is not synced, and less than a sector: it is there, or not, or its length alone is.
        rung = self._bell.read_bytes()
        files["store.db-bell"] = self.chance.choice((rung, b"", bytes(len(rung))))
        self.cuts.append(Cut(frozenset(self._promised), files))


@contextmanager
def under_sqlite(disk: Disk, flush: Callable[[int], None], tidy_at: int) -> Iterator[None]:
    """All SQLite of this process on the disk; its connections copy the WAL back when it has `tidy_at` pages."""

    def open_file(path: str, flags: int, mode: int = 0o777) -> int:
        fd = real_open(path, flags, mode)
        if path.endswith("-wal"):
            disk.open(path, fd)
            opened[fd] = path
        return fd

    def read(fd: int, size: int, at: int) -> bytes:
        return bytes(disk.seen[opened[fd]][at : at + size]) if fd in opened else real_read(fd, size, at)

    def write(fd: int, data: bytes, at: int) -> int:
        if fd not in opened:
            return real_write(fd, data, at)
        disk.write(opened[fd], at, bytes(data))
        return len(data)

    def close(fd: int) -> None:
        opened.pop(fd, None)
        real_close(fd)

    opened: dict[int, str] = {}
    real_open, real_read, real_write, real_close = os.open, os.pread, os.pwrite, os.close
    files = CacheFiles(disk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", open_file)
        patch.setattr(os, "pread", read)
        patch.setattr(os, "pwrite", write)
        patch.setattr(os, "close", close)
        patch.setattr(platform, "flush", flush)
        patch.setattr(apsw, "connection_hooks", [lambda db: db.wal_autocheckpoint(tidy_at)])
        patch.setattr(link, "CHECKPOINT_PAGES", tidy_at)
        try:
            yield
        finally:
            files.unregister()


def lost(run: Run, cut: Cut, home: Path, epoch: str) -> frozenset[int]:
    """Start the machine again: what was promised and is not there. What is there is whole, in order, and goes on."""
    home.mkdir(mode=0o700)
    for name, data in cut.files.items():
        (home / name).write_bytes(data)
    found = check_store("sqlite", home, epoch)
    assert found == run.committed[: len(found)]
    shutil.rmtree(home)
    return cut.promised - frozenset(found)


@pytest.mark.covers("S4")
@pytest.mark.parametrize("part", [0, *[pytest.param(part, marks=pytest.mark.more) for part in (1, 2, 3)]])
def test_power_cut(part: int, quick_path: Path) -> None:
    promised = 0
    for seed in range(part, SEEDS, 4):
        run = Run(quick_path / f"run{seed}", seed)
        for at, cut in enumerate(run.cuts):
            assert lost(run, cut, quick_path / "after", run.epoch) == frozenset(), f"seed {seed}, cut {at}"
            promised += len(cut.promised)
        shutil.rmtree(quick_path / f"run{seed}")
    assert promised > SEEDS, "nothing was at stake"


@pytest.mark.covers("S4")
@pytest.mark.parametrize("part", [0, *[pytest.param(part, marks=pytest.mark.more) for part in (1, 2, 3)]])
def test_power_cut_of_a_failing_disk(part: int, quick_path: Path) -> None:
    """The disk refuses writes now and then, before the power goes: what was acknowledged is there all the same."""
    for seed in range(part, SEEDS, 4):
        run = Run(quick_path / f"run{seed}", seed, refusals=0.05)
        for at, cut in enumerate(run.cuts):
            assert lost(run, cut, quick_path / "after", run.epoch) == frozenset(), f"seed {seed}, cut {at}"
        shutil.rmtree(quick_path / f"run{seed}")


def test_power_cut_without_flush_loses_promises(quick_path: Path) -> None:
    """The simulation bites: an engine that does not flush is found out."""
    losses = 0
    for seed in range(10):
        run = Run(quick_path / f"run{seed}", seed, flushes=False)
        for cut in run.cuts:
            losses += bool(lost(run, cut, quick_path / "after", epoch=""))
    assert losses >= 5
