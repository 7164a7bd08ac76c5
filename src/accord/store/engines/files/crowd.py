"""Named items in folders that stay small, so that a page of a million costs what a page of a thousand does.

All lie in the collection's folder at first. One that has become crowded is split: its items move into folders below
it, each named by a plus and the next two characters of their ids. `find` goes down as far as there are folders, so a
split that a crash cut short must be finished (`tidy`) before anything is looked for.
"""

import os

from accord.store.contract import is_part
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CROWDED = 1_000
SUFFIX = ".item"

_STEP = 2  # characters: the times in ids share many, and each folder on the way costs a look


def find(path: str, id: str) -> str:
    """The file of an item, there or not, of the collection whose folder is `path`."""
    *_, last = way(path, id)
    return f"{last}/{id}{SUFFIX}"


def way(path: str, id: str) -> "Iterator[str]":
    """The folders from the collection's own to the one where the item lies."""
    yield path
    for at in range(0, len(id) - _STEP + 1, _STEP):
        path = f"{path}/+{id[at : at + _STEP]}"
        if not os.path.isdir(path):
            return
        yield path


def walk(path: str, after: str, reverse: bool, prefix: str = "") -> "Iterator[tuple[str, str]]":
    """The ids below `path` beyond `after`, in order, with their files; folders are read as one gets to them."""
    names, folders = _entries(path)
    beyond = [name for name in names if (not after or name < after if reverse else name > after)]
    for name in sorted([*beyond, *[prefix + step for step in folders]], reverse=reverse):
        step = name[len(prefix) :]
        if step not in folders:
            yield name, f"{path}/{name}{SUFFIX}"
        elif _may_lie_beyond(name, after, reverse):
            yield from walk(f"{path}/+{step}", after, reverse, name)


def split_if_crowded(path: str) -> None:
    """Split a folder on the way of `find` that holds too many, each item going straight to where it will lie."""
    names, _ = _entries(path)
    if len(names) > CROWDED:
        for name, target in _spread(path, names, _depth(path)):
            if target != path:
                folder.make_folder(target)
                os.rename(f"{path}/{name}{SUFFIX}", f"{target}/{name}{SUFFIX}")


def _spread(path: str, names: list[str], depth: int) -> "Iterator[tuple[str, str]]":
    """A folder for each name, at `path` or as far below as it takes."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name[depth : depth + _STEP], []).append(name)
    for step, group in groups.items():
        below = f"{path}/+{step}"
        if len(step) < _STEP:
            yield from ((name, path) for name in group)
        elif len(group) > CROWDED:
            yield from _spread(below, group, depth + _STEP)
        else:
            yield from ((name, below) for name in group)


def tidy(path: str) -> None:
    """Move the items of a folder down into those below it where they belong."""
    names, folders = _entries(path)
    depth = _depth(path)
    for name in names:
        step = name[depth : depth + _STEP]
        if step in folders:
            os.rename(f"{path}/{name}{SUFFIX}", f"{path}/+{step}/{name}{SUFFIX}")


def _depth(path: str) -> int:
    """How many characters of their ids the folders on the way to `path` stand for."""
    depth = 0
    while os.path.basename(path).startswith("+"):
        path = os.path.dirname(path)
        depth += _STEP
    return depth


def _entries(path: str) -> tuple[list[str], set[str]]:
    """The ids in a folder, and the steps to the folders below it."""
    names = []
    folders = set()
    for entry in list_folder(path):
        if entry.endswith(SUFFIX) and is_part(entry[: -len(SUFFIX)]):
            names.append(entry[: -len(SUFFIX)])
        elif entry[0] == "+":
            folders.add(entry[1:])
    return names, folders


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
