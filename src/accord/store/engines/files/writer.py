"""The store as whoever holds its lock changes it: commits, what a crash left of them, the start of a new journal."""

import os

from accord import errors, platform
from accord.store.contract import KEPT_REVISIONS, MAX_PAGE, check_contents
from accord.store.engines.files import making
from accord.store.engines.files.journal import Journal
from accord.store.engines.files.records import Record, Row, encode, read
from accord.store.engines.files.redo import Layout, Redo
from accord.store.engines.files.shelves import checksum
from accord.store.engines.files.state import State
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.store.contract import Content, Item
    from accord.store.engines.files.disk import Disk
    from accord.store.engines.files.shelves import Edited

RESTART_EVERY = 1_000  # commits
RESTART_BYTES = 64 << 20
_LOADED_BYTES = 4 << 20  # at once; one value has at most 1.25 MiB


class Writer:
    def __init__(self, disk: "Disk") -> None:
        self._disk = disk
        self._root = disk.root
        self._redo = Redo(disk.shelves, f"{disk.root}/staged")
        self._recognised = (0, 0, 0)  # the stamp of the store, when it was one that this accord knows

    def settle(self) -> State:
        """The state, once what a crash left unfinished is finished."""
        self._refuse_newer_format()
        if not self._disk.journal.is_current():
            self._disk.open_journal()
        state = self._disk.look()[1]
        if (
            state is not None
            and state.settled
            and state.base == self._disk.journal.base
            and state.end == self._disk.journal.size()
        ):
            return state
        return self._recover()

    def _refuse_newer_format(self) -> None:
        """A newer accord may have taken the store over after it was opened here."""
        stamp = making.stamp(self._root)
        if stamp != self._recognised:
            making.read_lock_kind(self._root)
            self._recognised = stamp

    def publish(self, records: list[Record], state: State) -> State:
        """Commit: an error before the journal is flushed leaves nothing, and after it the commit has happened."""
        layout = Layout(records)
        self._redo.stage(layout)
        end = self._disk.journal.append(encode(records), state.end)
        try:
            self._disk.state_file.write(State(state.epoch, state.revision, state.floor, state.base, state.end, False))
            edits = self._redo.lay_out(layout)
            state = State(state.epoch, records[-1].revision, state.floor, state.base, end, True)
            self._disk.state_file.write(state)
        except (OSError, errors.AccordError) as error:
            raise errors.OutcomeUnknown(path=self._root, reason=str(error)) from None
        return self._publish_edits(edits, layout, state)

    def _publish_edits(self, edits: "list[Edited]", layout: Layout, state: State) -> State:
        """What people saved while others' commits were laid out comes after those."""
        if not edits:
            return state
        records = []
        for revision, edited in enumerate(edits, state.revision + 1):
            collection, id = edited.collection, edited.id
            row = Row(collection, id, edited.value, checksum(layout.rows[collection, id][0].value))
            records.append(Record(revision, [row], {collection: self._disk.shelves.head(collection).last}))
        return self.publish(records, state)

    def restart_if_due(self, state: State) -> None:
        """Start the journal anew once it is long; should that fail, the old one goes on."""
        if state.revision - state.base >= RESTART_EVERY or state.end > RESTART_BYTES:
            try:
                self.restart(state.epoch, state)
            except (OSError, errors.AccordError):
                self.settle()

    def restart(self, epoch: str, state: State) -> State:
        """Make all that is laid out durable, so that a new journal can start from there."""
        records, _ = read(self._disk.journal, self._disk.journal.start, state.end)
        if records:
            self._disk.log.write([record.change() for record in records])
        old, floor = self._disk.log.old(state.revision - KEPT_REVISIONS, state.floor)
        state = self._new_journal(epoch, state.revision, floor)
        # Not before the new floor is durable: a watch would find no log where the old floor promises one.
        for log in old:
            self._disk.log.remove(log)
        return state

    def load(self, contents: "Iterable[Content]", state: State) -> State:
        """Fill the empty store. The new journal, of revision 1, makes it so; until then it counts as empty."""
        if state.revision or _has_files(f"{self._root}/data"):
            raise errors.StoreNotEmpty(path=self._root)
        try:
            os.close(folder.open_private(self._loading))
            folder.flush_folder(self._root)
            self._disk.state_file.write(State(state.epoch, 0, 0, 0, state.end, False))
            for collection, last, items in check_contents(contents):
                self._load_collection(collection, last, items)
            state = self._new_journal(state.epoch, 1, 1)
            os.unlink(self._loading)
        except OSError as error:
            raise folder.refusal(error, self._root) from None
        return state

    @property
    def _loading(self) -> str:
        return f"{self._root}/store.loading"

    def _recover(self) -> State:
        """Lay out the whole journal again: what is there already stays as it is."""
        journal = self._disk.journal
        try:
            if os.path.lexists(self._loading):
                self._undo_load()
            records, end = read(journal, journal.start)
            journal.cut(end)
            journal.flush()
            layout = Layout(records)
            self._redo.tidy(layout)
            self._redo.stage(layout)
            self._disk.state_file.write(State(journal.epoch, journal.base, journal.floor, journal.base, end, False))
            edits = self._redo.lay_out(layout)
            revision = records[-1].revision if records else journal.base
            state = State(journal.epoch, revision, journal.floor, journal.base, end, True)
            self._disk.state_file.write(state)
        except OSError as error:
            raise folder.refusal(error, self._root) from None
        state = self._publish_edits(edits, layout, state)
        self._disk.bell.ring(state.epoch, state.revision)
        return state

    def _undo_load(self) -> None:
        if self._disk.journal.base == 0:
            _remove_tree(f"{self._root}/data")
            folder.make_folder(f"{self._root}/data")
        os.unlink(self._loading)

    def _load_collection(self, collection: str, last: int, items: "Iterable[Item]") -> None:
        record = Record(1, [], {collection: last})
        size = 0
        for item in items:
            record.rows.append(Row(collection, item.id, item.value))
            size += len(item.value)
            if len(record.rows) == MAX_PAGE or size > _LOADED_BYTES:
                self._lay_out_loaded(record)
                record.rows.clear()
                size = 0
        self._lay_out_loaded(record)

    def _lay_out_loaded(self, record: Record) -> None:
        layout = Layout([record])
        self._redo.stage(layout)
        self._redo.lay_out(layout)

    def _new_journal(self, epoch: str, base: int, floor: int) -> State:
        path = f"{self._root}/journal"
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            platform.flush_tree(root)
        finally:
            os.close(root)
        Journal.write_new(f"{path}.new", epoch, base, floor)
        os.rename(f"{path}.new", path)
        folder.flush_folder(self._root)
        self._disk.open_journal()
        state = State(epoch, base, floor, base, self._disk.journal.start, True)
        self._disk.state_file.write(state)
        return state


def _has_files(path: str) -> bool:
    return any(files for _, _, files in os.walk(path))


def _remove_tree(path: str) -> None:
    import shutil

    shutil.rmtree(path)
