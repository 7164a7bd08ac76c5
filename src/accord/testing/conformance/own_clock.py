"""An engine with a clock that nobody sets."""

from accord.store.transaction import transact
from accord.testing.conformance.tools import LONG_S, Opener, opened, values_of, wall_clock_moved


def check_the_clock_is_not_the_wall_clock(open_store: Opener) -> None:
    """Which somebody may set, forward or back, while leases run."""
    with opened(open_store) as store:
        for day_s in (-24 * 3600.0, 24 * 3600.0):
            began = store.now()
            with wall_clock_moved(by_s=day_s), opened(open_store) as other:
                for now in (store.now(), other.now()):
                    assert began.is_over(now)
                    assert not began.plus(3600.0).is_over(now)
                    assert now.seconds - began.seconds < LONG_S
                set_then = other.now()
            assert set_then.is_over(store.now())
            assert not set_then.plus(3600.0).is_over(store.now())


def check_a_key_has_one_effect_though_the_wall_clock_is_set(open_store: Opener) -> None:
    """Its answer is kept for 7 days, and these have not gone by."""
    with opened(open_store) as store:
        for number, days in enumerate((8, -8, 400, -400), 1):

            def ask(key: str = f"k{number}") -> object:
                return transact(store, lambda tx: tx.append("c", b""), key=key)

            assert ask() == 2 * number - 1
            with wall_clock_moved(by_s=days * 24 * 3600.0):
                assert ask() == 2 * number - 1
                assert ask(f"k{number}, asked first while it was set") == 2 * number
            assert ask() == 2 * number - 1
            assert ask(f"k{number}, asked first while it was set") == 2 * number
        assert len(values_of(store, "c")) == 8
