"""Locks that end by themselves, with numbers that tell an old holder from the new one."""

import time

from accord import errors
from accord.model import new_request, timestamp
from accord.operations import operation, waiting
from accord.services import leases, locks
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations.context import Context
    from accord.operations.kinds import Count, Label, Name, Seconds
    from accord.services.locks import Lock


@operation(changes=True, halts=True)
def acquire(
    context: "Context", *, name: "Name", owner: "Label", ttl: "Seconds" = 60, wait: "Seconds" = 30
) -> "dict[str, Any]":
    """Acquire a lock, in the order in which all who want it came; it ends by itself after a time."""
    ticket = context.caller.request or new_request()
    started = time.monotonic()

    def granted() -> "dict[str, Any] | None":
        return context.change(lambda tx: _granted(locks.grant(tx, name, owner, ttl, context.now(), ticket)))

    def look() -> "dict[str, Any] | None":
        found = granted()
        if found is None and wait:
            transact(context.store, lambda tx: locks.wait(tx, name, owner, context.now(), ticket))
        return found

    found = None
    try:
        found = waiting.until(context, [locks.LOCKS], wait, look, lambda: _pause_s(context, name))
    finally:
        if found is None:
            lock = transact(context.store, lambda tx: locks.give_up(tx, name, ticket))
    if found is None:
        raise errors.LockHeld(
            name=name,
            owner=lock.owner or "nobody",
            left_s=round(lock.left_s, 1),
            ahead=len(lock.waiting),
            waited_s=round(time.monotonic() - started, 1),
        )
    return found


@operation(changes=True, step=True)
def renew(context: "Context", *, name: "Name", owner: "Label", token: "Count", ttl: "Seconds" = 60) -> "dict[str, Any]":
    """Have a lock last longer, from now on."""
    return context.change(lambda tx: _shown(locks.renew(tx, name, owner, token, ttl)))


@operation(changes=True, step=True)
def release(context: "Context", *, name: "Name", owner: "Label", token: "Count") -> "dict[str, Any]":
    """Give a lock back; only its owner can."""

    def work(tx: "Any") -> "dict[str, Any]":
        locks.release(tx, name, owner, token)
        return {"name": name, "released": True}

    return context.change(work)


@operation()
def list(context: "Context") -> "dict[str, Any]":
    """Show the locks that are held, and who waits for them."""
    return transact(
        context.store, lambda tx: {"locks": [{**_shown(lock), **_waiting(lock)} for lock in locks.all_of(tx)]}
    )


def _granted(lock: "Lock | None") -> "dict[str, Any] | None":
    return None if lock is None else _shown(lock)


def _shown(lock: "Lock") -> "dict[str, Any]":
    expires_at = timestamp(time.time() + lock.left_s) if lock.left_s else None
    return {"name": lock.name, "owner": lock.owner, "token": lock.token, "expires_at": expires_at}


def _waiting(lock: "Lock") -> "dict[str, Any]":
    return {"since": lock.since, "waiting": [{"owner": owner, "since": since} for _, owner, _, since in lock.waiting]}


def _pause_s(context: "Context", name: str) -> float:
    """Until the lock is over, or the first who waits is, or the ticket is to be renewed."""

    def work(tx: "Any") -> float:
        lock = locks.find(tx, name)
        now = tx.now()
        ends = [lock.left_s or locks.TICKET_S, *[leases.left_s(one[2], now) for one in lock.waiting[:1]]]
        return min(*ends, locks.TICKET_S / 2) + 0.001

    return transact(context.store, work)
