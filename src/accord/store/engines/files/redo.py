"""Laying out commits in the items' files, for the first time or again: the result is the same."""

import os

from accord import platform
from accord.store.contract import Head, is_number
from accord.store.engines.files import crowd
from accord.store.engines.files.shelves import Edited, checksum, is_plain, label, read
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.files.records import Record, Row
    from accord.store.engines.files.shelves import Shelves

LOOK_EVERY = 64  # commits
MOST_MADE = 10_000


class Layout:
    """What a run of records comes to."""

    def __init__(self, records: "list[Record]") -> None:
        self.rows: dict[tuple[str, str], tuple[Row, int]] = {}  # the last row of each item, and its revision
        self.heads: dict[str, Head] = {}
        self.known: dict[tuple[str, str], set[str]] = {}  # checksums of plain files that are not by hand
        for record in records:
            for row in record.rows:
                key = row.collection, row.id
                self.rows[key] = row, record.revision
                if is_plain(row.collection):
                    self.known.setdefault(key, set()).update((row.was, checksum(row.value)))
            for collection, last in record.lasts.items():
                self.heads[collection] = Head(record.revision, last)


class Redo:
    def __init__(self, shelves: "Shelves", staged: str) -> None:
        self._shelves = shelves
        self._staged = staged
        self._made: set[str] = set()  # folders and heads that need not be made

    def tidy(self, layout: Layout) -> None:
        """Finish the splits of folders that a crash may have cut short."""
        rows = [row for row, _ in layout.rows.values() if _is_named(row)]
        ways = [crowd.way(self._shelves.folder(row.collection), row.id) for row in rows]
        for path in sorted({path for way in ways for path in way}):
            crowd.tidy(path)

    def stage(self, layout: Layout) -> None:
        """Write all that may need room, where nobody looks; a full disk is found here, before the commit."""
        try:
            for number, (row, revision) in enumerate(layout.rows.values()):
                if row.value is not None:
                    self._stage_row(number, row, revision)
            for collection in layout.heads:
                self._make_head(collection)
        except OSError as error:
            raise folder.refusal(error, self._staged) from None

    def lay_out(self, layout: Layout) -> list[Edited]:
        """Move what was staged into place; what people had written there meanwhile is given back."""
        edits = []
        for number, (row, _) in enumerate(layout.rows.values()):
            if _is_file_of_its_own(row):
                edits += self._replace_plain(number, row, layout.known[row.collection, row.id])
            elif row.value is None:
                self._remove(row)
            else:
                self._move(f"{self._staged}/{number}", self._shelves.item_path(row.collection, row.id))
        for collection, head in layout.heads.items():
            self._write_head(collection, head)
        self._split_crowds(layout)
        return edits

    def _stage_row(self, number: int, row: "Row", revision: int) -> None:
        value = row.value or b""
        if _is_file_of_its_own(row):
            # Flushed by itself: after a power cut a file half written would look like an edit by hand.
            write_new(f"{self._staged}/{number}", value, flush=True)
            write_new(f"{self._staged}/{number}.rev", label(revision, value))
        else:
            write_new(f"{self._staged}/{number}", label(revision, value) + value)
        self._make_folder(os.path.dirname(self._shelves.item_path(row.collection, row.id)))

    def _split_crowds(self, layout: Layout) -> None:
        """Now and then, since counting costs more than a commit."""
        rows = [(row, revision) for row, revision in layout.rows.values() if _is_named(row)]
        if len(rows) > LOOK_EVERY or any(revision % LOOK_EVERY == 0 for _, revision in rows):
            for path in {os.path.dirname(self._shelves.item_path(row.collection, row.id)) for row, _ in rows}:
                crowd.split_if_crowded(path)

    def _make_head(self, collection: str) -> None:
        path = self._shelves.head_path(collection)
        if path not in self._made and not os.path.exists(path):
            self._make_folder(os.path.dirname(path))
            self._write_head(collection, Head(0, 0))
        self._made.add(path)

    def _write_head(self, collection: str, head: Head) -> None:
        fd = folder.open_private(self._shelves.head_path(collection))
        try:
            os.pwrite(fd, b"%016d %016d\n" % (head.revision, head.last), 0)
        finally:
            os.close(fd)

    def _remove(self, row: "Row") -> None:
        path = self._shelves.item_path(row.collection, row.id)
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        if is_number(row.id):
            try:
                os.rmdir(os.path.dirname(path))
            except OSError:
                pass  # others are left in it

    def _replace_plain(self, number: int, row: "Row", known: set[str]) -> list[Edited]:
        """Replace a file that a person may be saving this moment: the old one is kept until it was looked at."""
        path = self._shelves.item_path(row.collection, row.id)
        label_path = self._shelves.label_path(row.collection, row.id)
        old_path = self._shelves.old_path(row.collection, row.id)
        edits = self._look_at_old(row, old_path, known)  # of a replacement that a crash cut short
        if row.value is None:
            _rename_if_there(path, old_path)
            folder.unlink_if_there(label_path)
        else:
            _link_if_there(path, old_path)
            self._move(f"{self._staged}/{number}", path)
            self._move(f"{self._staged}/{number}.rev", label_path)
        return edits + self._look_at_old(row, old_path, known)

    def _look_at_old(self, row: "Row", old_path: str, known: set[str]) -> list[Edited]:
        value = read(old_path)
        if value is None:
            return []
        if checksum(value) in known:
            os.unlink(old_path)
            return []
        return [Edited(row.collection, row.id, value)]  # the file stays until that edit is committed

    def _move(self, staged: str, path: str) -> None:
        try:
            os.rename(staged, path)
        except FileNotFoundError:
            folder.make_folder(os.path.dirname(path))  # another process removed it when it was empty
            os.rename(staged, path)

    def _make_folder(self, path: str) -> None:
        if path not in self._made:
            folder.make_folder(path)
            if len(self._made) > MOST_MADE:
                self._made.clear()
            self._made.add(path)


def _is_file_of_its_own(row: "Row") -> bool:
    return is_plain(row.collection) and not is_number(row.id)


def _is_named(row: "Row") -> bool:
    return not is_plain(row.collection) and not is_number(row.id)


def write_new(path: str, data: bytes, flush: bool = False) -> None:
    fd = folder.open_new(path)
    try:
        written = 0
        while written < len(data):
            written += os.write(fd, data[written:])
        if flush:
            platform.flush(fd)
    finally:
        os.close(fd)


def _link_if_there(path: str, other: str) -> None:
    folder.unlink_if_there(other)
    try:
        os.link(path, other)
    except FileNotFoundError:
        pass
    except PermissionError:
        os.rename(path, other)  # another user's, who saved it so that only they may write it


def _rename_if_there(path: str, other: str) -> None:
    try:
        os.rename(path, other)
    except FileNotFoundError:
        pass
