"""Where items lie, one file each, and how they are read. Whoever calls sees to it that nothing changes meanwhile.

data/mail/ann/.head                          the collection's revision and last number
data/mail/ann/.numbers/0000000000001/...     numbered items, a thousand to a folder, opened by number
data/agents/ann.item                         a named item: a line with revision, size and checksum, the value
data/doc/plan.txt, plan.rev                  a plain item: the value and nothing else, that line beside it
"""

import os
from binascii import crc32
from itertools import islice

from accord import errors
from accord.store.contract import (
    NUMBER_DIGITS,
    PLAIN,
    Head,
    Item,
    check_collection,
    check_id,
    is_collection,
    is_number,
    is_part,
    number_id,
)
from accord.store.engines.files import crowd
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOTHING = "-"  # the checksum of no file
PER_FOLDER = 1_000
HEAD_BYTES = 34

_TEXT = ".txt"  # of a plain item
_REVISION = ".rev"
_OLD = ".old"


class Edited(Exception):
    """A plain file is not as it was committed: a person changed it. `value` is None when it was removed."""

    def __init__(self, collection: str, id: str, value: bytes | None) -> None:
        self.collection = collection
        self.id = id
        self.value = value


def is_plain(collection: str) -> bool:
    return collection.partition("/")[0] == PLAIN


def checksum(value: bytes | None) -> str:
    return NOTHING if value is None else f"{crc32(value):08x}"


def label(revision: int, value: bytes) -> bytes:
    """The line that says what a value should be."""
    return f"{revision} {len(value)} {checksum(value)}\n".encode()


class Shelves:
    def __init__(self, root: str) -> None:
        self._root = root

    def folder(self, collection: str) -> str:
        check_collection(collection)  # it is about to be part of a path
        return f"{self._root}/{collection}"

    def head_path(self, collection: str) -> str:
        return f"{self.folder(collection)}/.head"

    def item_path(self, collection: str, id: str) -> str:
        """Of the file with the value."""
        check_id(id)
        path = self.folder(collection)
        if is_number(id):
            return f"{path}/.numbers/{id[:-3]}/{id}{crowd.SUFFIX}"
        if is_plain(collection):
            return f"{path}/{id}{_TEXT}"
        return crowd.find(path, id)

    def label_path(self, collection: str, id: str) -> str:
        """Of the file that says what a plain item should be."""
        return f"{self._root}/{collection}/{id}{_REVISION}"

    def old_path(self, collection: str, id: str) -> str:
        """Of what a plain file was before it was replaced, until that was looked at."""
        return f"{self._root}/{collection}/{id}{_OLD}"

    def head(self, collection: str) -> Head:
        if not is_collection(collection):
            return Head(0, 0)
        path = self.head_path(collection)
        data = read(path)
        if not data:
            return Head(0, 0)
        words = data.split()
        if len(words) != 2 or not words[0].isdigit() or not words[1].isdigit():
            raise errors.StoreDamaged(path=path, reason="it holds no head of a collection")
        return Head(int(words[0]), int(words[1]))

    def get(self, collection: str, id: str) -> Item | None:
        """The item; `Edited` when it is a plain one that a person changed."""
        if not is_part(id) or not is_collection(collection):
            return None
        return self._item(collection, id, self.item_path(collection, id))

    def page(self, collection: str, after: str, limit: int, reverse: bool) -> "Sequence[Item]":
        found = self._files(collection, after, limit, reverse)
        return [item for item in [self._item(collection, id, path) for id, path in found] if item is not None]

    def ids(self, collection: str, after: str, limit: int, reverse: bool) -> "Sequence[str]":
        return [id for id, _ in self._files(collection, after, limit, reverse)]

    def collections(self, prefix: str) -> "list[str]":
        """All that were ever written to."""
        found = [name for name in self._walk("", prefix) if name.startswith(prefix)]
        return sorted(name for name in found if self.head(name).revision)

    def _item(self, collection: str, id: str, path: str) -> Item | None:
        data = read(path)
        if is_plain(collection) and not is_number(id):
            return self._plain_item(collection, id, data)
        if data is None:
            return None
        line, _, value = data.partition(b"\n")
        revision = _labelled(line, value)
        if revision is None:
            raise errors.StoreDamaged(path=path, reason="its checksum is wrong")
        return Item(id, value, revision)

    def _plain_item(self, collection: str, id: str, value: bytes | None) -> Item | None:
        line = read(self.label_path(collection, id))
        if line is None or value is None:
            if line is value:
                return None
            raise Edited(collection, id, value)
        revision = _labelled(line, value)
        if revision is None:
            raise Edited(collection, id, value)
        return Item(id, value, revision)

    def plain_names(self, collection: str) -> "set[str]":
        """The ids of all plain items, and of those that a person removed."""
        names: set[str] = set()
        if not is_collection(collection):
            return names
        for entry in crowd.list_folder(self.folder(collection)):
            name, dot, suffix = entry.rpartition(".")
            # A person's editor may leave other files here, and 16 digits are a number, which only an append gives.
            if dot + suffix in (_TEXT, _REVISION) and is_part(name) and not is_number(name):
                names.add(name)
        return names

    def _files(self, collection: str, after: str, limit: int, reverse: bool) -> "Sequence[tuple[str, str]]":
        """Ids beyond `after`, in order, with their files."""
        if not is_collection(collection):
            return []
        numbers = self._numbers(collection, after, limit, reverse)
        names = self._names(collection, after, limit, reverse)
        return sorted([*numbers, *names], reverse=reverse)[:limit] if numbers and names else numbers or names

    def _names(self, collection: str, after: str, limit: int, reverse: bool) -> "list[tuple[str, str]]":
        if not is_plain(collection):
            return list(islice(crowd.walk(self.folder(collection), after, reverse), limit))
        names = self.plain_names(collection)
        beyond = [name for name in names if (not after or name < after if reverse else name > after)]
        return [(name, self.item_path(collection, name)) for name in sorted(beyond, reverse=reverse)[:limit]]

    def _numbers(self, collection: str, after: str, limit: int, reverse: bool) -> "list[tuple[str, str]]":
        """Numbered ids beyond `after`. Numbers are dense until something is deleted, so each is first tried."""
        last = self.head(collection).last
        found: list[tuple[str, str]] = []
        if not last:
            return found
        number = _before(after, last) if reverse else _beyond(after)
        step = -1 if reverse else 1
        while len(found) < limit and 1 <= number <= last:
            id = number_id(number)
            path = self.item_path(collection, id)
            if os.path.exists(path):
                found.append((id, path))
                number += step
            else:
                number = self._skip_gap(collection, number, reverse)
        return found

    def _skip_gap(self, collection: str, number: int, reverse: bool) -> int:
        """The next number that is there, looking through folders that are; 0 when there is none."""
        numbers = f"{self.folder(collection)}/.numbers"
        start = f"{number // PER_FOLDER:013d}"
        shelves = [name for name in crowd.list_folder(numbers) if (name <= start if reverse else name >= start)]
        for shelf in sorted(shelves, reverse=reverse):
            there = [int(entry[:NUMBER_DIGITS]) for entry in crowd.list_folder(f"{numbers}/{shelf}")]
            beyond = [other for other in there if (other < number if reverse else other > number)]
            if beyond:
                return max(beyond) if reverse else min(beyond)
        return 0

    def _walk(self, name: str, prefix: str) -> "Iterator[str]":
        """Names of collections below `name` that may start with `prefix`."""
        for entry in crowd.list_folder(f"{self._root}/{name}"):
            if "." in entry or entry[0] == "+":
                if entry == ".head":
                    yield name
                continue
            below = f"{name}/{entry}" if name else entry
            if below.startswith(prefix) or prefix.startswith(below + "/"):
                yield from self._walk(below, prefix)


def read(path: str) -> bytes | None:
    """The bytes of a file; None when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise folder.refusal(error, path) from None
    try:
        pieces = []
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError as error:
        raise folder.refusal(error, path) from None
    finally:
        os.close(fd)


def _labelled(line: bytes, value: bytes) -> int | None:
    """The revision in the line, if it is the label of this value."""
    revision = line.partition(b" ")[0]
    fits = revision.isdigit() and line.strip() == label(int(revision), value).strip()
    return int(revision) if fits else None


def _beyond(after: str) -> int:
    """The first number whose id sorts after `after`."""
    digits = ""
    for letter in after[:NUMBER_DIGITS]:
        if letter > "9":
            return int(digits.ljust(NUMBER_DIGITS, "9")) + 1
        if letter < "0":
            break
        digits += letter
    first = int(digits.ljust(NUMBER_DIGITS, "0"))
    exact = len(digits) == NUMBER_DIGITS
    return max(1, first + 1 if exact else first)


def _before(after: str, last: int) -> int:
    """The last number, of those up to `last`, whose id sorts before `after`."""
    if not after:
        return last
    beyond = _beyond(after)
    return min(last, beyond - 2 if is_number(after) else beyond - 1)
