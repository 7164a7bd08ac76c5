"""Documents: bases and conflicts, history, what ends by itself, what is damaged, and what no document may be."""

import hashlib
import time
from contextlib import closing
from typing import Any

import pytest

from accord.services.documents import MAX_BYTES
from accord.store.contract import Put, number_id
from accord.store.open import open_store
from tests.operations.people import refusal
from tests.operations.ways import Python, Way

pytestmark = pytest.mark.covers("S5")


def write(way: Way, text: str, name: str = "plan", **more: Any) -> int:
    """The revision that it has then."""
    return int(way.do("doc.write", name=name, text=text, **more)["revision"])


def read(way: Way, name: str = "plan", **more: Any) -> str:
    return str(way.do("doc.read", name=name, **more)["text"])


def versions(way: Way, name: str = "plan") -> list[tuple[int, str]]:
    """Those that are kept, with their texts."""
    kept = way.do("doc.history", name=name)["versions"]
    return [(one["revision"], "" if one["deleted"] else read(way, name, revision=one["revision"])) for one in kept]


def test_a_write_based_on_what_is_there_and_one_based_on_what_was(way: Way) -> None:
    assert write(way, "one\n", base=0) == 1
    assert write(way, "two\n", base=1) == 2
    refused = refusal("CONFLICT", write, way, "mine\n", base=1)
    expected = {"name": "plan", "base": 1, "revision": 2, "text": "two\n", "base_text": "one\n"}
    assert dict(refused.details) == expected
    assert refusal("CONFLICT", write, way, "mine\n", base=0).details["base_text"] is None
    assert refusal("CONFLICT", write, way, "mine\n", base=7).details["base_text"] is None
    found = way.do("doc.read", name="plan")
    assert (found["text"], found["revision"], found["size"]) == ("two\n", 2, 4)
    assert found["checksum"] == hashlib.sha256(b"two\n").hexdigest()
    refusal("CONFLICT", way.do, "doc.rm", name="plan", base=1)
    assert write(way, "three\n", base=2) == 3


def test_what_was_removed_can_be_restored(way: Way) -> None:
    for text in ("one", "two"):
        write(way, text)
    assert way.do("doc.rm", name="plan", base=2)["revision"] == 3
    assert "did you mean" not in refusal("DOCUMENT_NOT_FOUND", read, way).text
    refusal("DOCUMENT_NOT_FOUND", way.do, "doc.rm", name="plan")
    assert way.do("doc.list")["documents"] == []
    refused = refusal("CONFLICT", write, way, "mine", base=2)
    assert (refused.details["revision"], refused.details["text"], refused.details["base_text"]) == (0, None, "two")
    assert way.do("doc.restore", name="plan")["revision"] == 4
    assert way.do("doc.restore", name="plan", revision=1)["revision"] == 5
    assert versions(way) == [(5, "one"), (4, "two"), (3, ""), (2, "two"), (1, "one")]
    refusal("REVISION_NOT_FOUND", way.do, "doc.restore", name="plan", revision=3)
    refusal("REVISION_NOT_FOUND", way.do, "doc.restore", name="plan", revision=9)
    refusal("REVISION_NOT_FOUND", way.do, "doc.read", name="plan", revision=3)
    refusal("REVISION_NOT_FOUND", way.do, "doc.restore", name="nothing")


def test_what_was_written_is_read_as_it_was(way: Way) -> None:
    texts = ["", "  two\n\nlines \t", "naïve 日本語 🐝\r\n", '"\\" \x1b[31m \x00 \x7f \u2028 \u202e', "--text=x"]
    for n, text in enumerate(texts):
        assert write(way, text) == n + 1
        assert read(way) == text


def test_the_largest_document_and_one_byte_more(way: Way) -> None:
    """Both of them in a conflict, too."""
    largest = "é" * (MAX_BYTES // 2)
    write(way, largest)
    refused = refusal("TOO_LARGE", write, way, largest + "x", base=1)
    assert refused.details["most"] == MAX_BYTES
    other = "\t" * MAX_BYTES
    write(way, other)
    assert refusal("CONFLICT", write, way, "mine", base=1).details == {
        "name": "plan", "base": 1, "revision": 2, "text": other, "base_text": largest,
    }  # fmt: skip
    assert read(way, revision=1) == largest


def test_lists_and_names(way: Way) -> None:
    names = ["memory/notes.md", "Plan", "a b", "0000000000000001", "日本/語", "x" * 200]
    for name in names:
        write(way, name, name)
    found = way.do("doc.list")["documents"]
    assert [one["name"] for one in found] == sorted(names)
    assert {one["problem"] for one in found} == {None}
    assert [one["name"] for one in way.do("doc.list", prefix="memory/")["documents"]] == ["memory/notes.md"]
    assert [read(way, name) for name in names] == names
    assert "did you mean memory/notes.md?" in refusal("DOCUMENT_NOT_FOUND", read, way, "memory/note.md").text


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../b", "/etc/passwd", "a//b", "a/", "a\nb", "a\0b", "\x1b[31m", "x" * 201]
)
def test_names_that_no_document_may_have(memory: Python, name: str) -> None:
    refusal("INVALID_NAME", write, memory, "x", name)
    refusal("INVALID_NAME", read, memory, name)


def test_what_is_so_already_is_not_written(way: Way) -> None:
    write(way, "one")
    before = way.do("doc.read", name="plan")
    assert way.do("doc.write", name="plan", text="one", base=1)["revision"] == 1
    assert way.do("doc.restore", name="plan", revision=1)["revision"] == 1
    assert way.do("doc.read", name="plan") == before


def test_a_fence(way: Way) -> None:
    granted = way.do("lock.acquire", name="edit/plan", owner="ann", ttl=60)["token"]
    assert write(way, "one", fence=f"edit/plan:{granted}") == 1
    way.do("lock.release", name="edit/plan", owner="ann", token=granted)
    refusal("FENCED", write, way, "two", fence=f"edit/plan:{granted}")
    later = way.do("lock.acquire", name="edit/plan", owner="ben", ttl=60)["token"]
    for operation in ("doc.rm", "doc.restore"):
        refusal("FENCED", way.do, operation, name="plan", fence=f"edit/plan:{granted}")
    assert write(way, "two", fence=f"edit/plan:{later}") == 2


def test_what_ends_by_itself(here: Python) -> None:
    write(here, "for ever", "other")
    assert write(here, "soon over", ttl=0.3) == 1
    assert read(here) == "soon over"
    assert write(here, "soon over", ttl=0.4) == 2  # lasts longer now
    refusal("CONFLICT", write, here, "mine", base=0)
    time.sleep(0.45)
    refusal("DOCUMENT_NOT_FOUND", read, here)
    refusal("DOCUMENT_NOT_FOUND", here.do, "doc.rm", name="plan")
    assert [one["name"] for one in here.do("doc.list")["documents"]] == ["other"]
    refused = refusal("CONFLICT", write, here, "mine", base=2)  # it is gone, and whoever changed it must know
    assert (refused.details["revision"], refused.details["text"], refused.details["base_text"]) == (
        0,
        None,
        "soon over",
    )
    assert read(here, revision=2) == "soon over"
    assert here.do("doc.restore", name="plan")["revision"] == 3
    assert read(here) == "soon over"
    here.do("doc.rm", name="plan")
    assert write(here, "anew", base=0) == 5
    assert here.do("doc.read", name="plan")["expires_at"] is None


def test_a_restore_keeps_the_end(here: Python) -> None:
    def end() -> object:
        return here.do("doc.read", name="plan")["expires_at"]

    write(here, "one", ttl=3600)
    first = end()
    write(here, "two", ttl=7200)
    second = end()
    here.do("doc.restore", name="plan")
    assert (read(here), end()) == ("one", second)
    here.do("doc.rm", name="plan")
    here.do("doc.restore", name="plan", revision=1)
    assert end() == first
    here.do("doc.restore", name="plan", revision=2, ttl=0)
    assert end() is None
    here.do("doc.restore", name="plan", revision=1, ttl=10)
    assert end() < first  # type: ignore[operator]
    here.do("doc.write", name="plan", text="x", keep_ttl=True)
    assert end() is not None
    write(here, "x")
    assert end() is None


def test_a_write_without_an_end_makes_it_stay(here: Python) -> None:
    write(here, "text", ttl=0.2)
    assert write(here, "text") == 2
    time.sleep(0.25)
    assert read(here) == "text"


@pytest.mark.parametrize(("keep", "kept"), [(0, [9]), (1, [9, 8]), (5, [9, 8, 7, 6, 5, 4])])
def test_earlier_versions_are_kept(here: Python, keep: int, kept: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_BACKUP_COUNT", str(keep))
    for n in range(1, 10):
        write(here, f"text {n}")
    assert versions(here) == [(n, f"text {n}") for n in kept]
    refusal("REVISION_NOT_FOUND", read, here, revision=kept[-1] - 1)


def test_fewer_versions_than_before(here: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_BACKUP_COUNT", "50")
    for n in range(1, 31):
        write(here, f"text {n}")
    monkeypatch.setenv("ACCORD_BACKUP_COUNT", "2")
    write(here, "one more")
    write(here, "and another")
    assert versions(here) == [(32, "and another"), (31, "one more"), (30, "text 30")]


def test_who_wrote_it(here: Python) -> None:
    write(here, "one")
    write(here.acting("ann"), "two")
    assert here.do("doc.history", name="plan")["versions"][0]["by"] == "ann"
    assert here.do("doc.list")["documents"][0]["by"] == "ann"


def damage(way: Way, text: bytes, revision: int, version: "bytes | None" = None, name: str = "plan") -> None:
    """Change bytes as a disk would: what is stored about the text is what it was."""
    with closing(open_store(way.engine)) as store:
        with store.snapshot() as snapshot:
            item = snapshot.get(f"version/{name}", number_id(revision))
            assert item is not None
        store.commit([], [Put("doc", name, text), Put(f"version/{name}", number_id(revision), version or item.value)])


def test_a_text_that_is_damaged(here: Python) -> None:
    for text in ("one", "two"):
        write(here, text)
    write(here, "other", "other")
    damage(here, b"twO", 2)
    for operation, more in [("read", {}), ("write", {"text": "x"}), ("rm", {}), ("history", {})]:
        assert "plan" in refusal("STORE_DAMAGED", here.do, f"doc.{operation}", name="plan", **more).text
    found = {one["name"]: one["problem"] for one in here.do("doc.list")["documents"]}
    assert found == {"plan": "STORE_DAMAGED", "other": None}
    assert read(here, "other") == "other"
    assert here.do("doc.restore", name="plan")["revision"] == 3
    assert versions(here) == [(3, "two"), (2, "two"), (1, "one")]


@pytest.mark.parametrize("rest", [b"twO", b"tw\xff", b""])
def test_a_version_that_is_damaged(here: Python, rest: bytes) -> None:
    for text in ("one", "two", "three"):
        write(here, text)
    with closing(open_store(here.engine)) as store, store.snapshot() as snapshot:
        item = snapshot.get("version/plan", number_id(2))
        assert item is not None
        store.commit([], [Put("version/plan", number_id(2), item.value.partition(b"\n")[0] + b"\n" + rest)])
    assert read(here) == "three"
    refusal("STORE_DAMAGED", read, here, revision=2)
    assert refusal("CONFLICT", write, here, "mine", base=2).details["base_text"] is None
    assert here.do("doc.restore", name="plan")["revision"] == 4
    assert read(here) == "one"


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}", b"\xff", b"7"])
def test_a_version_that_says_nothing_of_itself(memory: Python, line: bytes) -> None:
    write(memory, "one")
    write(memory, "two")
    damage(memory, b"two", 2, line + b"\ntwo")
    refusal("STORE_DAMAGED", read, memory)
    memory.do("doc.restore", name="plan", revision=1)
    assert read(memory) == "one"


def test_a_request_that_is_repeated_is_done_once(here: Python) -> None:
    from accord.operations import call
    from accord.operations.context import local

    context = local({}, "/", engine=here.engine, request="request-1")
    with closing(context):
        params = {"name": "plan", "text": "mine", "base": 0}
        first = call(context, "doc.write", params)
        write(here, "theirs", base=1)
        assert call(context, "doc.write", params) == first
        with pytest.raises(Exception, match="used before with other parameters"):
            call(context, "doc.write", {**params, "text": "other"})
    assert versions(here) == [(2, "theirs"), (1, "mine")]


def test_several_changes_of_one_document_in_one_transaction(here: Python) -> None:
    """As the steps of a `tx` are: each sees what those before it did."""
    from accord import errors
    from accord.services import documents
    from accord.store.transaction import Transaction, transact

    write(here, "one")
    how = [documents.Writing("ann", "now", 5, base) for base in range(5)]

    def work(tx: Transaction) -> int:
        documents.write(tx, "plan", "two", how[1])
        documents.write(tx, "plan", "three", how[2])
        with pytest.raises(errors.Conflict):
            documents.write(tx, "plan", "four", how[2])
        documents.remove(tx, "plan", how[3])
        documents.write(tx, "plan", "five", how[0])
        return int(documents.read(tx, "plan", None, 5)["revision"])

    with closing(open_store(here.engine)) as store:
        assert transact(store, work) == 5
    assert versions(here) == [(5, "five"), (4, ""), (3, "three"), (2, "two"), (1, "one")]
