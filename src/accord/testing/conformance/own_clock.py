"""An engine with a clock that nobody sets."""

from accord.testing.conformance.tools import LONG_S, Opener, opened, wall_clock_moved


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
