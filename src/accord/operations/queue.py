"""Queues of work: each entry goes to one worker, and comes back unless it is done in time."""

import time

from accord import errors
from accord.operations import as_is, operation, waiting
from accord.services import queues
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Count, Fence, Label, Lease, Name, Priority, Seconds, Text
    from accord.store.transaction import Transaction

    T = TypeVar("T")


_LONGEST_REASON = 1000  # characters
_DUE: "Any" = object()  # instead of a result


@operation(changes=True, halts=True, step=True)
def push(
    context: "Context",
    *,
    queue: "Name",
    payload: "Text",
    priority: "Priority" = "normal",
    delay: "Seconds" = 0,
    tries: "Count" = 5,
    fence: "Fence | None" = None,
) -> "results.QueuePlace":
    """Push an entry to a queue, for some worker to take."""
    limit = context.settings["queue_limit"]
    how = queues.Pushing(context.who, context.now(), limit, priority, delay, tries)
    return as_is(context.change(lambda tx: {"queue": queue, "sequence": queues.push(tx, queue, payload, how, fence)}))


@operation(changes=True, halts=True)
def pop(
    context: "Context",
    *,
    queue: "Name",
    visibility: "Lease" = 60,
    wait: "Seconds" = 0,
    worker: "Label | None" = None,
    fence: "Fence | None" = None,
) -> "results.Taken":
    """Take the first entry of a queue; it comes back unless it is done in time."""
    started = time.monotonic()
    is_first = True
    payloads: dict[str, str] = {}  # by receipt; not kept with the answer to the request, since they may be large

    def take(tx: "Transaction") -> "dict[str, Any] | None":
        found = queues.pop(tx, queue, visibility, worker or context.who, fence)
        if found is not None:
            payloads[found["receipt"]] = queues.payload(tx, queue, found["sequence"])
        return found

    def look() -> "dict[str, Any] | None":
        nonlocal is_first
        # All workers want the same entry. Who waits, though, mostly finds nothing, and needs no lock for that.
        rivals, is_first = is_first, False
        return _with_what_is_due(context, queue, take, rivals)

    found = waiting.until(context, queues.watched(queue), wait, look, lambda: _pause_s(context, queue))
    if found is None:
        waited = f", though {round(time.monotonic() - started, 1)} s were waited" if wait else ""
        raise errors.Empty(what=f"The queue {queue}", waited=waited)
    receipt = found["receipt"]
    if receipt not in payloads:  # the request was answered before
        payloads[receipt] = transact(context.store, lambda tx: queues.payload_again(tx, queue, receipt))
    return as_is({"queue": queue, **found, "payload": payloads[receipt]})


@operation(changes=True, step=True)
def done(context: "Context", *, queue: "Name", receipt: "Label", fence: "Fence | None" = None) -> "results.QueuePlace":
    """Say that what was taken is done; it leaves the queue."""
    return as_is(context.change(lambda tx: {"queue": queue, "sequence": queues.done(tx, queue, receipt, fence)}))


@operation(changes=True, step=True)
def fail(
    context: "Context",
    *,
    queue: "Name",
    receipt: "Label",
    reason: "Text" = "",
    delay: "Seconds" = 0,
    fence: "Fence | None" = None,
) -> "results.Failed":
    """Give back what was taken, for another try; after its last one it is a dead letter."""
    reason, now = reason[:_LONGEST_REASON], context.now()
    return as_is(
        context.change(lambda tx: {"queue": queue, **queues.fail(tx, queue, receipt, reason, now, delay, fence)})
    )


@operation(changes=True, halts=True)
def retry(context: "Context", *, queue: "Name", sequence: "Count") -> "results.QueuePlace":
    """Put a dead letter back to its place in the queue, with all its tries before it."""

    def work(tx: "Transaction") -> "results.QueuePlace":
        queues.retry(tx, queue, sequence)
        return {"queue": queue, "sequence": sequence}

    return _with_what_is_due(context, queue, work)


@operation(changes=True)
def drop(context: "Context", *, queue: "Name", sequence: "Count") -> "results.QueuePlace":
    """Remove a dead letter for good."""

    def work(tx: "Transaction") -> "results.QueuePlace":
        queues.drop(tx, queue, sequence)
        return {"queue": queue, "sequence": sequence}

    return _with_what_is_due(context, queue, work)


@operation()
def peek(context: "Context", *, queue: "Name", limit: "Count" = 10) -> "results.Entries":
    """Show the next entries of a queue, in the order in which they will be taken."""
    most = min(limit, queues.MOST_SHOWN)
    return {"queue": queue, "entries": as_is(transact(context.store, lambda tx: queues.peek(tx, queue, most)))}


@operation()
def dead(context: "Context", *, queue: "Name", limit: "Count" = 10) -> "results.DeadLetters":
    """Show the dead letters of a queue, and why they are."""
    most = min(limit, queues.MOST_SHOWN)
    return {"queue": queue, "entries": as_is(transact(context.store, lambda tx: queues.dead(tx, queue, most)))}


@operation()
def list(context: "Context") -> "results.Queues":
    """Show the queues, and how many entries each has."""
    return {"queues": as_is(transact(context.store, queues.all_of))}


def _with_what_is_due(context: "Context", queue: str, work: "Callable[[Transaction], T]", rivals: bool = False) -> "T":
    """Make a change once all that is due was brought back, in commits of its own, since that may be much."""

    def settled(tx: "Transaction") -> "T":
        return _DUE if queues.is_due(tx, queue) else work(tx)

    while (found := context.change(settled, rivals)) is _DUE:
        transact(context.store, lambda tx: queues.bring_back(tx, queue, context.now()))
    return found


def _pause_s(context: "Context", queue: str) -> float:
    return transact(context.store, lambda tx: queues.next_s(tx, queue))
