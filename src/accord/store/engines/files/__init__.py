"""Plain files: a redo journal is the truth, and each item lies in a file of its own that people can read.

A commit writes the new files aside, appends one record to the journal and flushes it: then it has happened. The
files are then moved into place; whoever finds that unfinished, after a crash, finishes it from the journal.
Each thousand commits everything is flushed and the journal starts anew. docs/design/files.md has the reasons.
"""

import time

from accord import errors, platform
from accord.store.contract import LOCK_WAIT_S, Head, Instant, Item, Moved, Opened, check_page
from accord.store.engines.files.disk import Behind, Disk
from accord.store.engines.files.shelves import Edited
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from accord.store.contract import Check, Committed, Content, Write
    from accord.store.engines.files.batch import Batch
    from accord.store.engines.files.state import State
    from accord.store.local.watch import FileWatch, Log
    from accord.store.protocols import Snapshot, Store

    T = TypeVar("T")

_LOOKS = 50  # at a store that is being changed, before its lock is asked for
_LOOK_PAUSE_S = 0.0001


def open_store(place: str) -> "Store":
    """`place` is a folder; `FOLDER?lock=mkdir` makes the store with that kind of lock."""
    path, _, option = place.partition("?lock=")
    return Files(path, option)


def is_there(place: str) -> bool:
    return folder.is_there(f"{folder.place_of(place.partition('?lock=')[0])}/store")


class Files:
    durability = "power"
    patience_s = LOCK_WAIT_S

    def __init__(self, place: str, lock_kind: str = "") -> None:
        path = folder.place_of(place)
        self._opened = Opened(path)
        self._disk = Disk(path, lock_kind)
        if self._disk.bell.is_ahead_of(self):
            with self.exclusive() as batch:
                if self._disk.bell.is_ahead_of(batch):  # else another who opened it was faster
                    batch.renew_epoch()

    def snapshot(self) -> "_Snapshot":
        return _Snapshot(self, self.settled(lambda state: state))

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        with self.exclusive(timeout_s) as batch:
            return batch.commit(checks, writes)

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "Batch":
        from accord.store.engines.files.batch import Batch

        self._opened.check()
        return Batch(self._disk, self._opened, timeout_s)

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> "FileWatch":
        from accord.store.local.watch import FileWatch

        return FileWatch(self, self._opened, self._disk.bell, prefixes, since, epoch)

    def changes(self, since: int) -> "Log":
        """A page of the change log, for the watch."""
        from accord.store.local.watch import Log

        return self.settled(lambda state: Log(state.epoch, state.floor, *self._disk.log.page(since, state)))

    def now(self) -> Instant:
        return Instant(platform.boot_id(), platform.boot_seconds())

    def sync(self) -> None:
        self._opened.check()  # what can be seen was flushed before

    def load(self, contents: "Iterable[Content]") -> None:
        with self.exclusive() as batch:
            batch.load(contents)

    def close(self) -> None:
        if not self._opened.closed:
            self._opened.closed = True
            self._disk.close()

    def settled(self, read: "Callable[[State], T]") -> "T":
        """What `read` gives while no commit is being laid out; by looks at first, and else under the lock."""
        self._opened.check()
        disk = self._disk
        for _ in range(_LOOKS):
            seen, state = disk.look()
            if state is None:
                break
            if state.settled:
                try:
                    result = read(state)
                except Behind:
                    break
                except (Edited, OSError, ValueError, errors.AccordError):
                    if disk.is_unchanged(seen):
                        raise
                else:
                    if disk.is_unchanged(seen):
                        return result
            time.sleep(_LOOK_PAUSE_S)
        with self.exclusive() as batch:
            return read(batch.state)

    def adopt(self, edited: Edited) -> None:
        """Commit what a person wrote into a file."""
        with self.exclusive() as batch:
            batch.get(edited.collection, edited.id)


class _Snapshot:
    def __init__(self, store: Files, state: "State") -> None:
        self.epoch = state.epoch
        self.revision = state.revision
        self._store = store
        self._shelves = store._disk.shelves

    def __enter__(self) -> "_Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def get(self, collection: str, id: str) -> Item | None:
        item, head = self._read(lambda _: self._item_or_head(collection, id))
        newest = item.revision if item is not None else head.revision  # it may have been deleted since
        if newest > self.revision:
            raise Moved
        return item

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        page, head = self._read(
            lambda _: (self._shelves.page(collection, after, limit, reverse), self._shelves.head(collection))
        )
        if head.revision > self.revision:
            raise Moved
        return page

    def head(self, collection: str) -> Head:
        head = self._read(lambda _: self._shelves.head(collection))
        if head.revision > self.revision:
            raise Moved
        return head

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        names, revision = self._read(lambda state: (self._shelves.collections(prefix), state.revision))
        if revision > self.revision:
            raise Moved
        return [name for name in names if name > after][:limit]

    def _item_or_head(self, collection: str, id: str) -> "tuple[Item | None, Head]":
        item = self._shelves.get(collection, id)
        return item, Head(0, 0) if item is not None else self._shelves.head(collection)

    def _read(self, read: "Callable[[State], T]") -> "T":
        try:
            return self._store.settled(read)
        except Edited as edited:
            self._store.adopt(edited)
            raise Moved from None
