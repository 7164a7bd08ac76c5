"""What stores hold and what may be asked of them: records, limits, and the checks that every engine makes.

Data are items in collections: `(collection, id)` holds a value, bytes that no engine reads, and the revision
of the commit that wrote it. Every commit that writes has a revision, one growing number for the whole store.
An engine gives snapshots, commits and watches (`protocols.py`), and gets every service of accord for it.

This imports next to nothing: a command that sends one message pays for every import.
"""

import os

from accord import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# Limits of one commit, the same on every engine (etcd's own are 128 operations and 1.5 MiB).
MAX_WRITES = 50
MAX_CHECKS = 100
MAX_BYTES = 1_310_720

MAX_PARTS = 8  # of a collection's name
MAX_PART = 100  # bytes of one part, or of an id
NUMBER_DIGITS = 16  # of the id that an append gives

MAX_PAGE = 1_000  # items that one list returns at most
KEPT_REVISIONS = 100_000  # how far back a watch may start, at least
TRIM_EVERY = 1_000  # the writer of each such revision forgets what is older

LOCK_WAIT_S = 30.0

DISTANT = ("expect", "now")  # what only snapshots have to which each read is a round trip

# Collections under this first part hold what people open in an editor: an engine that keeps files keeps
# each value as a file of its own, byte for byte, and takes edits by hand for commits.
PLAIN = "doc"

KEY_ITEM = ("encryption", "key")  # names the key of an encrypted store
UNFINISHED = ("migration", "unfinished")  # in a copy that is not whole yet; names what it is a copy of

_DIGITS = "0123456789"
_ALPHABET = "abcdefghijklmnopqrstuvwxyz_-" + _DIGITS

# Of this process. Kept, since every read asks for it, and the system takes its time to answer.
_pid = os.getpid()

# Names of collections that are known to be right: few, and met again and again.
_checked: set[str] = set()
_MOST_CHECKED = 10_000


class Moved(Exception):
    """A snapshot can no longer answer as of its revision: take a new one."""


class Conflict(Exception):
    """A check of a commit failed, and nothing was written: read again."""


class Value:
    """A record that is equal by its fields and not changed once made."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def _fields(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])


class Item(Value):
    __slots__ = ("id", "revision", "value")

    def __init__(self, id: str, value: bytes, revision: int) -> None:
        self.id = id
        self.value = value
        self.revision = revision  # of the commit that wrote it


class Head(Value):
    __slots__ = ("last", "revision")

    def __init__(self, revision: int, last: int) -> None:
        self.revision = revision  # of the last commit that touched the collection; 0: never touched
        self.last = last  # the last number an append gave; 0: none


class Change(Value):
    __slots__ = ("keys", "revision")

    def __init__(self, revision: int, keys: tuple[tuple[str, str], ...]) -> None:
        self.revision = revision
        self.keys = keys  # (collection, id) of what was put, appended or deleted


class Committed(Value):
    __slots__ = ("numbers", "revision")

    def __init__(self, revision: int, numbers: tuple[int, ...]) -> None:
        self.revision = revision
        self.numbers = numbers  # one for each append of the commit, in their order


class Instant(Value):
    """A moment on the store's clock. Moments of another era, such as before a restart, are over."""

    __slots__ = ("era", "seconds", "slack_s")

    def __init__(self, era: str, seconds: float, slack_s: float = 0.0) -> None:
        self.era = era
        self.seconds = seconds
        self.slack_s = slack_s  # by how much the clocks of those who share the store may differ

    def plus(self, seconds: float) -> "Instant":
        return Instant(self.era, self.seconds + seconds, self.slack_s)

    def is_over(self, now: "Instant") -> bool:
        return self.era != now.era or self.seconds + now.slack_s <= now.seconds


class Number(Value):
    """The number that the n-th append of a commit will get, for the writes that follow it.

    As an id it becomes 16 digits, inside a value the plain decimal number. Used as an id in another collection, it
    raises that collection's last number to itself.
    """

    __slots__ = ("append",)

    def __init__(self, append: int) -> None:
        self.append = append  # 0 for the commit's first append


class ItemIs(Value):
    """Holds while the item has this revision; 0: while there is none."""

    __slots__ = ("collection", "id", "revision")

    def __init__(self, collection: str, id: str, revision: int) -> None:
        self.collection = collection
        self.id = id
        self.revision = revision


class CollectionIs(Value):
    """Holds while no commit touched the collection since this revision."""

    __slots__ = ("collection", "revision")

    def __init__(self, collection: str, revision: int) -> None:
        self.collection = collection
        self.revision = revision


class Put(Value):
    __slots__ = ("collection", "id", "value")

    def __init__(self, collection: str, id: "str | Number", value: "bytes | Template") -> None:
        self.collection = collection
        self.id = id
        self.value = value


class Delete(Value):
    """Deleting what is not there is no error, and a change of the collection like any other."""

    __slots__ = ("collection", "id")

    def __init__(self, collection: str, id: "str | Number") -> None:
        self.collection = collection
        self.id = id


class Append(Value):
    """Put under the collection's next number: 1, 2, 3 ... dense, in commit order, never used again."""

    __slots__ = ("collection", "value")

    def __init__(self, collection: str, value: "bytes | Template") -> None:
        self.collection = collection
        self.value = value


if TYPE_CHECKING:
    Template = tuple[bytes | Number, ...]  # pieces of a value, joined once the numbers are known
    Check = ItemIs | CollectionIs
    Write = Put | Delete | Append
    Content = tuple[str, int, Iterable[Item]]  # a collection, its last number, its items in order


class Opened:
    """What every engine refuses: use after close, and use in a child that was forked after opening."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.closed = False
        self._pid = _pid

    def check(self) -> None:
        if self.closed:
            raise errors.StoreClosed(path=self.path)
        self.check_process()

    def check_process(self) -> None:
        """The second alone, for what was begun with the store: snapshots, batches, watches."""
        if _pid != self._pid:
            raise errors.StoreForked(path=self.path, opened_by=self._pid, used_by=_pid)

    def is_inherited(self) -> bool:
        """Whether this is such a child, in which even what is left behind must be left as it is."""
        return _pid != self._pid


def _have_forked() -> None:
    global _pid
    _pid = os.getpid()


os.register_at_fork(after_in_child=_have_forked)


def new_epoch() -> str:
    return os.urandom(8).hex()


def number_id(number: int) -> str:
    return f"{number:016d}"


def is_number(id: str) -> bool:
    return len(id) == NUMBER_DIGITS and not id.strip(_DIGITS)


def is_part(text: str) -> bool:
    # What is left after stripping is what the alphabet does not have.
    return 0 < len(text) <= MAX_PART and not text.strip(_ALPHABET)


def is_collection(name: str) -> bool:
    if name in _checked:
        return True
    parts = name.split("/")
    if len(parts) > MAX_PARTS or not all(is_part(part) for part in parts):
        return False
    if len(_checked) < _MOST_CHECKED:
        _checked.add(name)
    return True


def check_collection(collection: str) -> None:
    if not is_collection(collection):
        reason = f"it must have 1 to {MAX_PARTS} parts between slashes, each of 1 to {MAX_PART} of a-z, 0-9, _ and -"
        raise errors.InvalidKey(key=collection, kind="collection", reason=reason)


def check_id(id: str) -> None:
    if not is_part(id):
        raise errors.InvalidKey(key=id, kind="id", reason=f"it must be 1 to {MAX_PART} of a-z, 0-9, _ and -")


def check_commit(checks: "Sequence[Check]", writes: "Sequence[Write]") -> None:
    """Refuse a commit over the limits, or one that names what no engine can store."""
    for check in checks:
        if check.collection not in _checked:
            check_collection(check.collection)
        if isinstance(check, ItemIs):
            check_id(check.id)
    appends = 0
    size = 0
    for write in writes:
        if write.collection not in _checked:
            check_collection(write.collection)
        if not isinstance(write, Delete):
            value = write.value
            size += len(value) if isinstance(value, bytes) else _template_size(value, appends)
        if isinstance(write, Append):
            appends += 1
        elif isinstance(write.id, str):
            check_id(write.id)
        else:
            _check_number(write.id, appends)
    if len(writes) > MAX_WRITES or len(checks) > MAX_CHECKS or size > MAX_BYTES:
        raise _too_large(len(writes), len(checks), size)


def check_contents(contents: "Iterable[Content]") -> "Iterator[Content]":
    """The same, refusing on the way what no commit could have stored."""
    names = set()
    for collection, last, items in contents:
        check_collection(collection)
        if collection in names:
            raise errors.InvalidKey(key=collection, kind="collection", reason="it comes twice")
        names.add(collection)
        yield collection, last, _check_items(last, items)


def _check_items(last: int, items: "Iterable[Item]") -> "Iterator[Item]":
    before = ""
    for item in items:
        check_id(item.id)
        if item.id <= before:
            raise errors.InvalidKey(
                key=item.id, kind="id", reason=f"it does not sort after {before!r}, which it follows"
            )
        if is_number(item.id) and int(item.id) > last:
            raise _never_given(item.id)
        before = item.id
        yield item


def check_page(limit: int) -> None:
    if not 1 <= limit <= MAX_PAGE:
        raise ValueError(f"a page has 1 to {MAX_PAGE} items, not {limit}")


def assign_numbers(writes: "Sequence[Write]", last_of: "Callable[[str], int]") -> "tuple[list[int], dict[str, int]]":
    """Number the appends: their numbers in order, and the last number now of each collection asked for."""
    lasts: dict[str, int] = {}
    numbers: list[int] = []
    for write in writes:
        collection = write.collection
        if isinstance(write, Append):
            number = lasts.get(collection) or last_of(collection)
            lasts[collection] = number + 1
            numbers.append(number + 1)
        elif isinstance(write.id, Number) or is_number(write.id):
            last = lasts[collection] if collection in lasts else last_of(collection)
            lasts[collection] = _last_with(write, last, numbers)
    return numbers, lasts


def _last_with(write: "Put | Delete", last: int, numbers: "Sequence[int]") -> int:
    """The last number of a collection once `write` has put under a number: no append may meet it."""
    if isinstance(write.id, Number):
        return last if isinstance(write, Delete) else max(last, numbers[write.id.append])
    if int(write.id) > last:
        raise _never_given(write.id)
    return last


def _never_given(id: str) -> "errors.InvalidKey":
    return errors.InvalidKey(
        key=id, kind="id", reason="16 digits are a number, and no append of the collection gave it"
    )


def resolve(writes: "Sequence[Write]", numbers: "Sequence[int]") -> "dict[tuple[str, str], bytes | None]":
    """What each (collection, id) is to hold, None for a delete, now that the appends' numbers are known."""
    values: dict[tuple[str, str], bytes | None] = {}
    given = iter(numbers)
    for write in writes:
        id = number_id(next(given)) if isinstance(write, Append) else write.id
        if isinstance(id, Number):
            id = number_id(numbers[id.append])
        value = None if isinstance(write, Delete) else write.value
        values[write.collection, id] = fill(value, numbers) if isinstance(value, tuple) else value
    return values


def fill(template: "Template", numbers: "Sequence[int]") -> bytes:
    return b"".join([piece if isinstance(piece, bytes) else b"%d" % numbers[piece.append] for piece in template])


def _too_large(writes: int, checks: int, size: int) -> "errors.CommitTooLarge":
    counts = (("writes", MAX_WRITES, writes), ("checks", MAX_CHECKS, checks), ("bytes", MAX_BYTES, size))
    what, most, found = next(count for count in counts if count[2] > count[1])
    return errors.CommitTooLarge(what=what, most=most, found=found)


def _check_number(number: Number, appends: int) -> None:
    if not 0 <= number.append < appends:
        raise ValueError(f"{number!r} names no earlier append of this commit")


def _template_size(template: "Template", appends: int) -> int:
    size = 0
    for piece in template:
        if isinstance(piece, bytes):
            size += len(piece)
        else:
            _check_number(piece, appends)
            size += NUMBER_DIGITS
    return size
