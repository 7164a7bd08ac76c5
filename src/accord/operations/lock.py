"""Locks that end by themselves, with numbers that tell an old holder from the new one."""

import time

from accord import errors
from accord.model import new_request, timestamp
from accord.operations import operation, waiting
from accord.services import locks
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Grant, Label, Lease, Name, Seconds
    from accord.services.locks import Lock
    from accord.store.transaction import Transaction

_REST_S = 0.001  # for each who waits before: less than a grant and a release take
_LONGEST_REST_S = 0.05


@operation(changes=True, halts=True)
def acquire(
    context: "Context", *, name: "Name", owner: "Label", ttl: "Lease" = locks.TTL_S, wait: "Seconds" = 30
) -> "results.Lock":
    """Acquire a lock, in the order in which all who want it came; it ends by itself after a time."""
    applicant = _Applicant(context, name, owner, ttl)
    started = time.monotonic()
    key = locks.key(name)
    try:
        found = waiting.until(
            context, key[:1], wait, lambda: applicant.look(wait > 0), applicant.pause_s, applicant.rest_s, key
        )
    except (Exception, KeyboardInterrupt):
        applicant.try_to_leave()
        raise
    if found is None:
        lock, ahead = applicant.leave()
        raise locks.held(lock, ahead, time.monotonic() - started)
    return found


class _Applicant:
    """Somebody who wants a lock, with a ticket: the name of the request, so that asking again keeps the place."""

    def __init__(self, context: "Context", name: str, owner: str, ttl_s: float) -> None:
        self._context = context
        self._name = name
        self._owner = owner
        self._ttl_s = ttl_s
        self._ticket = context.caller.request or new_request()
        self._pause_s = 0.0
        self._ahead = 0  # how many wait before

    def look(self, waits: bool) -> "results.Lock | None":
        """Take the lock if it is there to be taken, else stand in line."""
        context = self._context
        if waits and context.is_gone():
            return None  # nobody would know that it is theirs
        found = context.change(self._grant)
        if found is None and waits:
            self._pause_s, self._ahead = self._stand_in_line()
        return found

    def _stand_in_line(self) -> "tuple[float, int]":
        """Until when nothing need be looked at, and how many wait before. Doing it twice is doing it once."""
        try:
            return transact(self._context.store, self._wait)
        except errors.OutcomeUnknown:
            return 0.0, 0

    def pause_s(self) -> float:
        return self._pause_s + 0.001  # when it is over, not just before

    def rest_s(self) -> float:
        """The others come first, however fast they are: who is far behind need not look at each of their steps."""
        return min(self._ahead * _REST_S, _LONGEST_REST_S)

    def leave(self) -> "tuple[Lock, int]":
        """Wait no longer. Who asks again by the name of the request is told of a grant; nobody else would be."""
        granted = not self._context.caller.request
        return transact(self._context.store, lambda tx: locks.give_up(tx, self._name, self._ticket, granted))

    def try_to_leave(self) -> None:
        try:
            self.leave()
        except errors.AccordError:
            pass  # what it failed for is told already; the ticket ends by itself

    def _grant(self, tx: "Transaction") -> "results.Lock | None":
        lock = locks.grant(tx, self._name, self._owner, self._ttl_s, self._context.now(), self._ticket)
        return None if lock is None else _shown(lock)

    def _wait(self, tx: "Transaction") -> "tuple[float, int]":
        lock = locks.wait(tx, self._name, self._owner, self._context.now(), self._ticket)
        return locks.next_s(tx, lock), lock.ahead_of(self._ticket)


@operation(changes=True, step=True)
def renew(
    context: "Context", *, name: "Name", owner: "Label", token: "Grant", ttl: "Lease" = locks.TTL_S
) -> "results.Lock":
    """Have a lock last longer, from now on."""
    return context.change(lambda tx: _shown(locks.renew(tx, name, owner, token, ttl)))


@operation(changes=True, step=True)
def release(context: "Context", *, name: "Name", owner: "Label", token: "Grant") -> "results.ReleasedLock":
    """Give a lock back; only its owner can."""

    def work(tx: "Transaction") -> "results.ReleasedLock":
        locks.release(tx, name, owner, token)
        return {"name": name, "released": True}

    return context.change(work)


@operation()
def list(context: "Context") -> "results.Locks":
    """Show the locks that are held, and who waits for them."""
    return {"locks": transact(context.store, lambda tx: [_held(lock) for lock in locks.all_of(tx)])}


def _shown(lock: "Lock") -> "results.Lock":
    expires_at = timestamp(time.time() + lock.left_s) if lock.left_s else None
    return {"name": lock.name, "owner": lock.owner, "token": lock.token, "expires_at": expires_at}


def _held(lock: "Lock") -> "results.HeldLock":
    return {
        **_shown(lock),
        "since": lock.since,
        "waiting": [{"owner": owner, "since": since} for _, owner, _, since in lock.waiting],
    }
