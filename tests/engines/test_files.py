"""What the files engine promises beyond the contract: edits by hand, locks, a journal that starts anew."""

import errno
import fcntl
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from accord import errors, platform
from accord.store.contract import Change, Item
from accord.store.engines.files import Files, redo, writer
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact

if TYPE_CHECKING:
    from accord.store.contract import Content


def write(store: Store, id: str, text: str) -> None:
    transact(store, lambda tx: tx.put("doc", id, text.encode()))


def text(store: Store, id: str) -> str | None:
    item = transact(store, lambda tx: tx.get("doc", id))
    return item.value.decode() if item else None


def history(store: Store) -> list[Change]:
    with store.watch([""], since=0) as watch:
        return list(iter(lambda: watch.next(0), None))


@pytest.fixture
def store(tmp_path: Path) -> Files:
    return Files(str(tmp_path / "files"))


@pytest.fixture
def plan(tmp_path: Path, store: Files) -> Path:
    """A document that was committed once, as a person sees it."""
    write(store, "plan", "one\n")
    return tmp_path / "files" / "data" / "doc" / "plan.txt"


@pytest.mark.covers("S3")
@pytest.mark.parametrize("way", ["in place", "by another file"])
def test_a_newer_format_is_refused_on_writing_by_who_opened_the_store_before(
    store: Files, tmp_path: Path, way: str
) -> None:
    write(store, "plan", "one")
    label = tmp_path / "files" / "store"
    old = label.read_text()
    written = label if way == "in place" else tmp_path / "new"
    written.write_text(old.replace("format 1", "format 10"))
    written.replace(label)
    with pytest.raises(errors.StoreTooNew, match="Upgrade accord"):
        write(store, "plan", "two")
    label.write_text(old)
    assert text(store, "plan") == "one"
    write(store, "plan", "two")


@pytest.mark.covers("S3")
def test_threads_may_make_one_store_at_once(tmp_path: Path) -> None:
    made: list[Files] = []
    for n in range(5):
        root = str(tmp_path / f"store{n}")
        threads = [threading.Thread(target=lambda root=root: made.append(Files(root))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) == 40


def test_a_document_is_a_plain_file(plan: Path) -> None:
    assert plan.read_bytes() == b"one\n"


@pytest.mark.covers("S3")
def test_an_edit_by_hand_is_a_new_revision(store: Files, plan: Path) -> None:
    plan.write_text("one\ntwo\n")
    item = transact(store, lambda tx: tx.get("doc", "plan"))
    assert item == Item("plan", b"one\ntwo\n", 2)
    assert history(store)[-1] == Change(2, (("doc", "plan"),))
    assert text(store, "plan") == "one\ntwo\n"
    assert len(history(store)) == 2, "an edit is taken in once"


@pytest.mark.covers("S3")
def test_an_edit_by_hand_makes_a_work_that_read_the_old_text_run_again(store: Files, plan: Path) -> None:
    seen = []

    def work(tx: Transaction) -> None:
        item = tx.get("doc", "plan")
        assert item is not None
        seen.append(item.value)
        if len(seen) == 1:
            plan.write_text("by hand\n")
        tx.put("doc", "plan", item.value + b"by work\n")

    transact(store, work)
    assert seen == [b"one\n", b"by hand\n"]
    assert plan.read_text() == "by hand\nby work\n"


@pytest.mark.covers("S3")
def test_a_blind_write_over_an_edit_leaves_the_edit_a_revision(store: Files, plan: Path) -> None:
    plan.write_text("by hand\n")
    write(store, "plan", "by work\n")
    assert plan.read_text() == "by work\n"
    assert [change.revision for change in history(store)] == [1, 2, 3]
    assert b"by hand" in (plan.parents[2] / "journal").read_bytes()


@pytest.mark.covers("S3")
@pytest.mark.parametrize("replaced", [True, False])
def test_an_edit_saved_while_a_commit_is_laid_out_comes_after_it(
    store: Files, plan: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    link = redo._link_if_there

    def save_first(path: str, other: str) -> None:
        monkeypatch.undo()
        if replaced:
            (plan.parent / "draft").write_text("by hand\n")
            (plan.parent / "draft").rename(plan)
        else:
            plan.write_text("by hand\n")
        link(path, other)

    monkeypatch.setattr(redo, "_link_if_there", save_first)
    write(store, "plan", "by work\n")
    assert text(store, "plan") == "by hand\n" == plan.read_text()
    assert [change.revision for change in history(store)] == [1, 2, 3]
    assert not list(plan.parent.glob("*.old"))


@pytest.mark.covers("S3")
def test_an_edit_survives_the_finishing_of_a_commit_that_was_cut_short(
    tmp_path: Path, store: Files, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(path: str, other: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(redo, "_link_if_there", crash)
    with pytest.raises(KeyboardInterrupt):
        write(store, "plan", "by work\n")
    monkeypatch.undo()
    plan.write_text("by hand\n")
    again = Files(str(tmp_path / "files"))
    assert text(again, "plan") == "by hand\n"
    assert [change.revision for change in history(again)] == [1, 2, 3]


@pytest.mark.covers("S3")
def test_a_file_made_by_hand_is_taken_in_and_one_removed_is_deleted(store: Files, plan: Path) -> None:
    (plan.parent / "idea.txt").write_text("new\n")
    (plan.parent / "idea.txt~").write_text("an editor's backup")
    (plan.parent / "Not A Key.txt").write_text("left alone")
    assert [item.id for item in transact(store, lambda tx: tx.list("doc"))] == ["idea", "plan"]
    plan.unlink()
    assert text(store, "plan") is None
    assert [item.id for item in transact(store, lambda tx: tx.list("doc"))] == ["idea"]


@pytest.mark.covers("S3")
def test_edits_are_seen_inside_exclusive(store: Files, plan: Path) -> None:
    plan.write_text("by hand\n")
    with store.exclusive() as batch, batch.snapshot() as snapshot:
        assert [item.value for item in snapshot.list("doc")] == [b"by hand\n"]
        assert snapshot.head("doc").revision == 2


def test_a_record_that_was_tampered_with_is_damage(tmp_path: Path, store: Files) -> None:
    transact(store, lambda tx: tx.put("agents", "ann", b"{}"))
    path = tmp_path / "files" / "data" / "agents" / "ann.item"
    path.write_bytes(path.read_bytes().replace(b"{}", b"[]"))
    with pytest.raises(errors.StoreDamaged, match=r"ann\.item"):
        transact(store, lambda tx: tx.get("agents", "ann"))


@pytest.mark.covers("S3")
def test_the_kind_of_lock_is_fixed_when_the_store_is_made(tmp_path: Path) -> None:
    Files(str(tmp_path / "a"), "mkdir").close()
    assert "lock mkdir" in (tmp_path / "a" / "store").read_text()
    Files(str(tmp_path / "a")).close()
    with pytest.raises(errors.NotAStore, match="made with the lock mkdir"):
        Files(str(tmp_path / "a"), "flock")
    with pytest.raises(errors.NotAStore, match="no kind of lock"):
        Files(str(tmp_path / "b"), "hope")


@pytest.mark.covers("S3")
def test_where_flock_does_not_work_the_lock_is_mkdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    store = Files(str(tmp_path / "files"))
    write(store, "plan", "one\n")
    assert "lock mkdir" in (tmp_path / "files" / "store").read_text()


def test_a_folder_with_other_things_is_not_made_a_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(errors.NotAStore, match=r"thesis\.tex"):
        Files(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.covers("S4")
def test_nothing_is_lost_when_the_journal_starts_anew(
    tmp_path: Path, store: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RESTART_EVERY", 5)
    other = Files(str(tmp_path / "files"))
    for number in range(1, 24):
        transact((store, other)[number % 2], lambda tx, n=number: tx.append("log", b"%d" % n))  # type: ignore[misc]
    assert [change.revision for change in history(other)] == list(range(1, 24))
    with other.snapshot() as snapshot:
        assert [item.value for item in snapshot.list("log")] == [b"%d" % number for number in range(1, 24)]
    assert len(list((tmp_path / "files" / "log").iterdir())) == 4


def test_another_boot_lays_the_journal_out_anew(
    tmp_path: Path, store: Files, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transact(store, lambda tx: tx.append("log", b"kept"))
    shutil.rmtree(tmp_path / "files" / "data" / "log")
    monkeypatch.setattr(platform, "_boot_id", "another-boot")
    with Files(str(tmp_path / "files")).snapshot() as snapshot:
        assert [item.value for item in snapshot.list("log")] == [b"kept"]
        assert snapshot.revision == 2


def test_a_load_that_was_cut_short_leaves_the_store_empty(tmp_path: Path, store: Files) -> None:
    def contents() -> "Iterator[Content]":
        yield "agents", 0, [Item("ann", b"{}", 1)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.load(contents())
    again = Files(str(tmp_path / "files"))
    with again.snapshot() as snapshot:
        assert (snapshot.revision, snapshot.collections()) == (0, [])
    again.load([("agents", 0, [Item("ann", b"{}", 1)])])
    with again.snapshot() as snapshot:
        assert snapshot.get("agents", "ann") == Item("ann", b"{}", 1)


def test_a_load_refuses_to_mix_with_files_of_a_person(tmp_path: Path, store: Files) -> None:
    folder = tmp_path / "files" / "data" / "doc"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(errors.StoreNotEmpty):
        store.load([])
    assert (folder / "mine.txt").exists()


@pytest.mark.parametrize("crowded", [3, 50])
def test_large_collections_are_split_and_stay_in_order(
    tmp_path: Path, store: Files, monkeypatch: pytest.MonkeyPatch, crowded: int
) -> None:
    from accord.store.engines.files import crowd

    monkeypatch.setattr(crowd, "CROWDED", crowded)
    monkeypatch.setattr(redo, "LOOK_EVERY", 1)
    ids = [f"{a}{b}{c}" for a in "ab-" for b in "0z" for c in ("", "x", "xy", "xyz", "-", "_")]
    for id in ids:
        transact(store, lambda tx, id=id: tx.put("c", id, id.encode()))  # type: ignore[misc]
    for id in ids[::3]:
        transact(store, lambda tx, id=id: tx.delete("c", id))  # type: ignore[misc]
    left = sorted(set(ids) - set(ids[::3]))
    with store.snapshot() as snapshot:
        assert [item.id for item in snapshot.list("c")] == left
        assert [item.id for item in snapshot.list("c", reverse=True)] == left[::-1]
        for place, id in enumerate(left):
            assert [item.id for item in snapshot.list("c", after=id, limit=3)] == left[place + 1 : place + 4]
            assert [item.id for item in snapshot.list("c", after=id, limit=3, reverse=True)] == left[:place][-3:][::-1]
            assert snapshot.get("c", id) is not None
    assert (len(list((tmp_path / "files" / "data" / "c").glob("+*"))) > 0) == (crowded == 3)


def test_a_split_that_was_cut_short_is_finished(tmp_path: Path, store: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    from accord.store.engines.files import crowd

    monkeypatch.setattr(crowd, "CROWDED", 3)
    monkeypatch.setattr(redo, "LOOK_EVERY", 4)
    rename = os.rename
    moved: list[str] = []

    def crash(source: str, target: str) -> None:
        if "/+" in target:
            if moved:
                raise KeyboardInterrupt
            moved.append(target)
        rename(source, target)

    monkeypatch.setattr(os, "rename", crash)
    for number in range(3):
        transact(store, lambda tx, n=number: tx.put("c", f"item-{n}", b""))  # type: ignore[misc]
    with pytest.raises(KeyboardInterrupt):
        transact(store, lambda tx: tx.put("c", "item-3", b""))
    monkeypatch.undo()
    assert moved
    with Files(str(tmp_path / "files")).snapshot() as snapshot:
        assert [item.id for item in snapshot.list("c")] == [f"item-{number}" for number in range(4)]
        assert all(snapshot.get("c", f"item-{number}") for number in range(4))


def few_logs(monkeypatch: pytest.MonkeyPatch, store: Files, commits: int) -> None:
    """So many commits, of which only the changes of the last few journals are kept."""
    monkeypatch.setattr(writer, "RESTART_EVERY", 10)
    monkeypatch.setattr(writer, "KEPT_REVISIONS", 10)
    for number in range(commits):
        transact(store, lambda tx, n=number: tx.put("c", "a", b"%d" % n))  # type: ignore[misc]


def seen_since(store: Files, revision: int) -> list[int]:
    with store.watch([""], revision) as watch:
        return [change.revision for change in iter(lambda: watch.next(0), None)]


def test_changes_stay_when_the_journal_cannot_start_anew(store: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    few_logs(monkeypatch, store, 29)

    def fail(self: writer.Writer, epoch: str, base: int, floor: int) -> None:
        raise OSError(errno.EIO, "on purpose")

    with monkeypatch.context() as broken:
        broken.setattr(writer.Writer, "_new_journal", fail)
        transact(store, lambda tx: tx.put("c", "a", b"last"))
    assert seen_since(store, 10) == list(range(11, 31))
    transact(store, lambda tx: tx.put("c", "a", b"more"))
    assert seen_since(store, 20) == list(range(21, 32))
    with pytest.raises(errors.HistoryGone):
        store.watch([""], 10)


def test_a_log_that_cannot_be_removed_is_removed_later(
    tmp_path: Path, store: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = os.unlink

    def fail(path: str) -> None:
        if "/log/" in path:
            raise OSError(errno.EIO, "on purpose")
        unlink(path)

    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", fail)
        few_logs(monkeypatch, store, 40)
    assert seen_since(store, 30) == list(range(31, 41))
    with pytest.raises(errors.HistoryGone):
        store.watch([""], 15)
    few_logs(monkeypatch, store, 10)
    assert [path.name for path in (tmp_path / "files" / "log").iterdir()] == [f"{41:016d}"]


@pytest.mark.parametrize("missing", [1, 11])
def test_a_log_that_is_missing_is_told(
    tmp_path: Path, store: Files, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    monkeypatch.setattr(writer, "RESTART_EVERY", 10)
    for number in range(35):
        transact(store, lambda tx, n=number: tx.put("c", "a", b"%d" % n))  # type: ignore[misc]
    with store.watch([""], missing - 1) as watch:
        (tmp_path / "files" / "log" / f"{missing:016d}").unlink()
        with pytest.raises(errors.HistoryGone):
            watch.next(0)
    with pytest.raises(errors.HistoryGone):
        store.watch([""], missing + 4)
    assert seen_since(store, 20) == list(range(21, 36))


def test_a_document_named_by_hand_as_a_number_is_left_alone(store: Files, plan: Path) -> None:
    write(store, "zeta", "z\n")
    (plan.parent / "2026111617012800.txt").write_text("mine")
    for limit in (1, 2, 100):
        expected = ["plan", "zeta"][:limit]
        with store.snapshot() as snapshot:
            assert [item.id for item in snapshot.list("doc", limit=limit)] == expected
        with store.exclusive() as batch, batch.snapshot() as snapshot:
            assert [item.id for item in snapshot.list("doc", limit=limit)] == expected
    assert (plan.parent / "2026111617012800.txt").read_text() == "mine"
