"""Waiting for something that others do: look, wait for a change, look again."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from accord.operations.context import Context
    from accord.store.protocols import Watch

    T = TypeVar("T")

_LONGEST_S = 1.0  # without a look: that everything is halted, or that nobody waits for it any more, is noticed so soon


def until(
    context: "Context",
    watched: "Sequence[str]",
    wait_s: float,
    look: "Callable[[], T | None]",
    pause_s: "Callable[[], float]" = lambda: _LONGEST_S,
    rest_s: "Callable[[], float]" = lambda: 0.0,
    key: "tuple[str, str] | None" = None,
) -> "T | None":
    """What `look` finds; None when it is nothing for so long.

    It looks whenever a collection that starts with one of `watched` changed, or only when the item `key` of one did,
    though not before `rest_s` is over; or when `pause_s` is.
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
            with store.snapshot() as snapshot:
                looked_at = snapshot.revision
            found = look()
            left_s = deadline - time.monotonic()
            if found is not None or left_s <= 0 or context.is_gone():
                return found
            _pause(watch, looked_at, min(left_s, pause_s(), _LONGEST_S), key)
            time.sleep(min(left_s, rest_s()))
            context.check_halt()


def _pause(watch: "Watch", looked_at: int, longest_s: float, key: "tuple[str, str] | None") -> None:
    """Return when something changed since that revision, or after so long."""
    deadline = time.monotonic() + longest_s
    changed = watch.next(max(0.0, longest_s))
    while changed is not None and (changed.revision <= looked_at or not (key is None or key in changed.keys)):
        changed = watch.next(max(0.0, deadline - time.monotonic()))
