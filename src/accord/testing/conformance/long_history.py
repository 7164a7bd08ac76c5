"""How far back a watch may start. Each check makes more than 100,000 commits, which takes some engines hours."""

from accord import errors
from accord.store.contract import KEPT_REVISIONS, TRIM_EVERY
from accord.store.protocols import Watch
from accord.testing.conformance.tools import Opener, append, many_commits, opened, raises, take


def check_forgotten_history_is_refused_and_kept_history_whole(open_store: Opener) -> None:
    """A watch from too far back, or too slow, is told so instead of missing changes."""
    with opened(open_store) as store, store.watch([""], 0) as slow:
        append(store, "first")
        take(slow, 1)
        many_commits(store, KEPT_REVISIONS + 2 * TRIM_EVERY - 2)
        newest = append(store, "rare").revision
        assert newest % TRIM_EVERY == 0
        oldest = newest - KEPT_REVISIONS
        with raises(errors.HistoryGone):
            store.watch([""], 0)
        with raises(errors.HistoryGone):
            _drain(slow, newest)
        with store.watch([""], oldest) as watch:
            assert [change.revision for change in take(watch, 2500)] == list(range(oldest + 1, oldest + 2501))
        with store.watch(["rare"], oldest) as watch:
            assert [change.revision for change in take(watch, 1)] == [newest]
    with opened(open_store) as store:
        with raises(errors.HistoryGone):
            store.watch([""], 0)
        with store.watch([""], oldest) as watch:
            assert [change.revision for change in take(watch, 1)] == [oldest + 1]


def _drain(watch: Watch, newest: int) -> None:
    """To the newest change, none left out."""
    while watch.revision < newest:
        before = watch.revision
        assert [change.revision for change in take(watch, 1)] == [before + 1]
