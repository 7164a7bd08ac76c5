"""A store's URL: the engine is a file's name, and what is wrong with it is said with what there is."""

from pathlib import Path

import pytest

from accord import errors
from accord.store import engines as folder
from accord.store.open import engines, open_store

pytestmark = pytest.mark.covers("S2")


@pytest.fixture
def other_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second folder of engines, as another package may bring it."""
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    return tmp_path


@pytest.mark.parametrize(
    "url",
    [
        "", ":", "sqlite", ":place", "nothing:place", "SQLITE:place", "sqlite3:place", "sqlite.x:place",
        "../sqlite:place", "sqlite :place", "/tmp/store", "http://example.org", "__init__:place", "__pycache__:place",
    ],
)  # fmt: skip
def test_an_unknown_engine_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(errors.UnknownEngine) as refused:
        open_store(url)
    assert repr(url) in str(refused.value)
    for engine in engines():
        assert engine in str(refused.value)


def test_the_engines_are_the_files_in_their_folder(other_engines: Path) -> None:
    before = engines()
    assert {"memory", "sqlite"} <= set(before)
    (other_engines / "single.py").touch()
    (other_engines / "several").mkdir()
    (other_engines / "_helper.py").touch()
    assert engines() == sorted([*before, "several", "single"])


def test_a_file_beside_the_others_is_an_engine(other_engines: Path) -> None:
    (other_engines / "borrowed.py").write_text("from accord.store.engines.memory import open_store\n")
    store = open_store("borrowed:place")
    assert store.snapshot().revision == 0


def test_a_missing_driver_is_named(other_engines: Path) -> None:
    (other_engines / "needy.py").write_text("import driver_that_is_not_there\n")
    with pytest.raises(errors.DriverMissing) as missing:
        open_store("needy:place")
    assert missing.value.details == {"engine": "needy", "package": "driver_that_is_not_there"}
    assert "pip install driver_that_is_not_there" in str(missing.value)


def test_the_place_may_hold_colons() -> None:
    one, two = open_store("memory:a:b"), open_store("memory:a")
    assert one.snapshot().epoch == open_store("memory:a:b").snapshot().epoch != two.snapshot().epoch


@pytest.mark.parametrize("engine", ["sqlite", "files"])
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("", "'' cannot be used: it names no file or folder"),
        ("/tmp/a\0b", r"'/tmp/a\x00b' cannot be used: it holds a NUL"),
        ("/tmp/a\udc80b", r"'/tmp/a\udc80b' cannot be used: it is not UTF-8"),
        ("~\ud800/b", r"'~\ud800/b' cannot be used: it is not UTF-8"),
    ],
)
def test_a_place_that_no_file_can_have_is_refused(
    engine: str, place: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.DataDirError) as refused:
        open_store(f"{engine}:{place}")
    assert str(refused.value).startswith(reason)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_kind_of_lock_must_be_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.DataDirError, match="names no file or folder"):
        open_store("files:?lock=mkdir")
    assert list(tmp_path.iterdir()) == []
