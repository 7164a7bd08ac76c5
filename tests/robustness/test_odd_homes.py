"""Homes in which there is no store to be had: each gets an error of its own, and what lies there is left as it is."""

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from accord import errors, platform
from accord.store.open import open_store
from accord.store.transaction import transact
from tests.robustness.disks import need_root, small_disk
from tests.robustness.homes import (
    PYTHON,
    WORKER_ENV,
    all_items,
    applied,
    check_store,
    contents,
    failures,
    history,
    prepare,
    url_in,
)
from tests.robustness.worker import NOBODY, change

Make = Callable[[Path], object]

DB = "store.db"


def sql(home: Path, statements: str) -> None:
    with closing(apsw.Connection(str(home / DB))) as db:
        db.execute(statements)


def in_one_file(home: Path) -> Path:
    """A sqlite store of some changes, all of them in the database file."""
    prepare("sqlite", home, tuple(range(1, 30)))
    sql(home, "pragma wal_checkpoint(truncate)")
    return home / DB


def sqlite(home: Path) -> Path:
    prepare("sqlite", home, (1, 2, 3))
    return home / DB


def files(home: Path) -> Path:
    prepare("files", home, (1, 2, 3))
    return home / "store"


def a_file(path: Path) -> None:
    path.parent.mkdir()
    path.touch()


def overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def replace(path: Path, by: Callable[[Path], object]) -> None:
    path.unlink()
    by(path)


# Of each engine: what is odd, how to make it, the error, and a word of its text.
ODD: list[tuple[str, str, Make, type[errors.AccordError], str]] = [
    ("sqlite", "newer format", lambda home: sql(sqlite(home).parent, "update meta set format = 99"),
     errors.StoreTooNew, "Upgrade accord"),
    ("sqlite", "older format", lambda home: sql(sqlite(home).parent, "update meta set format = 1"),
     errors.NotAStore, "no released accord"),
    ("sqlite", "text", lambda home: (home / DB).write_text("dear diary\n" * 500), errors.NotAStore, "no SQLite"),
    ("sqlite", "short text", lambda home: (home / DB).write_text("x"), errors.NotAStore, DB),
    ("sqlite", "empty file", lambda home: (home / DB).touch(), errors.NotAStore, DB),
    ("sqlite", "another database", lambda home: sql(home, "create table mine(x)"), errors.NotAStore, "something else"),
    ("sqlite", "another database with meta", lambda home: sql(home, "create table meta(x)"),
     errors.NotAStore, "something else"),
    ("sqlite", "store without its row", lambda home: sql(sqlite(home).parent, "delete from meta"),
     errors.NotAStore, DB),
    ("sqlite", "folder", lambda home: (home / DB).mkdir(), errors.NotAStore, "not a file"),
    ("sqlite", "fifo", lambda home: os.mkfifo(home / DB), errors.NotAStore, "not a file"),
    ("sqlite", "dangling link", lambda home: (home / DB).symlink_to(home / "gone"), errors.AccordError, DB),
    ("sqlite", "damaged schema", lambda home: overwrite(in_one_file(home), 100, bytes(range(100))),
     errors.StoreDamaged, "backup"),
    ("sqlite", "damaged middle", lambda home: overwrite(in_one_file(home), 2048 * 4, bytes(range(100))),
     errors.StoreDamaged, "backup"),
    ("sqlite", "cut off", lambda home: os.truncate(in_one_file(home), 5000), errors.StoreDamaged, "backup"),
    ("sqlite", "gate is a folder", lambda home: replace(sqlite(home).with_name(f"{DB}-gate"), Path.mkdir),
     errors.DataDirError, f"{DB}-gate"),
    ("sqlite", "bell is a link", lambda home: replace(
        sqlite(home).with_name(f"{DB}-bell"), lambda path: path.symlink_to("/etc/passwd")),
     errors.DataDirError, "symbolic link"),
    ("files", "newer format", lambda home: overwrite(files(home) / "store", 0, b"accord store\nformat 2"),
     errors.StoreTooNew, "Upgrade accord"),
    ("files", "unknown lock", lambda home: (files(home) / "store").write_text("accord store\nformat 1\nlock oracle\n"),
     errors.AccordError, "oracle"),
    ("files", "text", lambda home: (files(home) / "store").write_text("dear diary"), errors.NotAStore, "what it is"),
    ("files", "empty file", lambda home: os.truncate(files(home) / "store", 0), errors.NotAStore, "say what it is"),
    ("files", "a file, no folder", lambda home: (home / "store").touch(), errors.DataDirError, "not a folder"),
    ("files", "a folder of other things", lambda home: a_file(home / "store" / "thesis.tex"),
     errors.NotAStore, "thesis.tex"),
    ("files", "dangling link", lambda home: (home / "store").symlink_to(home / "gone"),
     errors.DataDirError, "not a folder"),
    ("files", "no journal", lambda home: (files(home) / "journal").unlink(), errors.AccordError, "journal"),
    ("files", "empty journal", lambda home: os.truncate(files(home) / "journal", 0), errors.StoreDamaged, "backup"),
    ("files", "journal of text", lambda home: overwrite(files(home) / "journal", 25, b"x y\n"),
     errors.StoreDamaged, "backup"),
    ("files", "damaged item", lambda home: overwrite(
        files(home) / "data/mail/ada/.numbers/0000000000000/0000000000000001.item", 3, b"?"),
     errors.StoreDamaged, "checksum"),
    ("files", "item is a folder", lambda home: replace(
        files(home) / "data/mail/ada/.numbers/0000000000000/0000000000000001.item", Path.mkdir),
     errors.AccordError, "item"),
    ("files", "damaged head", lambda home: (files(home) / "data/mail/ada/.head").write_text("zzz"),
     errors.StoreDamaged, "backup"),
    ("files", "document is a folder", lambda home: replace(files(home) / "data/doc/notes/today.txt", Path.mkdir),
     errors.AccordError, "today"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "make", "error", "word"), [pytest.param(*row[:1], *row[2:], id="-".join(row[:2])) for row in ODD]
)
def test_an_odd_home(engine: str, make: Make, error: type[errors.AccordError], word: str, tmp_path: Path) -> None:
    make(tmp_path)
    before = picture(tmp_path)
    with pytest.raises(error, match=word) as caught, closing(open_store(url_in(engine, tmp_path))) as store:
        contents(store)
    assert str(tmp_path) in str(caught.value)
    after = picture(tmp_path)
    assert {path: after[path] for path in before} == before
    if engine == "sqlite" and not any(path.name.endswith("-gate") for path in before):
        assert after == before, "nothing is put beside what is no store"


def picture(home: Path) -> dict[Path, object]:
    """What lies there, but for what SQLite keeps of a database for a while."""
    return {
        path: path.read_bytes() if path.is_file() else path.is_symlink()
        for path in home.rglob("*")
        if not path.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_home_that_is_a_file(engine: str, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("mine")
    for home in (tmp_path / "home", tmp_path / "home" / "below"):
        with pytest.raises(errors.DataDirError, match="is not a folder"):
            open_store(url_in(engine, home))


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_link_to_a_store_is_that_store(engine: str, tmp_path: Path) -> None:
    prepare(engine, tmp_path / "real", (1, 2))
    place = url_in(engine, tmp_path / "real").partition(":")[2]
    (tmp_path / "link").symlink_to(place)
    with closing(open_store(f"{engine}:{tmp_path / 'link'}")) as store:
        transact(store, change(3))
    assert check_store(engine, tmp_path / "real") == (1, 2, 3)


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_bell_of_rubbish_is_no_bell(engine: str, tmp_path: Path) -> None:
    for rubbish in (b"\xff\xfe\xfd\n", b"some words\n", b"\xff \xfe", bytes(34), b""):
        home = tmp_path / rubbish.hex()
        prepare(engine, home, (1, 2))
        bell = home / {"sqlite": "store.db-bell", "files": "store/bell"}[engine]
        bell.write_bytes(rubbish)
        assert check_store(engine, home) == (1, 2)


def test_a_database_that_another_program_took_out_of_wal_mode(tmp_path: Path) -> None:
    sqlite(tmp_path)
    sql(tmp_path, "pragma journal_mode = delete")
    assert check_store("sqlite", tmp_path) == (1, 2, 3)


def test_a_damaged_record_is_not_taken_for_the_journals_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the record of a commit that is damaged lie others, which were acknowledged."""
    prepare("files", tmp_path, (1, 2, 3, 4, 5))
    journal = tmp_path / "store" / "journal"
    text = journal.read_bytes()
    overwrite(journal, text.index(b"change 3\n"), b"?")
    monkeypatch.setattr(platform, "boot_id", lambda: "the next boot, which reads the journal")
    with pytest.raises(errors.StoreDamaged, match="backup"), closing(open_store(url_in("files", tmp_path))) as store:
        contents(store)
    assert len(journal.read_bytes()) == len(text)


def test_a_torn_record_may_hold_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that a power cut tore, whose value looks like records of the journal."""
    home, later = tmp_path / "home", tmp_path / "later"
    prepare("files", home, (1, 2))
    shutil.copytree(home, later)
    with closing(open_store(url_in("files", later))) as store:
        transact(store, lambda tx: tx.put("mail/ada", "letter", b"commit 99 0 00000000\n" * 10))
    record = (later / "store" / "journal").read_bytes()[(home / "store" / "journal").stat().st_size :]
    with open(home / "store" / "journal", "ab") as journal:
        journal.write(record[:-1])
    monkeypatch.setattr(platform, "boot_id", lambda: "the boot after the power cut")
    assert check_store("files", home) == (1, 2)


@pytest.fixture
def public_path(quick_path: Path) -> Path:
    """A folder that other users can get to."""
    quick_path.chmod(0o755)
    return quick_path


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_folder_that_one_may_not_write(engine: str, public_path: Path) -> None:
    need_root()
    home = public_path / "home"
    prepare(engine, home, (1, 2))
    home.chmod(0o755)
    assert "may not write" in as_nobody(engine, home)
    assert check_store(engine, home) == (1, 2)


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_folder_in_which_one_may_not_make_a_home(engine: str, public_path: Path) -> None:
    need_root()
    assert "may not write" in as_nobody(engine, public_path / "home")


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_store_of_another_user(engine: str, public_path: Path) -> None:
    """The folder may be written by all, and the files in it belong to root."""
    need_root()
    home = public_path / "home"
    prepare(engine, home, (1, 2))
    for folder in (home, *[path for path in home.rglob("*") if path.is_dir()]):
        folder.chmod(0o777)
    assert str(home) in as_nobody(engine, home)
    assert check_store(engine, home) == (1, 2)


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_read_only_file_system(engine: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        home = disk.path / "home"
        prepare(engine, home, (1, 2))
        disk.mount_again("ro")
        for place in (home, disk.path / "another"):
            with pytest.raises(errors.DataDirError, match="read-only file system"):
                open_store(url_in(engine, place))
        disk.mount_again("rw")
        assert check_store(engine, home) == (1, 2)


@pytest.mark.covers("S1", "T3.6")
def test_a_database_that_may_only_be_read_is_refused_by_its_name(quick_path: Path) -> None:
    need_root()
    home = quick_path / "home"
    prepare("sqlite", home, (1,))
    for path in (quick_path, home, *home.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    (home / DB).chmod(0o400)
    said = as_nobody("sqlite", home)
    assert f"{home / DB} cannot be used: this user may not write to that file" in said
    (home / DB).chmod(0o600)
    assert check_store("sqlite", home) == (1,)


def as_nobody(engine: str, home: Path) -> str:
    """What a worker without any rights is told when it opens the store: a DATA_DIR_ERROR."""
    module = f"accord.store.engines.{engine}"
    program = f"import {module}; from tests.robustness.worker import be_nobody, main; be_nobody(); main()"
    command = [*PYTHON, program, url_in(engine, home), "1", "1"]
    done = subprocess.run(command, env=WORKER_ENV, cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert failures(done.stdout) == {0: "DATA_DIR_ERROR"}, done.stdout
    return done.stdout


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_store_put_back_from_a_copy_has_another_history(engine: str, tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    epoch = prepare(engine, home, (1, 2))
    shutil.copytree(home, copy)
    with closing(open_store(url_in(engine, home))) as store:
        for n in (3, 4):
            transact(store, change(n))
    put_back(copy, home)
    with closing(open_store(url_in(engine, home))) as store:
        with store.snapshot() as snapshot:
            assert snapshot.epoch != epoch
        assert applied(store) == (1, 2)
        for since in (0, 2, 4):
            with pytest.raises(errors.HistoryGone):
                store.watch([""], since, epoch)
        transact(store, change(5))
        assert [item.value for item in all_items(store, "mail/ada")][-2:] == [b"5", b"-5"]
        assert [found.revision for found in history(store)] == [1, 2, 3]


def put_back(copy: Path, home: Path) -> None:
    """The store as it was; the bell is newer than that."""
    for path in sorted(home.rglob("*"), reverse=True):
        if path.is_dir():
            continue
        if not path.name.endswith("bell"):
            path.unlink()
    for path in copy.rglob("*"):
        if path.is_file() and not path.name.endswith("bell"):
            shutil.copy2(path, home / path.relative_to(copy))


FORK = """
import os, sys
from accord import errors
from accord.store.open import open_store
from accord.store.transaction import transact
from tests.robustness.worker import change, say
store = open_store(sys.argv[1])
transact(store, change(1))
def enter():
    with store.exclusive():
        pass
uses = {
    "snapshot": store.snapshot, "commit": lambda: store.commit([], []), "watch": lambda: store.watch([""], 0),
    "sync": store.sync, "load": lambda: store.load([]), "exclusive": enter,
    "transact": lambda: transact(store, change(2)),
}
if os.fork() == 0:
    for name, use in uses.items():
        try:
            use()
            say(f"{name} worked")
        except errors.StoreForked as error:
            assert str(os.getppid()) in str(error) and str(os.getpid()) in str(error)
    os._exit(0)
os.wait()
transact(store, change(3))
say("acknowledged 3")
"""


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_store_is_refused_to_a_forked_child(engine: str, tmp_path: Path) -> None:
    command = [*PYTHON, FORK, url_in(engine, tmp_path)]
    done = subprocess.run(command, env=WORKER_ENV, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("acknowledged 3\n", "")
    assert check_store(engine, tmp_path) == (1, 3)
