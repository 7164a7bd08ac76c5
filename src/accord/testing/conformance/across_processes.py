"""Several processes at one place, as agents are."""

import time
from functools import partial

from accord.store.contract import Committed, Conflict, ItemIs, Put, number_id
from accord.store.transaction import transact
from accord.testing.conformance.threads import assert_dense, increment, move, open_accounts, read_accounts
from accord.testing.conformance.tools import LONG_S, Opener, append, opened, put, take, value_of, values_of
from accord.testing.conformance.worker import at_once_in_processes, processes, run_in_process

PROCESSES = 4


def check_processes_may_create_the_store_at_once(open_store: Opener) -> None:
    done = at_once_in_processes(_append_many, [(open_store, 1)] * PROCESSES)
    assert_dense([one for many in done for one in many])
    with opened(open_store) as store:
        assert len(values_of(store, "c")) == PROCESSES


def check_a_process_sees_what_another_committed(open_store: Opener) -> None:
    with opened(open_store) as store:
        put(store, "c", "a", b"1")
        assert run_in_process(_replace, open_store, b"2") == b"1"
        assert value_of(store, "c", "a") == b"2"


def check_numbers_are_dense_across_processes(open_store: Opener) -> None:
    done = at_once_in_processes(_append_many, [(open_store, 50)] * PROCESSES)
    assert_dense([one for many in done for one in many])
    with opened(open_store) as store:
        with store.snapshot() as snapshot:
            ids = [item.id for item in snapshot.list("c", limit=1000)]
        assert ids == [number_id(number) for number in range(1, PROCESSES * 50 + 1)]


def check_one_of_many_processes_creates(open_store: Opener) -> None:
    ids = [f"i{number}" for number in range(20)]
    won = at_once_in_processes(_create_all, [(open_store, ids)] * PROCESSES)
    assert sorted(id for mine in won for id in mine) == sorted(ids)


def check_no_update_is_lost_across_processes(open_store: Opener) -> None:
    at_once_in_processes(_count_up, [(open_store, 25)] * PROCESSES)
    with opened(open_store) as store:
        assert value_of(store, "c", "count") == b"%d" % (25 * PROCESSES)


def check_no_process_sees_half_a_commit(open_store: Opener) -> None:
    with opened(open_store) as store:
        open_accounts(store)
        with processes(_move_until_told, [(open_store,)] * 2) as workers:
            for worker in workers:
                worker.start()
            with store.watch(["moves"], 0) as watch:
                take(watch, 2)  # they are at it
            read_accounts(store, views=50)
            put(store, "stop", "now")
            assert all(worker.result() > 0 for worker in workers)
        read_accounts(store, views=1)


def check_a_watch_follows_other_processes(open_store: Opener) -> None:
    with opened(open_store) as store, store.watch(["c"], 0) as watch:
        with processes(_append_many, [(open_store, 30)] * 2) as workers:
            for worker in workers:
                worker.start()
            found = take(watch, 60)
            revisions = sorted(one.revision for worker in workers for one in worker.result())
        assert [change.revision for change in found] == revisions
        assert [key for change in found for key in change.keys] == [("c", number_id(n)) for n in range(1, 61)]


def check_a_commit_of_another_process_wakes_at_once(open_store: Opener) -> None:
    """Asked and answered by commits, five times; a look each second would take five seconds."""
    with (
        opened(open_store) as store,
        store.watch(["answers"], 0) as watch,
        processes(_answer, [(open_store, 5)]) as [worker],
    ):
        worker.start()
        take(watch, 1)  # it is there
        started = time.monotonic()
        for _ in range(5):
            append(store, "questions")
            take(watch, 1)
        assert time.monotonic() - started < 2.0
        worker.result()


def check_one_key_from_many_processes_has_one_effect(open_store: Opener) -> None:
    answers = at_once_in_processes(_ask_with_keys, [(open_store, 5)] * PROCESSES)
    assert answers == [[{"number": number} for number in range(1, 6)]] * PROCESSES
    with opened(open_store) as store:
        assert len(values_of(store, "c")) == 5


def check_processes_share_a_clock(open_store: Opener) -> None:
    with opened(open_store) as store:
        before = store.now()
        era, seconds = run_in_process(_now, open_store)
        after = store.now()
        assert era == before.era == after.era
        assert before.seconds <= seconds <= after.seconds


def _append_many(open_store: Opener, count: int) -> list[Committed]:
    with opened(open_store) as store:
        return [append(store, "c", b"x") for _ in range(count)]


def _replace(open_store: Opener, value: bytes) -> bytes | None:
    with opened(open_store) as store:
        old = value_of(store, "c", "a")
        put(store, "c", "a", value)
        return old


def _create_all(open_store: Opener, ids: list[str]) -> list[str]:
    """The ids that this process was the first to create."""
    won = []
    with opened(open_store) as store:
        for id in ids:
            try:
                store.commit([ItemIs("c", id, 0)], [Put("c", id, b"")])
                won.append(id)
            except Conflict:
                pass
    return won


def _count_up(open_store: Opener, count: int) -> None:
    with opened(open_store) as store:
        for _ in range(count):
            transact(store, increment)


def _move_until_told(open_store: Opener) -> int:
    moves = 0
    deadline = time.monotonic() + LONG_S
    with opened(open_store) as store:
        # Once at least: the other may have been quick.
        while (not moves or value_of(store, "stop", "now") is None) and time.monotonic() < deadline:
            transact(store, partial(move, moves))
            moves += 1
    return moves


def _answer(open_store: Opener, count: int) -> None:
    """Answer each question; the first answer says that this process listens."""
    with opened(open_store) as store, store.watch(["questions"], 0) as watch:
        append(store, "answers")
        for _ in range(count):
            take(watch, 1)
            append(store, "answers")


def _ask_with_keys(open_store: Opener, count: int) -> list[object]:
    with opened(open_store) as store:
        return [transact(store, lambda tx: {"number": tx.append("c", b"")}, key=f"k{n}") for n in range(count)]


def _now(open_store: Opener) -> tuple[str, float]:
    with opened(open_store) as store:
        now = store.now()
        return now.era, now.seconds
