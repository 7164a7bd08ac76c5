"""Documents on the files engine, which people change with an editor: each edit is a version, and nobody's is lost."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.services import documents
from accord.services.documents import MAX_BYTES
from accord.store.transaction import Transaction
from tests.hubs import Hub
from tests.operations.people import refusal
from tests.operations.test_documents import read, versions, write
from tests.operations.ways import CommandLine, Python, Unix, Way

pytestmark = pytest.mark.covers("S5", "S3")


@pytest.fixture(params=["python", "commandline", "hub"])
def files(request: pytest.FixtureRequest, tmp_path: Path, hub_of: Callable[[str], Hub]) -> Way:
    url = f"files:{tmp_path}/store"
    if request.param == "hub":
        return Unix(url, hub_of(url))
    return Python(url) if request.param == "python" else CommandLine(url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the documents are, as files."""
    return tmp_path / "store/data/doc"


def in_place(path: Path, text: bytes) -> None:
    path.write_bytes(text)


def by_renaming(path: Path, text: bytes) -> None:
    new = path.with_name(f".{path.name}.swp")
    new.write_bytes(text)
    os.replace(new, path)


SAVES = pytest.mark.parametrize("save", [in_place, by_renaming])


@SAVES
def test_an_edit_is_a_version(files: Way, folder: Path, save: Callable[[Path, bytes], None]) -> None:
    write(files, "one\n")
    save(folder / "plan.txt", b"by hand\n")
    found = files.do("doc.read", name="plan")
    assert (found["text"], found["revision"], found["by"]) == ("by hand\n", 2, "by hand")
    assert files.do("doc.read", name="plan") == found
    save(folder / "plan.txt", b"again\n")
    [listed] = files.do("doc.list")["documents"]
    assert (listed["revision"], listed["size"]) == (3, 6)
    assert versions(files) == [(3, "again\n"), (2, "by hand\n"), (1, "one\n")]
    assert write(files, "three\n", base=3) == 4


@SAVES
def test_nobody_overwrites_it_unseen(files: Way, folder: Path, save: Callable[[Path, bytes], None]) -> None:
    write(files, "one\n")
    save(folder / "plan.txt", b"by hand\n")
    refused = refusal("CONFLICT", write, files, "mine\n", base=1)
    assert (refused.details["revision"], refused.details["text"]) == (2, "by hand\n")
    assert refused.details["base_text"] == "one\n"
    save(folder / "plan.txt", b"by hand, more\n")
    # Based on the edit that the conflict told of, and not on the one that came since.
    refused = refusal("CONFLICT", write, files, "both\n", base=2)
    assert (refused.details["revision"], refused.details["text"]) == (3, "by hand, more\n")
    assert refused.details["base_text"] == "by hand\n"
    assert write(files, "all\n", base=3) == 4
    assert (folder / "plan.txt").read_text() == "all\n"


@SAVES
def test_an_edit_between_reading_and_writing(
    tmp_path: Path, folder: Path, save: Callable[[Path, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Python(f"files:{tmp_path}/store")
    write(files, "one\n")
    edits = [b"by hand\n"]

    def find(tx: Transaction, name: str) -> documents.Document:
        found = look(tx, name)
        if edits:
            save(folder / "plan.txt", edits.pop())
        return found

    look = documents.find
    monkeypatch.setattr(documents, "find", find)
    refused = refusal("CONFLICT", write, files, "mine\n", base=1)
    assert (refused.details["revision"], refused.details["text"]) == (2, "by hand\n")


def test_a_list_tells_of_a_revision_that_is_there(files: Way, folder: Path) -> None:
    write(files, "one\n")
    in_place(folder / "plan.txt", b"by hand\n")
    [listed] = files.do("doc.list")["documents"]
    in_place(folder / "plan.txt", b"again\n")
    refusal("CONFLICT", write, files, "mine\n", base=listed["revision"])


def test_a_write_without_a_base_leaves_it_in_the_history(files: Way, folder: Path) -> None:
    write(files, "one\n")
    in_place(folder / "plan.txt", b"by hand\n")
    assert write(files, "mine\n") == 3
    assert versions(files) == [(3, "mine\n"), (2, "by hand\n"), (1, "one\n")]


def test_what_is_removed_by_hand(files: Way, folder: Path) -> None:
    write(files, "one\n")
    (folder / "plan.txt").unlink()
    refused = refusal("CONFLICT", write, files, "mine\n", base=1)
    assert (refused.details["revision"], refused.details["text"], refused.details["base_text"]) == (0, None, "one\n")
    refusal("DOCUMENT_NOT_FOUND", read, files)
    assert files.do("doc.list")["documents"] == []
    assert files.do("doc.restore", name="plan")["revision"] == 3
    assert (folder / "plan.txt").read_text() == "one\n"
    assert versions(files) == [(3, "one\n"), (2, ""), (1, "one\n")]


def test_what_is_made_by_hand(files: Way, folder: Path) -> None:
    write(files, "x", "other")
    (folder / "memory_snotes_dmd.txt").write_text("mine\n")
    assert [one["name"] for one in files.do("doc.list")["documents"]] == ["memory/notes.md", "other"]
    assert read(files, "memory/notes.md") == "mine\n"
    refusal("CONFLICT", write, files, "theirs", "memory/notes.md", base=0)
    assert write(files, "theirs", "memory/notes.md", base=1) == 2


def test_the_first_of_all_is_made_by_hand(files: Way, folder: Path) -> None:
    refusal("DOCUMENT_NOT_FOUND", read, files)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.txt").write_text("mine\n")
    assert [one["name"] for one in files.do("doc.list")["documents"]] == ["plan"]
    assert read(files) == "mine\n"


@pytest.mark.parametrize("name", ["a_", "a_q", "_x9zzz", "_x41", "_s", "_d_d", "_x8ffffffff", "_u", "_x", "_e", "-"])
def test_files_whose_names_no_document_has(tmp_path: Path, folder: Path, name: str) -> None:
    files = Python(f"files:{tmp_path}/store")
    write(files, "one")
    (folder / f"{name}.txt").write_text("mine\n")
    expected = ["-", "plan"] if name == "-" else ["plan"]
    assert [one["name"] for one in files.do("doc.list")["documents"]] == expected
    refusal("DOCUMENT_NOT_FOUND", read, files, "plaan")


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"caf\xe9", "INVALID_ENCODING"), (b"x" * (MAX_BYTES + 1), "TOO_LARGE"), (b"x" * 3_000_000, "TOO_LARGE")],
    ids=["latin-1", "large", "too large for a commit"],
)
def test_what_is_no_document(tmp_path: Path, folder: Path, data: bytes, code: str) -> None:
    """It is neither read nor overwritten until a person mends it, and the others are not kept from anything."""
    files = Python(f"files:{tmp_path}/store")
    write(files, "one")
    write(files, "other", "other")
    in_place(folder / "plan.txt", data)
    assert "plan" in refusal(code, read, files).text
    for operation in ("doc.rm", "doc.history"):
        refusal(code, files.do, operation, name="plan")
    refusal(code, write, files, "mine")
    assert (folder / "plan.txt").read_bytes() == data
    found = {one["name"]: one["problem"] for one in files.do("doc.list")["documents"]}
    assert found == {"plan": code, "other": None}
    in_place(folder / "plan.txt", b"mended")
    assert versions(files) == [(2, "mended"), (1, "one")]


def test_large_edits_and_large_writes_fit(tmp_path: Path, folder: Path) -> None:
    files = Python(f"files:{tmp_path}/store")
    write(files, "x" * MAX_BYTES)
    in_place(folder / "plan.txt", b"y" * MAX_BYTES)
    assert write(files, "z" * MAX_BYTES) == 3
    assert [text[:1] for _, text in versions(files)] == ["z", "y", "x"]


def test_edits_do_not_pile_up(tmp_path: Path, folder: Path) -> None:
    files = Python(f"files:{tmp_path}/store")
    write(files, "one")
    for n in range(10):
        in_place(folder / "plan.txt", b"%d" % n)
        read(files)
    assert len(versions(files)) == 6


def test_an_edit_keeps_the_end(tmp_path: Path, folder: Path) -> None:
    files = Python(f"files:{tmp_path}/store")
    write(files, "one", ttl=600)
    before = files.do("doc.read", name="plan")["expires_at"]
    in_place(folder / "plan.txt", b"two")
    assert files.do("doc.read", name="plan")["expires_at"] == before
