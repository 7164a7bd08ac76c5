"""`accord doc import` and `accord doc export`: files made documents, and documents files, and nothing else touched."""

import os
import re
import socket
from pathlib import Path

import pytest

from accord.cli import tree
from accord.services.documents import MAX_BYTES
from tests.cli.users import User, contents

pytestmark = pytest.mark.covers("S5")


WITH_HUB = pytest.mark.parametrize("has_hub", [False, True], ids=["alone", "hub"], indirect=True)


@pytest.fixture
def notes(user: User) -> Path:
    """A folder with files of text."""
    folder = user.work / "notes"
    (folder / "deep/er").mkdir(parents=True)
    (folder / "a.md").write_text("a\n")
    (folder / "deep/er/b c").write_text("Grüße\r\n")
    (folder / "empty").touch()
    (folder / ".hidden").write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("x")
    user.json("register", "ann")
    return folder


def documents(user: User) -> dict[str, str]:
    names = [one["name"] for one in user.json("doc", "list")["documents"]]
    return {name: user.json("doc", "read", name)["text"] for name in names}


TEXTS = {"a.md": "a\n", "deep/er/b c": "Grüße\r\n", "empty": ""}


@WITH_HUB
def test_there_and_back_again(user: User, notes: Path) -> None:
    done = user.run("doc", "import", "notes")
    assert (done.code, done.err) == (0, "")
    assert "deep/er/b c  revision 1  notes/deep/er/b c\n" in done.out
    assert documents(user) == TEXTS
    assert user.json("doc", "export", "out")["failed"] == []
    exported = contents(user.work / "out")
    assert {name: data.decode() for name, data in exported.items() if data is not None} == TEXTS
    assert [one["revision"] for one in user.json("doc", "import", "out")["documents"]] == [1, 1, 1]


def test_a_prefix(user: User, notes: Path) -> None:
    user.json("doc", "write", "other", "--text", "x")
    user.json("doc", "import", "notes/a.md", "notes/deep", "--prefix", "memory/")
    assert set(documents(user)) == {"memory/a.md", "memory/er/b c", "other"}
    assert user.run("doc", "export", str(user.folder / "out"), "--prefix", "memory/").code == 0
    assert set(contents(user.folder / "out")) == {"memory", "memory/a.md", "memory/er", "memory/er/b c"}


def test_what_was_there_stays_in_the_history(user: User, notes: Path) -> None:
    user.json("doc", "write", "a.md", "--text", "before")
    user.json("doc", "import", "notes")
    assert user.json("doc", "read", "a.md", "--revision", "1")["text"] == "before"


def test_what_is_no_text_is_named_and_the_rest_is_taken(user: User, notes: Path) -> None:
    (user.folder / "secret").write_text("secret")
    (notes / "link").symlink_to(user.folder / "secret")
    (notes / "inside").symlink_to(notes / "a.md")
    (notes / "folder").symlink_to(user.folder, target_is_directory=True)
    (notes / "latin1").write_bytes(b"caf\xe9")
    (notes / "zero").write_bytes(b"a\0b")
    (notes / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    with open(notes / "huge", "wb") as file:
        os.truncate(file.fileno(), 60_000_000_000)
    os.mkfifo(notes / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(os.path.relpath(notes / "socket"))
    (notes / "new\nline").write_text("x")
    os.close(os.open(os.fsencode(notes) + b"/\xff", os.O_CREAT))
    bad = {"link", "inside", "folder", "latin1", "zero", "large", "huge", "pipe", "socket", "new\nline", "\\udcff"}
    for json in (False, True):
        done = user.run(*["--json"] * json, "doc", "import", "notes", "missing")
        assert done.code == 1
        if json:
            assert {Path(one["path"]).name for one in done.json["failed"]} == {*bad, "missing"}
            assert {one["name"] for one in done.json["documents"]} == set(TEXTS)
        else:
            assert "accord: notes/link: link is a link\n" in done.err
            assert "notes/new\nline" not in done.out
    assert documents(user) == TEXTS


def test_folders_that_cannot_be_read(user: User, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that became a link in the moment before, and some that are too deep for names."""
    (notes / "deep/er" / "/".join("d" * 150)).mkdir(parents=True)
    look = os.lstat

    def swap(name: str, dir_fd: "int | None" = None) -> os.stat_result:
        found = look(name, dir_fd=dir_fd)
        if name == "z" and not (notes / ".z").exists():
            (notes / "z").rename(notes / ".z")
            (notes / "z").symlink_to(user.folder)
        return found

    (notes / "z").mkdir()
    monkeypatch.setattr(os, "lstat", swap)
    failed: dict[str, str] = {}
    found = [file.relative for file in tree.find("notes", str(notes), failed.__setitem__)]
    assert found == list(TEXTS)
    assert "too long" in failed.pop(next(iter(failed)))
    assert failed.keys() == {"notes/z"}


def test_a_link_that_is_named_is_followed(user: User, notes: Path) -> None:
    """Whoever names it means it."""
    (user.work / "to-file").symlink_to(notes / "a.md")
    (user.work / "to-folder").symlink_to(notes)
    assert user.json("doc", "import", "to-file", "to-folder")["failed"] == []
    assert documents(user) == {"to-file": "a\n", **TEXTS}


def test_a_file_with_another_text_is_left_alone(user: User, notes: Path) -> None:
    user.json("doc", "import", "notes")
    out = user.work / "out"
    out.mkdir()
    (out / "a.md").write_text("mine")
    (out / "empty").symlink_to(user.folder / "elsewhere")
    (out / "stays").write_text("mine")
    done = user.run("doc", "export", "out")
    assert done.code == 1
    assert "out/a.md: another file is there" in done.err
    assert "out/empty: empty is a link" in done.err
    assert (out / "a.md").read_text() == "mine"
    assert (out / "deep/er/b c").exists()
    assert user.run("doc", "export", "out", "--force").code == 0
    assert (out / "a.md").read_text() == "a\n"
    assert not (out / "empty").is_symlink()
    assert not (user.folder / "elsewhere").exists()
    assert (out / "stays").read_text() == "mine"
    assert not [name for name in os.listdir(out) if name.startswith(".")]


def test_a_file_that_comes_in_the_last_moment_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = os.fsync

    def make_it_first(fd: int) -> None:
        flush(fd)
        (tmp_path / "plan").write_text("mine")

    monkeypatch.setattr(os, "fsync", make_it_first)
    with pytest.raises(FileExistsError):
        tree.put(str(tmp_path), "plan", "theirs", force=False)
    assert contents(tmp_path) == {"plan": b"mine"}


def test_nothing_is_written_outside_of_the_folder(user: User, notes: Path) -> None:
    user.json("doc", "import", "notes")
    (user.folder / "elsewhere").mkdir()
    (user.work / "out").mkdir()
    (user.work / "out/deep").symlink_to(user.folder / "elsewhere")
    for force in ([], ["--force"]):
        done = user.run("doc", "export", "out", *force)
        assert (done.code, "out/deep/er/b c: deep is a link" in done.err) == (1, True)
    assert list((user.folder / "elsewhere").iterdir()) == []
    assert (user.work / "out/a.md").read_text() == "a\n"


def test_names_that_cannot_be_files_at_once(user: User, notes: Path) -> None:
    for name in ("a", "a/b", "z" * 200, "語" * 90):
        user.json("doc", "write", name, "--text", name)
    done = user.run("--json", "doc", "export", "out")
    assert done.code == 1
    assert [one["path"] for one in done.json["failed"]] == ["out/a/b", f"out/{'語' * 90}"]
    assert (user.work / "out/a").read_text() == "a"


def test_what_is_missing(user: User, notes: Path) -> None:
    assert user.run("doc", "import").error == "USAGE"
    assert user.run("doc", "export").error == "USAGE"
    assert user.run("doc", "import", "notes", "").error == "USAGE"
    assert user.run("doc", "export", "").error == "USAGE"
    done = user.run("doc", "export", "out", "--prefix", "nothing")
    assert (done.code, done.out) == (0, "nothing done\n")
    assert user.run("doc", "export", "notes/a.md/x").code == 0  # no document, and so no file


@WITH_HUB
def test_a_text_from_a_pipe_outlives_a_conflict(user: User) -> None:
    for text in ("one", "two"):
        user.json("doc", "write", "plan", "--text", text)
    for words in (["-"], ["--file=-"]):
        done = user.run("doc", "write", "plan", "--base=1", *words, stdin=b"m\xc3\xbcne\r\n")
        assert done.error == "CONFLICT"
        found = re.search(r"Your text is kept in (\S+); theirs is shown by: accord (.*) \[CONFLICT\]", done.err)
        assert found, done.err
        kept = Path(found[1])
        assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (b"m\xc3\xbcne\r\n", 0o600)
        kept.unlink()
        assert user.run(*found[2].split()).out == "two"
    details = user.run("--json", "doc", "write", "plan", "--base=1", "-", stdin=b"mine").json["details"]
    assert (details["mine"], details["text"], details["base_text"]) == ("mine", "two", "one")
    assert "kept" not in user.run("doc", "write", "plan", "--base=1", "--text=mine").err  # whoever wrote it has it
    user.json("doc", "rm", "plan")
    done = user.run("doc", "write", "plan", "--base=1", "-", stdin=b"mine")
    assert "theirs is removed" in done.err
    Path(re.findall(r"kept in (\S+);", done.err)[0]).unlink()
