"""A full disk: what is there is read and found, and what is to stop stops."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.users import User
from tests.robustness.disks import SmallDisk, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "4m") as disk:
        yield disk


@pytest.fixture
def ann(disk: SmallDisk, tmp_path: Path) -> User:
    """Somebody whose home is there, with the agent ann; the rest of theirs is elsewhere."""
    user = User(tmp_path)
    user.env["ACCORD_HOME"] = str(disk.path / "home")
    user.json("register", "ann")
    user.json("send", "--from", "ann", "--to", "ann", "--message", "a walrus")
    return user


def search(user: User) -> list[str]:
    return [message["message"] for message in user.json("search", "walrus")["messages"]]


@pytest.mark.covers("T3.5", "T5.3")
@pytest.mark.parametrize("has_index", [True, False], ids=["with an index", "without one"])
@pytest.mark.parametrize("pages", [0, 1, 4, 12])
def test_searching_goes_on(has_index: bool, pages: int, ann: User, disk: SmallDisk) -> None:
    if has_index:
        assert search(ann) == ["a walrus"]
        index = (disk.path / "home/cache/search.db").read_bytes()
    ann.json("send", "--from", "ann", "--to", "ann", "--message", "another walrus")
    disk.fill(but=pages)
    assert sorted(search(ann)) == ["a walrus", "another walrus"]
    if has_index and not pages:
        assert (disk.path / "home/cache/search.db").read_bytes()[:100] == index[:100], "a good index is kept"
    disk.free()
    assert sorted(search(ann)) == ["a walrus", "another walrus"]


@pytest.mark.covers("T3.5")
def test_what_only_the_operator_may_needs_no_room(ann: User, disk: SmallDisk) -> None:
    disk.fill()
    ann.json("halt", "stop")
    assert ann.json("unhalt")["lifted"]
    assert ann.json("hub", "stop") == {"status": "ok", "stopped": False}


@pytest.mark.covers("T3.14")
def test_there_is_no_hub_to_stop_where_nothing_was_made_yet(disk: SmallDisk, tmp_path: Path) -> None:
    user = User(tmp_path)
    user.env["ACCORD_HOME"] = str(disk.path / "home")
    (disk.path / "home").mkdir(mode=0o700)
    disk.fill()
    assert user.json("hub", "stop") == {"status": "ok", "stopped": False}
    assert user.run("engage", "--all").error == "STORAGE_FULL"
