"""Everything of a store into another, of any engine: loaded, compared, what differs put right, and only then whole.

The copy has two items more than what it is a copy of, in the collection `migration`:

from        what it was filled from, and up to where; written by the last commit
unfinished  there until everything was compared: no home opens the copy before

Both come with the load, so that whatever is cut short is empty, or unfinished. docs/design/migrate.md has the reasons.
"""

from accord import errors
from accord.services.migrate import compare, documents, reading
from accord.services.migrate.copy import Copy, Origin, Overtaken
from accord.store.contract import UNFINISHED, Moved
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accord.services.migrate.reading import Amount
    from accord.store.contract import Content, Item
    from accord.store.protocols import Snapshot, Store

    Progress = Callable[[int, int], None]  # how much of how much is done

_ROUNDS = 20  # of a source that is changed all the time
_TRIES = 3  # with a copy that others are at


class Done:
    """What a migration has come to."""

    def __init__(self, how: str, amount: "Amount", revision: str, copy: "Copy") -> None:
        self.how = how
        self.amount = amount
        self.revision = revision  # of the source, that all this is as of
        self.copied_to = copy.place
        self.mended = copy.written  # writes that made the same what was not


class Migration:
    """From one store to another; both are opened as they are, so that what is encrypted stays so."""

    def __init__(self, source: "Store", source_name: str, target: "Store", target_name: str) -> None:
        self._source = source
        self._target = target
        self._target_name = target_name
        self.origin = origin_of(source, source_name)
        with target.snapshot() as view:
            if view.epoch == self.origin.epoch:
                raise errors.Usage(reason="--from and --to are the same store", see="accord migrate --help")

    def look(self) -> Copy:
        """What there is of the copy; an error where its place holds anything else."""
        return Copy(self._target, self._target_name, self.origin)

    def run(self, finish: "Callable[[str], None]", progress: "Progress") -> Done:
        """Copy what is missing, compare everything, and call it whole after `finish` was called with its epoch."""
        for _ in range(_TRIES):
            try:
                return self._run(self.look(), finish, progress)
            except Overtaken:
                pass
        raise errors.StoreNotEmpty(path=self._target_name)

    def _run(self, copy: Copy, finish: "Callable[[str], None]", progress: "Progress") -> Done:
        how = "compared" if copy.is_whole else "resumed"
        counted = count(self._source, self.origin.name)
        steps = _Steps(progress, counted.items * (1 if copy.revision else 2))
        if not copy.revision:
            how = "copied"
            with reading.Reader(self._source, self.origin.name) as reader:
                self._target.load(_contents(reader, copy, steps))
            copy = self.look()
        amount, revision = self._settle(copy, steps)
        finish(copy.epoch)
        copy.finish(revision)
        steps.end()
        return Done(how, amount, f"{self.origin.epoch}.{revision}", copy)

    def _settle(self, copy: Copy, steps: "_Steps") -> "tuple[Amount, int]":
        """Compare, and mend, until the copy is all that the source holds, and that has not changed meanwhile."""
        known = compare.Known()
        for _ in range(_ROUNDS):
            try:
                with self._source.snapshot() as view:
                    revision = self._compare(view, copy, known, steps)
                if reading.revision_of(self._source) == revision:
                    return known.amount(), revision
            except Moved:
                pass
        raise errors.SourceBusy(path=self.origin.name)

    def _compare(self, view: "Snapshot", copy: Copy, known: compare.Known, steps: "_Steps") -> int:
        """One round; `Moved` where the source cannot show any more what it was when the round began."""
        self._check_epoch(view)
        for collection in reading.collections(view):
            known.follow(view, copy, collection, steps.step)
        if not known.has_all(reading.collections_of(self._target)):
            raise errors.StoreNotEmpty(path=self._target_name)
        documents.keep_edits(view, copy)
        copy.flush()
        return view.revision

    def _check_epoch(self, view: "Snapshot") -> None:
        if view.epoch != self.origin.epoch:
            raise errors.SourceBusy(path=self.origin.name)


def count(source: "Store", name: str) -> "Amount":
    """How much there is, as of some moment, or of several while others change it."""
    with reading.Reader(source, name) as reader:
        return reading.amount(reader)


def origin_of(source: "Store", name: str) -> Origin:
    """An error where there is nothing to be copied, or only an unfinished copy."""
    unfinished, place = transact(source, lambda tx: (tx.get(*UNFINISHED), tx.revision))
    epoch, _, revision = place.rpartition(".")
    if revision == "0":
        raise errors.NothingToMigrate(path=name)
    if unfinished is not None:
        raise errors.MigrationUnfinished(path=name, source=unfinished.value.decode())
    return Origin(name, epoch, int(revision))


class _Steps:
    """How far it is; what was counted is not always what there is in the end."""

    def __init__(self, progress: "Progress", total: int) -> None:
        self._progress = progress
        self._total = max(total, 1)
        self._done = 0

    def step(self) -> None:
        self._done += 1
        if self._done % 100 == 0:
            self._progress(min(self._done, self._total - 1), self._total)

    def end(self) -> None:
        self._progress(self._total, self._total)


def _contents(reader: "reading.Reader", copy: Copy, steps: "_Steps") -> "Iterator[Content]":
    for collection in reader.collections():
        last = reader.last(collection)
        yield collection, last, _counted(reader.items(collection, last), steps)
    yield copy.mark()


def _counted(items: "Iterator[Item]", steps: "_Steps") -> "Iterator[Item]":
    for item in items:
        steps.step()
        yield item
