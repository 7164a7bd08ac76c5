"""The folder of a store: what lies in it, how commits get there, and how an unfinished one is finished.

store        what this is: the format, the kind of lock
lock         (or lock.d) held by the one who changes anything
journal      the commits since the last restart of the journal
state        how far they are laid out
bell         rung after each commit
data/        the items
log/         the changes of earlier journals, one file each, named by its first revision
staged/      files of the commit that is being made, before they are moved into place
"""

import os
from itertools import pairwise

from accord import errors, platform
from accord.store.contract import KEPT_REVISIONS, MAX_PAGE, Change, check_contents
from accord.store.engines.files import making
from accord.store.engines.files.journal import Journal, Record, Row
from accord.store.engines.files.redo import Layout, Redo, write_new
from accord.store.engines.files.shelves import Shelves, checksum, read
from accord.store.engines.files.state import State, StateFile, decode
from accord.store.local import folder
from accord.store.local.bell import Bell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.store.contract import Content, Item
    from accord.store.engines.files.shelves import Edited
    from accord.store.local.watch import Log

RESTART_EVERY = 1_000  # commits
RESTART_BYTES = 64 << 20


class Behind(Exception):
    """The state is behind the journal: a crash came between the two."""


class Disk:
    def __init__(self, root: str, lock_kind: str) -> None:
        self.root = root
        self.lock = making.open_or_make(root, lock_kind)
        self.bell = Bell(f"{root}/bell")
        self.shelves = Shelves(f"{root}/data")
        self._redo = Redo(self.shelves, f"{root}/staged")
        self._state_file = StateFile(f"{root}/state")
        self._journal = Journal(f"{root}/journal")  # used under the lock only
        self._seen: tuple[bytes, State | None] = (b"", None)
        self._place = (-1, 0, 0)  # a journal's base, a revision in it, and where that record ends

    def close(self) -> None:
        for part in (self.lock, self.bell, self._state_file, self._journal):
            part.close()

    # Without the lock.

    def look(self) -> tuple[bytes, State | None]:
        """The state as it lies there, and what it says; None when only the journal can tell."""
        seen = self._state_file.look()
        if seen != self._seen[0]:
            self._seen = seen, decode(seen)
        return self._seen

    def is_unchanged(self, seen: bytes) -> bool:
        return self._state_file.look() == seen

    def changes(self, since: int, state: State) -> "Log":
        """A page of the changes after `since`, out of the journal or of the log of an earlier one."""
        from accord.store.local.watch import Log

        if since < state.base:
            changes = self._logged_changes(since, state) if since >= state.floor else []
            return Log(state.epoch, state.floor, changes[-1].revision if changes else state.revision, changes)
        changes = self._journal_changes(since, state)
        newest = state.revision if len(changes) < MAX_PAGE else changes[MAX_PAGE - 1].revision
        return Log(state.epoch, state.floor, newest, changes[:MAX_PAGE])

    # Under the lock.

    def settle(self) -> State:
        """The state, once what a crash left unfinished is finished."""
        if not self._journal.is_current():
            self._journal.close()
            self._journal = Journal(f"{self.root}/journal")
        state = self.look()[1]
        if (
            state is not None
            and state.settled
            and state.base == self._journal.base
            and state.end == self._journal.size()
        ):
            return state
        return self._recover()

    def publish(self, records: list[Record], state: State) -> State:
        """Commit: an error before the journal is flushed leaves nothing, and after it the commit has happened."""
        layout = Layout(records)
        self._redo.stage(layout)
        end = self._journal.append(records, state.end)
        try:
            self._state_file.write(State(state.epoch, state.revision, state.floor, state.base, state.end, False))
            edits = self._redo.lay_out(layout)
            state = State(state.epoch, records[-1].revision, state.floor, state.base, end, True)
            self._state_file.write(state)
        except (OSError, errors.AccordError) as error:
            raise errors.OutcomeUnknown(path=self.root, reason=str(error)) from None
        return self._publish_edits(edits, layout, state)

    def _publish_edits(self, edits: "list[Edited]", layout: Layout, state: State) -> State:
        """What people saved while others' commits were laid out comes after those."""
        if not edits:
            return state
        records = []
        for revision, edited in enumerate(edits, state.revision + 1):
            collection, id = edited.collection, edited.id
            row = Row(collection, id, edited.value, checksum(layout.rows[collection, id][0].value))
            records.append(Record(revision, [row], {collection: self.shelves.head(collection).last}))
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
        records, _ = self._journal.read(self._journal.start, state.end)
        if records:
            self._write_log([record.change() for record in records])
        old, floor = self._old_logs(state.revision - KEPT_REVISIONS, state.floor)
        state = self._new_journal(epoch, state.revision, floor)
        # Not before the new floor is durable: a watch would find no log where the old floor promises one.
        for log in old:
            self._remove_log(log)
        return state

    def load(self, contents: "Iterable[Content]", state: State) -> State:
        """Fill the empty store. The new journal, of revision 1, makes it so; until then it counts as empty."""
        if state.revision or _has_files(f"{self.root}/data"):
            raise errors.StoreNotEmpty(path=self.root)
        try:
            os.close(folder.open_private(self._loading))
            folder.flush_folder(self.root)
            self._state_file.write(State(state.epoch, 0, 0, 0, state.end, False))
            for collection, last, items in check_contents(contents):
                self._load_collection(collection, last, items)
            state = self._new_journal(state.epoch, 1, 1)
            os.unlink(self._loading)
        except OSError as error:
            raise folder.refusal(error, self.root) from None
        return state

    @property
    def _loading(self) -> str:
        return f"{self.root}/store.loading"

    def _recover(self) -> State:
        """Lay out the whole journal again: what is there already stays as it is."""
        journal = self._journal
        try:
            if os.path.lexists(self._loading):
                self._undo_load()
            records, end = journal.read(journal.start)
            journal.cut(end)
            journal.flush()
            layout = Layout(records)
            self._redo.tidy(layout)
            self._redo.stage(layout)
            self._state_file.write(State(journal.epoch, journal.base, journal.floor, journal.base, end, False))
            edits = self._redo.lay_out(layout)
            revision = records[-1].revision if records else journal.base
            state = State(journal.epoch, revision, journal.floor, journal.base, end, True)
            self._state_file.write(state)
        except OSError as error:
            raise folder.refusal(error, self.root) from None
        state = self._publish_edits(edits, layout, state)
        self.bell.ring(state.epoch, state.revision)
        return state

    def _undo_load(self) -> None:
        if self._journal.base == 0:
            _remove_tree(f"{self.root}/data")
            folder.make_folder(f"{self.root}/data")
        os.unlink(self._loading)

    def _load_collection(self, collection: str, last: int, items: "Iterable[Item]") -> None:
        record = Record(1, [], {collection: last})
        for item in items:
            record.rows.append(Row(collection, item.id, item.value))
            if len(record.rows) == MAX_PAGE:
                self._lay_out_loaded(record)
                record.rows.clear()
        self._lay_out_loaded(record)

    def _lay_out_loaded(self, record: Record) -> None:
        layout = Layout([record])
        self._redo.stage(layout)
        self._redo.lay_out(layout)

    def _new_journal(self, epoch: str, base: int, floor: int) -> State:
        path = f"{self.root}/journal"
        root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            platform.flush_tree(root)
        finally:
            os.close(root)
        Journal.write_new(f"{path}.new", epoch, base, floor)
        os.rename(f"{path}.new", path)
        folder.flush_folder(self.root)
        self._journal.close()
        self._journal = Journal(path)
        state = State(epoch, base, floor, base, self._journal.start, True)
        self._state_file.write(state)
        return state

    # The log of changes.

    def _write_log(self, changes: list[Change]) -> None:
        lines = [f"{change.revision} {' '.join([word for key in change.keys for word in key])}" for change in changes]
        path = f"{self.root}/log/{changes[0].revision:016d}"
        write_new(f"{path}.new", ("\n".join(lines) + "\n").encode())
        os.rename(f"{path}.new", path)

    def _old_logs(self, up_to: int, floor: int) -> tuple[list[int], int]:
        """The logs that hold nothing after `up_to`, and what the floor is without them."""
        old = [(log, following - 1) for log, following in pairwise(self._logs()) if following - 1 <= up_to]
        return [log for log, _ in old], max([floor, *[end for _, end in old]])

    def _remove_log(self, log: int) -> None:
        try:
            os.unlink(f"{self.root}/log/{log:016d}")
        except OSError:
            pass  # the next restart finds it again

    def _logs(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(f"{self.root}/log") if name.isdigit())

    def _logged_changes(self, since: int, state: State) -> list[Change]:
        """Those after `since`, which the floor says are kept, out of one log."""
        first = max((log for log in self._logs() if log <= since + 1), default=0)
        data = read(f"{self.root}/log/{first:016d}") or b""
        changes = [_parse_change(line) for line in data.decode().splitlines()]
        changes = [change for change in changes if change.revision > since]
        if not changes or changes[0].revision != since + 1:
            raise errors.HistoryGone(since=since, oldest=state.base)  # somebody removed the log
        return changes

    def _journal_changes(self, since: int, state: State) -> list[Change]:
        journal = Journal(f"{self.root}/journal")
        try:
            if journal.base != state.base:
                raise Behind
            base, revision, place = self._place
            start = place if (base, revision) == (state.base, since) else journal.start
            records, end = journal.read(start, state.end)
        finally:
            journal.close()
        self._place = state.base, state.revision, end
        return [record.change() for record in records if record.revision > since]


def _parse_change(line: str) -> Change:
    revision, *words = line.split(" ")
    return Change(int(revision), tuple(zip(words[::2], words[1::2], strict=True)))


def _has_files(path: str) -> bool:
    return any(files for _, _, files in os.walk(path))


def _remove_tree(path: str) -> None:
    import shutil

    shutil.rmtree(path)
