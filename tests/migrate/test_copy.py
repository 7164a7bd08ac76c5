"""A copy has all that its source has, on any engine, whatever happens to either meanwhile."""

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accord import errors
from accord.services.migrate import Migration, reading
from accord.services.migrate import count as counted
from accord.store.contract import LOCK_WAIT_S, UNFINISHED, Append, Delete, Head, Item, Number, Put, number_id
from accord.store.open import open_store
from accord.store.protocols import Snapshot, Store
from accord.store.wrap.around import AroundSnapshot, AroundStore
from accord.testing.conformance.tools import revision_of
from tests.conformance.engines import ENGINES, Engine
from tests.migrate.conftest import MEMORY
from tests.migrate.held import Held, any_held, fill, held, migrated, nothing, some, unseen
from tests.often import often

if TYPE_CHECKING:
    from accord.store.contract import Write

pytestmark = pytest.mark.covers("S11")


def legs() -> list[Any]:
    """Each engine once as the source and once as the target, and every pair in `make test-more`."""
    found: list[Any] = []
    for at, source in enumerate(ENGINES):
        for target in ENGINES:
            is_next = target is ENGINES[(at + 1) % len(ENGINES)]
            marks = [] if is_next else [pytest.mark.more]
            found.append(pytest.param(source, target, id=f"{source.name}-{target.name}", marks=marks))
    return found


every_leg = pytest.mark.parametrize(("source", "target"), legs())
every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


@pytest.fixture
def new(quick_path: Path) -> Iterator[Callable[[Engine], Store]]:
    """Opens an empty store of an engine."""
    with ExitStack() as stack:
        numbers = count()
        yield lambda engine: stack.enter_context(closing(engine.at(quick_path / str(next(numbers)))()))


@every_leg
def test_there_and_back_again(source: Engine, target: Engine) -> None:
    @given(any_held())
    @settings(max_examples=often(8 if source.server or target.server else 40), database=None)
    def check(wanted: Held) -> None:
        with TemporaryDirectory(dir=MEMORY) as folder, ExitStack() as stack:
            first, second, third = [
                stack.enter_context(closing(engine.at(Path(folder) / name)()))
                for name, engine in (("a", source), ("b", target), ("c", source))
            ]
            fill(first, wanted)
            amounts = [migrated(first, second).amount, migrated(second, third).amount]
            assert held(first) == held(second) == held(third) == wanted
            assert len({amount.checksum for amount in amounts}) == 1
            assert amounts[0].items == sum(len(items) for _, items in wanted.values())
            assert revision_of(first) == 1

    check()


@every_leg
def test_what_changed_since_is_caught_up(source: Engine, target: Engine) -> None:
    """A second run copies what is new in the source, and leaves the rest."""

    @given(any_held(), any_held())
    @settings(
        max_examples=often(8 if source.server or target.server else 40),
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    def check(before: Held, after: Held) -> None:
        with TemporaryDirectory(dir=MEMORY) as folder, ExitStack() as stack:
            first = stack.enter_context(closing(source.at(Path(folder) / "a")()))
            second = stack.enter_context(closing(target.at(Path(folder) / "b")()))
            fill(first, before)
            migrated(first, second)
            _bring(first, before, after)
            done = migrated(first, second)
            assert done.how == "compared"
            assert held(second) == held(first)
            assert all(held(second).get(name, (0, []))[1] == items for name, (_, items) in after.items())

    check()


def _bring(store: Store, before: Held, after: Held) -> None:
    """What commits can make of one what the other is: numbers only grow."""
    for name in {**before, **after}:
        last, items = before.get(name, (0, []))
        for _ in range(last, after.get(name, (0, []))[0]):
            store.commit([], [Append(name, b""), Delete(name, Number(0))])
        for id in dict(items).keys() - dict(after.get(name, (0, []))[1]).keys():
            store.commit([], [Delete(name, id)])
        for id, value in after.get(name, (0, []))[1]:
            store.commit([], [Put(name, id, value)])


@every_engine
def test_the_source_stays_as_it_is(engine: Engine, new: Callable[[Engine], Store]) -> None:
    source = new(engine)
    some(source)
    before, revision = held(source), revision_of(source)
    migrated(source, new(ENGINES[0]))
    assert (held(source), revision_of(source)) == (before, revision)


@every_engine
def test_others_on_the_same_server_are_no_rivals_for_the_copy(engine: Engine, new: Callable[[Engine], Store]) -> None:
    """Their commits may take revisions; the copy is compared, and not begun anew."""
    source, target = new(engine), new(engine)
    some(source)
    migrated(source, target)
    for n in range(5):
        source.commit([], [Put("new", f"n{n}", b"")])
    done = migrated(source, target)
    assert (done.how, held(target)) == ("compared", held(source))


@every_engine
def test_the_copy_goes_on(engine: Engine, new: Callable[[Engine], Store]) -> None:
    source, target = new(ENGINES[0]), new(engine)
    some(source)
    done = migrated(source, target)
    assert (done.how, done.mended) == ("copied", 0)
    assert target.commit([], [Append("mail/ann", b"next")]).numbers == (13,)
    assert target.commit([], [Append("gone", b"next")]).numbers == (1,)
    with target.snapshot() as there, source.snapshot() as here:
        assert there.epoch != here.epoch
        assert there.get(*UNFINISHED) is None
    with pytest.raises(errors.HistoryGone), target.watch([""], 0) as watch:
        watch.next(0)


class _Busy(AroundStore):
    """A source in which something happens with every so many reads, so often."""

    def __init__(self, store: Store, every: int, times: int) -> None:
        super().__init__(store)
        self._every = every
        self._left = times
        self._reads = 0

    def snapshot(self) -> Snapshot:
        return _BusySnapshot(self._ledger.snapshot(), self._happen)

    def _happen(self) -> None:
        self._reads += 1
        if self._left and self._reads % self._every == 0:
            n = self._left = self._left - 1
            writes: list[Write] = [
                Append("mail/ann", b"late %d" % n),
                Put("tasks", f"t{n}", b"late"),
                Delete("tasks", f"t{n + 5}"),
            ]
            self._ledger.commit([], [*writes, Put(f"new/c{n % 7}", "x", b"")])

    commit = None  # nobody writes to a source


class _BusySnapshot(AroundSnapshot):
    def __init__(self, inner: Snapshot, happen: Callable[[], None]) -> None:
        super().__init__(inner)
        self._happen = happen
        inner.revision  # noqa: B018  # fixes the view

    def get(self, collection: str, id: str) -> Item | None:
        self._happen()
        return self.inner.get(collection, id)

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> Sequence[Item]:
        self._happen()
        return self.inner.list(collection, after, limit, reverse)

    def head(self, collection: str) -> Head:
        self._happen()
        return self.inner.head(collection)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        self._happen()
        return self.inner.collections(prefix, after, limit)


@every_engine
@pytest.mark.parametrize("every", [1, 2, 5, 9])
def test_a_source_that_is_changed_meanwhile(engine: Engine, every: int, new: Callable[[Engine], Store]) -> None:
    source, target = new(engine), new(ENGINES[0])
    some(source)
    done = migrated(_Busy(source, every, 6), target)  # type: ignore[arg-type]
    assert held(target) == held(source)
    assert done.amount.checksum == counted(source, "").checksum
    assert done.revision.endswith(f".{revision_of(source)}")


@every_engine
def test_a_source_that_never_rests(engine: Engine, new: Callable[[Engine], Store]) -> None:
    source, target = new(engine), new(ENGINES[0])
    some(source)
    with pytest.raises(errors.SourceBusy):
        migrated(_Busy(source, 3, 100_000), target)  # type: ignore[arg-type]
    done = migrated(source, target)
    assert done.how in ("resumed", "copied")  # an engine without versions may not even have come to the load
    assert held(target) == held(source)


@every_engine
def test_a_copy_that_was_used_is_left_alone(engine: Engine, new: Callable[[Engine], Store]) -> None:
    source, target = new(ENGINES[0]), new(engine)
    some(source)
    revision = migrated(source, target).revision.rpartition(".")[2]
    source.commit([], [Put("tasks", "late", b"")])
    target.commit([], [Put("mine", "x", b"")])
    before = held(target)
    with pytest.raises(errors.MigratedBefore) as refused:
        migrated(source, target)
    assert refused.value.details["revision"] == int(revision)
    assert refused.value.details["now"] == int(revision) + 1
    assert held(target) == before


@every_engine
def test_a_place_that_holds_something_else_is_left_alone(engine: Engine, new: Callable[[Engine], Store]) -> None:
    source, other, target, copy = new(ENGINES[0]), new(ENGINES[0]), new(engine), new(engine)
    some(source)
    some(other)
    migrated(other, copy)
    target.commit([], [Put("mine", "x", b"")])
    for place in (target, copy):
        before = held(place)
        with pytest.raises(errors.StoreNotEmpty):
            migrated(source, place)
        assert held(place) == before


def test_there_is_nothing_in_the_source(new: Callable[[Engine], Store]) -> None:
    with pytest.raises(errors.NothingToMigrate):
        migrated(new(ENGINES[0]), new(ENGINES[0]))


def test_the_source_is_the_target(new: Callable[[Engine], Store]) -> None:
    source = new(ENGINES[0])
    some(source)
    with pytest.raises(errors.Usage, match="the same store"):
        migrated(source, source)


def test_an_unfinished_copy_is_no_source(new: Callable[[Engine], Store]) -> None:
    source, target = new(ENGINES[0]), new(ENGINES[0])
    some(source)
    with pytest.raises(KeyError):
        Migration(source, "a", target, "b").run(_stop, unseen)
    with pytest.raises(errors.MigrationUnfinished):
        migrated(target, new(ENGINES[0]))
    assert migrated(source, target).how == "resumed"


def test_what_others_put_into_an_unfinished_copy_is_found(new: Callable[[Engine], Store]) -> None:
    source, target = new(ENGINES[0]), new(ENGINES[0])
    some(source)
    with pytest.raises(errors.StoreNotEmpty):
        Migration(source, "a", target, "b").run(lambda epoch: _put(target, "mine", "x"), unseen)
    with pytest.raises(errors.StoreNotEmpty):
        migrated(source, target)


def test_what_others_put_where_the_copy_lies_is_mended(new: Callable[[Engine], Store]) -> None:
    source, target = new(ENGINES[0]), new(ENGINES[0])
    some(source)
    puts = [lambda: _put(target, "tasks", "x")]
    Migration(source, "a", target, "b").run(lambda epoch: puts.pop()() if puts else None, unseen)
    assert held(target) == held(source)


def _put(store: Store, collection: str, id: str) -> None:
    store.commit([], [Put(collection, id, b"")])


def _stop(epoch: str) -> None:
    raise KeyError


class _Lossy(AroundStore):
    """A target that takes what it is given and has something else then."""

    def __init__(self, store: Store, lasting: bool) -> None:
        super().__init__(store)
        self._lasting = lasting

    def snapshot(self) -> Snapshot:
        return self._ledger.snapshot()

    def load(self, contents: object) -> None:
        def lossy() -> Iterator[object]:
            for name, last, items in contents:  # type: ignore[attr-defined]
                yield name, last, (item for item in items if item.id != "t3")

        self._ledger.load(lossy())  # type: ignore[arg-type]

    def commit(self, checks: object, writes: object, snapshot: object = None, timeout_s: float = LOCK_WAIT_S) -> object:
        if self._lasting:
            writes = [Put("tasks", "t3", b"wrong") if getattr(one, "id", "") == "t3" else one for one in writes]  # type: ignore[attr-defined]
        return self._ledger.commit(checks, writes, None, timeout_s)  # type: ignore[arg-type]


def test_what_a_target_lost_is_found_and_mended(new: Callable[[Engine], Store]) -> None:
    source, target = new(ENGINES[0]), new(ENGINES[0])
    some(source)
    assert migrated(source, _Lossy(target, lasting=False)).mended == 1  # type: ignore[arg-type]
    assert held(target) == held(source)


def test_what_a_target_loses_again_and_again_is_said(new: Callable[[Engine], Store]) -> None:
    source, target = new(ENGINES[0]), new(ENGINES[0])
    some(source)
    with pytest.raises(errors.CopyDiffers, match="tasks"):
        migrated(source, _Lossy(target, lasting=True))  # type: ignore[arg-type]
    with target.snapshot() as view:
        assert view.get(*UNFINISHED) is not None


def test_two_at_once(new: Callable[[Engine], Store]) -> None:
    """One that comes while another is about to finish finishes it, and the other one finds it so."""
    source, target = new(ENGINES[0]), new(ENGINES[0])
    some(source)

    def overtake(epoch: str) -> None:
        assert migrated(source, target).how == "resumed"

    overtakes = iter([overtake])
    done = Migration(source, "a", target, "b").run(lambda epoch: next(overtakes, nothing)(epoch), unseen)
    assert done.how == "compared"
    assert held(target) == held(source)
    assert migrated(source, target).mended == 0


@every_engine
@pytest.mark.parametrize("is_pending", [True, False])
def test_what_was_edited_by_hand_still_counts_as_such(
    engine: Engine, is_pending: bool, new: Callable[[Engine], Store]
) -> None:
    """What tells is which revision is later, and of those nothing is left in a copy."""
    source, target = new(ENGINES[0]), new(engine)
    source.commit([], [Put("doc", "plan", b"one"), Append("version/plan", b"one")])
    source.commit([], [Put("doc", "plan", b"two")])
    if not is_pending:
        source.commit([], [Put("doc", "plan", b"two"), Append("version/plan", b"two")])
    migrated(source, target)
    assert _is_newer(target) is is_pending
    assert migrated(source, target).mended == 0
    if not is_pending:
        source.commit([], [Put("doc", "plan", b"three")])
        migrated(source, target)
        assert _is_newer(target)
        source.commit([], [Put("doc", "plan", b"three"), Append("version/plan", b"three")])
        migrated(source, target)
        assert not _is_newer(target)
        assert held(target) == held(source)


def _is_newer(store: Store) -> bool:
    with store.snapshot() as view:
        text, [version] = view.get("doc", "plan"), view.list("version/plan", limit=1, reverse=True)
        assert text is not None
        return text.revision > version.revision


@given(st.lists(st.integers(0, 1_310_720), min_size=1, max_size=40))
def test_pages_stay_small(sizes: list[int]) -> None:
    """However large what comes next is, no more than some hundred MiB are asked for."""
    items = [Item(f"{at:04}", bytes(size), 1) for at, size in enumerate(sizes)]
    asked = []

    def page(after: str, limit: int) -> list[Item]:
        asked.append(limit)
        return [item for item in items if item.id > after][:limit]

    assert list(reading._paged(page)) == items
    assert max(asked) <= 1000


@every_engine
def test_progress_is_told_up_to_the_end(engine: Engine, new: Callable[[Engine], Store]) -> None:
    source, told = new(engine), []
    fill(source, {"many": (0, [(f"i{n:04}", b"") for n in range(1000)])})
    Migration(source, "a", new(ENGINES[0]), "b").run(nothing, lambda done, total: told.append((done, total)))
    assert len(told) > 10
    assert told == sorted(told)
    assert told[-1] == (2000, 2000)
    assert all(done < total for done, total in told[:-1])


def test_numbers_that_were_skipped(new: Callable[[Engine], Store]) -> None:
    """A number used in another collection raises that collection's last number to itself."""
    source, target = new(ENGINES[0]), new(ENGINES[0])
    some(source)
    migrated(source, target)
    for _ in range(200):
        source.commit([], [Append("counted", b"")])
    source.commit([], [Append("counted", b""), Put("raised", Number(0), b"x")])
    migrated(source, target)
    assert held(target) == held(source)
    assert target.commit([], [Append("raised", b"")]).numbers == (202,)
    assert held(target)["raised"][1][0] == (number_id(201), b"x")


def test_it_is_opened_where_it_lies(tmp_path: Path) -> None:
    """By its URL, it is the same store afterwards."""
    with closing(open_store(f"sqlite:{tmp_path}/a")) as source, closing(open_store(f"files:{tmp_path}/b")) as target:
        some(source)
        migrated(source, target)
        wanted = held(source)
    with closing(open_store(f"files:{tmp_path}/b")) as again:
        assert held(again) == wanted


# Not etcd and firebase: a page is text there, and takes as much memory as all of this.
@pytest.mark.parametrize("engine", [
    pytest.param(engine, id=engine.name, marks=[pytest.mark.more] if engine.server else [])
    for engine in ENGINES if engine.name in ("sqlite", "files", "redis")
])  # fmt: skip
def test_it_needs_little_memory_for_large_values(engine: Engine, new: Callable[[Engine], Store]) -> None:
    count, size = 80, 1 << 20
    source, target = new(ENGINES[1]), new(engine)
    for number in range(count):
        source.commit([], [Append("x", bytes([number]) * size)])
    tracemalloc.start()
    try:
        migrated(source, target)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < count * size / 2
