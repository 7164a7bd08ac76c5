"""Watches: every change once, in order, from any revision that is kept, and soon."""

import threading
import time
from contextlib import ExitStack
from functools import partial

from accord import errors
from accord.store.contract import Append, Change, Delete, Put, number_id
from accord.store.protocols import Store, Watch
from accord.testing.conformance.tools import (
    LONG_S,
    Opener,
    append,
    at_once,
    is_quiet,
    many_commits,
    opened,
    put,
    raises,
    seconds,
    take,
)


def check_a_watch_gives_every_change_once_in_order(open_store: Opener) -> None:
    with opened(open_store) as store, store.watch([""], 0) as watch:
        expected = [
            Change(store.commit([], [Put("c", "b", b""), Put("a", "x", b"")]).revision, (("a", "x"), ("c", "b"))),
            Change(store.commit([], [Append("c", b""), Append("c", b"")]).revision, _numbered("c", 1, 2)),
            Change(store.commit([], [Delete("c", "b")]).revision, (("c", "b"),)),
        ]
        assert take(watch, 3) == expected
        assert is_quiet(watch)
        last = put(store, "c", "b").revision
        assert take(watch, 1) == [Change(last, (("c", "b"),))]
        assert is_quiet(watch)
        assert watch.revision == last


def check_a_watch_gives_the_history_since_a_revision(open_store: Opener) -> None:
    with opened(open_store) as store:
        for _ in range(30):
            append(store, "c")
        for since in (0, 1, 17, 29):
            with store.watch(["c"], since) as watch:
                assert watch.revision == since
                expected = [Change(revision, _numbered("c", revision)) for revision in range(since + 1, 31)]
                assert take(watch, 30 - since) == expected
        with store.watch(["c"], 30) as watch:
            assert is_quiet(watch)


def check_a_watch_gives_what_its_prefixes_name(open_store: Opener) -> None:
    with opened(open_store) as store:
        names = ["mail", "mail/ann", "mail/bob", "mailbox", "tasks", "tasks/a"]
        for name in names:
            put(store, name, "x")
        store.commit([], [Put(name, "y", b"") for name in names])
        for prefixes in (["mail"], ["mail/"], ["mail/ann", "tasks"], [""], ["mail/", "mail"], ["x", "tasks/"]):
            matching = [name for name in names if name.startswith(tuple(prefixes))]
            expected = [Change(names.index(name) + 1, ((name, "x"),)) for name in matching]
            expected.append(Change(7, tuple((name, "y") for name in matching)))
            with store.watch(prefixes, 0) as watch:
                assert take(watch, len(expected)) == expected, prefixes
                assert is_quiet(watch)
        for nothing in ([], ["tasks/a/", "c"]):
            with store.watch(nothing, 0) as watch:
                assert is_quiet(watch), nothing


def check_a_watch_that_goes_on_elsewhere_misses_and_repeats_nothing(open_store: Opener) -> None:
    """What was given out, or matched no prefix, is behind `watch.revision`; the rest lies after it."""
    with opened(open_store) as store:
        found: list[Change] = []

        def write() -> None:
            for number in range(60):
                append(store, "c" if number % 3 else "other")

        def follow() -> None:
            since = 0
            while len(found) < 40:
                with opened(open_store) as reader, reader.watch(["c"], since) as watch:
                    found.extend(take(watch, min(7, 40 - len(found))))
                    since = watch.revision

        at_once(write, follow)
        assert [key for change in found for key in change.keys] == list(_numbered("c", *range(1, 41)))
        revisions = [change.revision for change in found]
        assert revisions == sorted(set(revisions))


def check_a_quiet_watch_moves_on_past_what_it_does_not_name(open_store: Opener) -> None:
    """Else a subscriber of something rare would keep a revision that is forgotten one day."""
    with opened(open_store) as store, store.watch(["rare"], 0) as watch:
        for _ in range(5):
            append(store, "c")
        assert watch.next(0.1) is None
        assert watch.revision == 5
        rare = append(store, "rare").revision
        assert take(watch, 1) == [Change(rare, _numbered("rare", 1))]


def check_a_rare_change_is_found_at_once_among_many(open_store: Opener) -> None:
    with opened(open_store) as store:
        many_commits(store, 3500)
        rare = append(store, "rare").revision
        with store.watch(["rare"], 0) as watch:
            started = time.monotonic()
            assert take(watch, 1) == [Change(rare, _numbered("rare", 1))]
            assert time.monotonic() - started < 0.9
        with store.watch(["rare"], 0) as watch:
            assert watch.next(0.0) == Change(rare, _numbered("rare", 1))


def check_several_watches_each_get_every_change(open_store: Opener) -> None:
    with ExitStack() as stack:
        stores = [stack.enter_context(opened(open_store)) for _ in range(2)]
        watches = [stack.enter_context(store.watch(["c"], 0)) for store in stores * 2]
        revisions = [append(store, "c").revision for store in stores * 5]
        for watch in watches:
            assert [change.revision for change in take(watch, 10)] == revisions


def check_another_epoch_is_refused(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c")
        with store.snapshot() as snapshot:
            epoch = snapshot.epoch
        with raises(errors.HistoryGone):
            store.watch(["c"], 1, epoch="another")
        with store.watch(["c"], 0, epoch=epoch) as watch:
            assert [change.revision for change in take(watch, 1)] == [1]
    with opened(open_store) as store, store.snapshot() as snapshot:
        assert snapshot.epoch == epoch


def check_a_revision_that_never_was_is_refused(open_store: Opener) -> None:
    """Whoever kept it saw a history that this store lost."""
    with opened(open_store) as store:
        append(store, "c")
        with raises(errors.HistoryGone), store.watch(["c"], 2) as watch:
            watch.next(0.0)


def check_waiting_in_vain_ends_in_time(open_store: Opener) -> None:
    with opened(open_store) as store, store.watch(["c"], 0) as watch:
        assert watch.next(0.0) is None
        assert watch.next(-1.0) is None
        for timeout_s in (0.1, 0.3):
            waited_s = seconds(partial(watch.next, timeout_s))
            assert timeout_s * 0.9 <= waited_s < timeout_s + 1
        append(store, "other")
        assert watch.next(0.1) is None


def check_changes_that_do_not_match_do_not_end_the_wait(open_store: Opener) -> None:
    with opened(open_store) as store, store.watch(["c"], 0) as watch:

        def write() -> None:
            for _ in range(30):
                append(store, "other")
            append(store, "c")

        found, _ = at_once(lambda: take(watch, 1), write)
        assert found == [Change(31, _numbered("c", 1))]


def check_close_ends_a_wait_in_another_thread(open_store: Opener) -> None:
    with opened(open_store) as store:
        waits_s = []
        for _ in range(3):
            with store.watch(["c"], 0) as watch:
                timer = threading.Timer(0.1, watch.close)
                timer.start()
                started = time.monotonic()
                assert watch.next(LONG_S) is None
                waits_s.append(time.monotonic() - started)
                timer.join()
                watch.close()
                assert watch.next(LONG_S) is None
        assert min(waits_s) < 0.5, waits_s  # sooner than the look that a watch takes each second anyway
        append(store, "c")
        with store.watch(["c"], 0) as watch:
            watch.close()
            assert watch.next(LONG_S) is None


def check_a_commit_of_another_handle_wakes_at_once(open_store: Opener) -> None:
    """Far sooner than the look that a watch takes each second anyway."""
    with opened(open_store) as store, opened(open_store) as other, store.watch(["c"], 0) as watch:
        delays = sorted(_delay(watch, other) for _ in range(5))
        assert delays[2] < 0.4, delays


def _delay(watch: Watch, writer: Store) -> float:
    """How long after a commit returned the change came, to a watch that had waited for a while."""
    committed_at = []

    def write() -> None:
        append(writer, "c")
        committed_at.append(time.monotonic())

    timer = threading.Timer(0.1, write)  # by then the watch waits
    timer.start()
    take(watch, 1)
    came_at = time.monotonic()
    timer.join()
    return came_at - committed_at[0]


def _numbered(collection: str, *numbers: int) -> tuple[tuple[str, str], ...]:
    return tuple((collection, number_id(number)) for number in numbers)
