"""An engine without a write lock: conflicts that never end are told when the time is over."""

import time

from accord import errors
from accord.store.transaction import Transaction, transact
from accord.testing.conformance.tools import LONG_S, Opener, append, contents, opened, put, raises, value_of


def check_there_is_no_exclusive(open_store: Opener) -> None:
    with opened(open_store) as store:
        assert not hasattr(store, "exclusive")


def check_conflicts_that_never_end_are_told_in_time(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        append(store, "c")
        runs = []

        def work(tx: Transaction) -> None:
            tx.get("c", "a")
            put(other, "c", "a", b"other")
            runs.append(1)
            tx.put("c", "a", b"mine")
            tx.append("c", b"mine")

        for key in (None, "key"):
            started = time.monotonic()
            with raises(errors.Contention):
                transact(store, work, key=key, timeout_s=0.3)
            assert 0.3 <= time.monotonic() - started < LONG_S / 4
        assert len(runs) > 4
        assert value_of(store, "c", "a") == b"other"
        found = contents(store)
        assert list(found.heads) == ["c"]
        assert found.heads["c"].last == 1


def check_conflicts_that_end_in_time_are_not_told(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        runs: list[int] = []

        def work(tx: Transaction) -> int:
            tx.list("c")
            if len(runs) < 10:
                append(other, "c")
            runs.append(1)
            tx.put("done", "a", b"")
            return len(tx.list("c"))

        assert transact(store, work) == 10
        assert len(runs) == 11
