"""How it stands with the server of a store elsewhere: for `accord doctor`."""

import time

from accord import errors
from accord.services.checkup import MOST_BEHIND_S
from accord.store.protocols import Store

READS = 5

# What a commit survives that was acknowledged.
MEANING = {
    "power": "a power cut there",
    "process": "the death of the server's process, and not a power cut there",
    "none": "as long as the server runs",
}


def look(store: Store) -> str:
    """Which one it is, how long a read takes, what its durability means, and whether its clock is ours."""
    took_ms = sorted(_read_ms(store) for _ in range(READS))
    parts = [str(getattr(store, "server", "it answers")), f"a read takes {took_ms[READS // 2]:.1f} ms"]
    return "; ".join([*parts, f"what is sent survives {MEANING[store.durability]}", *_clock(store)])


def _read_ms(store: Store) -> float:
    began = time.perf_counter()
    with store.snapshot() as snapshot:
        snapshot.head("message")
    return (time.perf_counter() - began) * 1000


def _clock(store: Store) -> list[str]:
    """By how much the two clocks differ, as far as the time of an answer allows to tell."""
    ask = getattr(store, "server_clock_s", None)
    if ask is None:
        return []
    before_s = time.time()
    ahead_s = ask() - (before_s + time.time()) / 2
    if abs(ahead_s) > MOST_BEHIND_S:
        what = f"The server's clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's"
        raise errors.NeedsAttention(what=what, see="the clocks of both machines")
    return [f"its clock is {abs(ahead_s):.2f} s {'ahead' if ahead_s > 0 else 'behind'}"]
