"""A full disk: changes are refused whole, reading goes on, and writing too as soon as there is room."""

import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from accord import errors
from accord.store.engines.files import writer as files_writer
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import transact
from tests.need import need
from tests.robustness.disks import small_disk
from tests.robustness.homes import (
    WORKER,
    WORKER_ENV,
    acknowledged,
    applied,
    check_store,
    contents,
    expected,
    failures,
    history,
    prepare,
    url_in,
)
from tests.robustness.test_crash_points import nearly_full_log
from tests.robustness.worker import RESTART_EVERY, change

engines = pytest.mark.parametrize("engine", ["sqlite", "files"])


@pytest.mark.covers("S4")
@engines
def test_reading_goes_on_and_writing_when_there_is_room(engine: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "2m") as disk:
        home = disk.path / "home"
        with closing(open_store(url_in(engine, home))) as store:
            transact(store, change(1))
            disk.fill()
            for n in (2, 3, 4):
                with pytest.raises(errors.StorageFull):
                    transact(store, change(n))
            assert (contents(store), history(store)) == expected((1,))
            in_another = work(engine, home, 2, 3)
            assert in_another.startswith("opened\n")
            assert failures(in_another) == {2: "STORAGE_FULL", 3: "STORAGE_FULL"}
            disk.free()
            transact(store, change(5))
            assert (contents(store), history(store)) == expected((1, 5))
        assert check_store(engine, home) == (1, 5)


@pytest.mark.covers("S4")
@engines
def test_a_disk_that_is_filled_by_changes(engine: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        home = disk.path / "home"
        with closing(open_store(url_in(engine, home))) as store:
            kept = change_until_full(store)
            assert kept > 3
            assert applied(store) == tuple(range(1, kept + 1))
            disk.mount_again("size=2m")
            transact(store, change(kept + 1))
        assert check_store(engine, home) == tuple(range(1, kept + 2))


@pytest.mark.covers("S4")
@engines
def test_a_disk_that_fills_up_while_the_log_is_tidied(
    engine: str, tmp_path: Path, quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_writer, "RESTART_EVERY", RESTART_EVERY)
    before = nearly_full_log(engine, quick_path / "prepared")
    with small_disk(tmp_path / "disk", "8m") as disk:
        home = disk.path / "home"
        for pages in range(60):
            shutil.copytree(quick_path / "prepared", home)
            with closing(open_store(url_in(engine, home))) as store:
                disk.fill(but=pages)
                kept = [n for n in range(before + 1, before + 6) if is_taken(store, n)]
                disk.free()
            found = check_store(engine, home)
            assert set(found) >= {*range(1, before + 1), *kept}, f"room for {pages} pages"
            shutil.rmtree(home)


@engines
def test_a_store_cannot_be_made_on_a_full_disk_and_can_later(engine: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        home = disk.path / "home"
        for pages in range(30):
            disk.fill(but=pages)
            failed = failures(work(engine, home, 1, 0))
            assert failed in ({}, {0: "STORAGE_FULL"}), f"room for {pages} pages"
            disk.free()
            assert check_store(engine, home) == ()
            shutil.rmtree(home)
        assert not failed, "there was never room enough"


def test_a_full_disk_without_room_for_shared_memory(tmp_path: Path) -> None:
    """Another program that used the database removed what SQLite needs room for even to read."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        home = disk.path / "home"
        prepare("sqlite", home, (1, 2))
        (home / "store.db-shm").unlink()
        disk.fill()
        with pytest.raises(errors.StorageFull):
            open_store(url_in("sqlite", home))
        disk.free()
        assert check_store("sqlite", home) == (1, 2)


@pytest.mark.covers("S4")
@engines
def test_a_limit_on_the_size_of_files(engine: str, tmp_path: Path) -> None:
    prepare(engine, tmp_path, (1, 2, 3))
    largest = max(path.stat().st_size for path in tmp_path.rglob("*") if not path.name.endswith("-shm"))
    said = work(engine, tmp_path, 4, 40, need("prlimit"), f"--fsize={largest + 10_000}")
    promised, failed = acknowledged(said), failures(said)
    assert failed, "the limit was not met"
    assert set(failed.values()) <= {"STORAGE_FULL", "STORAGE_FAILING", "OUTCOME_UNKNOWN"}
    found = check_store(engine, tmp_path)
    assert set(found) >= {1, 2, 3, *promised}


def work(engine: str, home: Path, first: int, last: int, *before: str) -> str:
    """What a worker says; it fails in accord's own words only."""
    command = [*before, *WORKER, url_in(engine, home), str(first), str(last)]
    done = subprocess.run(command, env=WORKER_ENV, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def change_until_full(store: Store) -> int:
    """How many changes there was room for."""
    n = 0
    while is_taken(store, n + 1):
        n += 1
    return n


def is_taken(store: Store, n: int) -> bool:
    try:
        transact(store, change(n))
    except errors.StorageFull:
        return False
    return True
