"""Waiting for something that others do: look, wait for a change, look again."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from accord.operations.context import Context

    T = TypeVar("T")

_LONGEST_S = 1.0  # without a look: that everything is halted, or that nobody waits for it any more, is noticed so soon


def until(
    context: "Context",
    watched: "Sequence[str]",
    wait_s: float,
    look: "Callable[[], T | None]",
    pause_s: "Callable[[], float]" = lambda: _LONGEST_S,
) -> "T | None":
    """What `look` finds; None when it is nothing for so long.

    It looks whenever a collection that starts with one of `watched` changed, or `pause_s` is over.
    """
    found = look()
    if found is not None or wait_s <= 0:
        return found
    deadline = time.monotonic() + wait_s
    store = context.store
    with store.snapshot() as snapshot:
        revision = snapshot.revision
    with store.watch(watched, revision) as watch:
        while True:
            found = look()
            left_s = deadline - time.monotonic()
            if found is not None or left_s <= 0 or context.is_gone():
                return found
            changed = watch.next(max(0.0, min(left_s, pause_s(), _LONGEST_S)))
            while changed is not None:
                changed = watch.next(0)
            context.check_halt()
