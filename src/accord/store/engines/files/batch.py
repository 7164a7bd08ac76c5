"""The lock held: commits made inside are kept in memory, seen by those that follow, and published together."""

from accord import platform
from accord.store import pages
from accord.store.contract import (
    LOCK_WAIT_S,
    CollectionIs,
    Committed,
    Conflict,
    Head,
    Instant,
    Item,
    Moved,
    assign_numbers,
    check_commit,
    check_page,
    new_epoch,
    resolve,
)
from accord.store.engines.files.records import Record, Row
from accord.store.engines.files.shelves import NOTHING, Edited, checksum, is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store.contract import Check, Content, Opened, Write
    from accord.store.engines.files.disk import Disk
    from accord.store.protocols import Snapshot


class Batch:
    def __init__(self, disk: "Disk", opened: "Opened", timeout_s: float) -> None:
        self._disk = disk
        self._opened = opened
        self._timeout_s = timeout_s
        self._records: list[Record] = []
        self._items: dict[str, dict[str, Item | None]] = {}
        self._heads: dict[str, Head] = {}
        self._was: dict[tuple[str, str], str] = {}  # checksums of the plain files that were looked at

    def __enter__(self) -> "Batch":
        self._disk.lock.acquire(self._timeout_s)
        try:
            self.state = self._disk.writer.settle()
        except BaseException:
            self._disk.lock.release()
            raise
        self.revision = self.state.revision
        self.commits = 0  # made inside; edits by hand, which are no works of this batch, are not counted
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if self._opened.is_inherited():
            if kind is None:
                self._opened.check_process()
            return  # the block and its lock are the parent's
        self.commits = -1  # nothing more is read here
        try:
            if kind is None:
                self._publish()
        finally:
            self._disk.lock.release()
        if kind is None:
            self._disk.bell.ring(self.state.epoch, self.state.revision)

    def snapshot(self) -> "_BatchSnapshot":
        self._opened.check_process()
        return _BatchSnapshot(self)

    def check_unmoved(self, commits: int) -> None:
        """Refuse to answer as of when there were so many commits, if there are more now or the block was left."""
        self._opened.check_process()
        if commits != self.commits:
            raise Moved

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        self._opened.check_process()
        self._adopt_edits(checks, writes)
        if not all(self._holds(check) for check in checks):
            raise Conflict
        if not writes:
            return Committed(self.revision, ())
        numbers, lasts = assign_numbers(writes, lambda collection: self.head(collection).last)
        rows = [Row(*key, value) for key, value in resolve(writes, numbers).items()]
        self._record(rows, lasts)
        self.commits += 1
        return Committed(self.revision, tuple(numbers))

    def now(self) -> Instant:
        return Instant(platform.boot_id(), platform.boot_seconds())

    def sync(self) -> None:
        pass  # what can be seen was flushed before, or is when the block is left

    def load(self, contents: "Iterable[Content]") -> None:
        self._opened.check_process()
        self.state = self._disk.writer.load(contents, self.state)

    def renew_epoch(self) -> None:
        self.state = self._disk.writer.restart(new_epoch(), self.state)

    def get(self, collection: str, id: str) -> Item | None:
        items = self._items.get(collection, {})
        if id in items:
            return items[id]
        try:
            item = self._disk.shelves.get(collection, id)
        except Edited as edited:
            return self._adopt(edited)
        if is_plain(collection):
            self._was[collection, id] = checksum(item.value if item else None)
        return item

    def page(self, collection: str, after: str, limit: int, reverse: bool) -> "Sequence[Item]":
        shelves = self._disk.shelves
        if is_plain(collection):
            for id in shelves.plain_names(collection):
                self.get(collection, id)
        changes = self._items.get(collection, {})

        def stored_page(after: str, limit: int, reverse: bool) -> "Sequence[Item]":
            ids = shelves.ids(collection, after, limit, reverse)
            # What `changes` replaces need not be read, but counts for where the page ends.
            found = [Item(id, b"", 0) if id in changes else shelves.get(collection, id) for id in ids]
            return [item for item in found if item is not None]

        return pages.merged(stored_page, changes, after, limit, reverse)

    def head(self, collection: str) -> Head:
        return self._heads.get(collection) or self._disk.shelves.head(collection)

    def collections(self, prefix: str) -> "Sequence[str]":
        written = {name for name in self._heads if name.startswith(prefix)}
        return sorted(written.union(self._disk.shelves.collections(prefix)))

    def _publish(self) -> None:
        for record in self._records:
            for row in record.rows:
                row.was = self._was.get((row.collection, row.id), NOTHING)
        if self._records:
            self.state = self._disk.writer.publish(self._records, self.state)
        self._disk.writer.restart_if_due(self.state)

    def _record(self, rows: list[Row], lasts: dict[str, int]) -> None:
        self.revision += 1
        for row in rows:
            item = None if row.value is None else Item(row.id, row.value, self.revision)
            self._items.setdefault(row.collection, {})[row.id] = item
            last = lasts.setdefault(row.collection, self.head(row.collection).last)
            self._heads[row.collection] = Head(self.revision, last)
        self._records.append(Record(self.revision, rows, lasts))

    def _adopt(self, edited: Edited) -> Item | None:
        """Commit what a person wrote, before anything that is committed here."""
        collection, id = edited.collection, edited.id
        self._was[collection, id] = checksum(edited.value)
        self._record([Row(collection, id, edited.value)], {})
        return self._items[collection][id]

    def _adopt_edits(self, checks: "Sequence[Check]", writes: "Sequence[Write]") -> None:
        for part in (*checks, *writes):
            if is_plain(part.collection):
                id = getattr(part, "id", None)
                for name in [id] if isinstance(id, str) else self._disk.shelves.plain_names(part.collection):
                    self.get(part.collection, name)

    def _holds(self, check: "Check") -> bool:
        if isinstance(check, CollectionIs):
            return self.head(check.collection).revision == check.revision
        item = self.get(check.collection, check.id)
        return (item.revision if item else 0) == check.revision


class _BatchSnapshot:
    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._commits = batch.commits
        self.epoch = batch.state.epoch
        self.revision = batch.revision

    def __enter__(self) -> "_BatchSnapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def get(self, collection: str, id: str) -> Item | None:
        self._batch.check_unmoved(self._commits)
        return self._batch.get(collection, id)

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        self._batch.check_unmoved(self._commits)
        return self._batch.page(collection, after, limit, reverse)

    def head(self, collection: str) -> Head:
        self._batch.check_unmoved(self._commits)
        return self._batch.head(collection)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        self._batch.check_unmoved(self._commits)
        return [name for name in self._batch.collections(prefix) if name > after][:limit]
