"""Named items in folders that stay small, so that a page of a million costs what a page of a thousand does.

All lie in the collection's folder at first. One that has become crowded is split: it gets a `.split`, and from then on
its items lie in folders below it, each named by a plus and the next two characters of their ids. `find` goes by these
marks, so a split that a crash cut short must be finished (`tidy`) before anything is looked for.
"""

import os

from accord.store.contract import is_part
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CROWDED = 1_000
SUFFIX = ".item"
SPLIT = ".split"

_STEP = 2  # characters: the times in ids share many, and each folder on the way costs a look


def find(path: str, id: str) -> str:
    """The file of an item, there or not, of the collection whose folder is `path`."""
    *_, last = way(path, id)
    return f"{last}/{id}{SUFFIX}"


def way(path: str, id: str) -> "Iterator[str]":
    """The folders from the collection's own to the one where the item lies."""
    yield path
    for at in range(0, len(id) - _STEP + 1, _STEP):
        if not os.path.lexists(f"{path}/{SPLIT}"):
            return
        path = f"{path}/+{id[at : at + _STEP]}"
        yield path


def walk(path: str, after: str, reverse: bool, prefix: str = "") -> "Iterator[tuple[str, str]]":
    """The ids below `path` beyond `after`, in order, with their files; folders are read as one gets to them."""
    names, folders = _entries(path)
    beyond = [name for name in names if (not after or name < after if reverse else name > after)]
    for name in sorted([*beyond, *[prefix + step for step in folders]], reverse=reverse):
        step = name[len(prefix) :]
        if step not in folders:
            if is_part(name):  # else it is nothing of ours
                yield name, f"{path}/{name}{SUFFIX}"
        elif _may_lie_beyond(name, after, reverse):
            yield from walk(f"{path}/+{step}", after, reverse, name)


def split_if_crowded(path: str) -> None:
    """Split a folder on the way of `find` that holds too many, each item going straight to where it will lie."""
    names = _items(path)
    if len(names) > CROWDED:
        _mark(path, names, _depth(path))
        _move_down(path, names)


def tidy(path: str) -> None:
    """Finish the split of a folder."""
    if os.path.lexists(f"{path}/{SPLIT}"):
        _move_down(path, _items(path))


def _mark(path: str, names: list[str], depth: int) -> None:
    """Mark as split what is too small for so many, and those below it that would be, the lowest first."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name[depth : depth + _STEP], []).append(name)
    for step, group in groups.items():
        if len(step) == _STEP:
            folder.make_folder(f"{path}/+{step}")
            if len(group) > CROWDED:
                _mark(f"{path}/+{step}", group, depth + _STEP)
    os.close(folder.open_private(f"{path}/{SPLIT}"))


def _move_down(path: str, names: list[str]) -> None:
    collection = path
    for _ in range(_depth(path) // _STEP):
        collection = os.path.dirname(collection)
    for name in names:
        old, new = f"{path}/{name}{SUFFIX}", find(collection, name)
        if new != old:
            folder.make_folder(os.path.dirname(new))
            os.rename(old, new)


def _depth(path: str) -> int:
    """How many characters of their ids the folders on the way to `path` stand for."""
    depth = 0
    while os.path.basename(path).startswith("+"):
        path = os.path.dirname(path)
        depth += _STEP
    return depth


def _items(path: str) -> list[str]:
    return [name for name in _entries(path)[0] if is_part(name)]


def _entries(path: str) -> tuple[list[str], set[str]]:
    """What may be ids in a folder, and the steps to the folders below it."""
    entries = list_folder(path)
    names = [entry[: -len(SUFFIX)] for entry in entries if entry.endswith(SUFFIX)]
    return names, {entry[1:] for entry in entries if entry[0] == "+"}


def list_folder(path: str) -> list[str]:
    """The names in a folder; none when there is no folder."""
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _may_lie_beyond(prefix: str, after: str, reverse: bool) -> bool:
    """Whether ids that start with `prefix` may."""
    start = after[: len(prefix)]
    return not after or prefix <= start if reverse else prefix >= start
