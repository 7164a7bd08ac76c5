"""Locks: leases with an owner, and a number that grows with every grant.

lock/...    one item for each, never removed: owner ("": nobody), number, when it ends, and who waits, in their order

Whoever wants a lock has a ticket. It keeps their place in the line and ends by itself soon unless it is renewed: one
that was killed does not hold up the others. The lock remembers the ticket it was granted to, so that who was granted it
and never heard of it can give it back.
"""

from accord import errors, jsontext
from accord.services import leases, named
from accord.store import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.contract import Instant
    from accord.store.transaction import Transaction

LOCKS = "lock"
TTL_S = 60  # unless somebody says otherwise
TICKET_S = 5.0
MOST_WAITING = 1000


class Lock:
    """A lock as it is now; tickets that are over are not there."""

    def __init__(self, name: str, record: "dict[str, Any]", now: "Instant") -> None:
        self.name = name
        self.owner = str(record.get("owner", ""))
        self.token = int(record.get("token", 0))  # of the last grant
        self.until: list[object] = record.get("until", ["", 0])
        self.since = str(record.get("since", ""))  # when it was granted
        self.ticket = str(record.get("ticket", ""))  # to which it was granted
        self.waiting: list[list[Any]] = [  # ticket, owner, until, since
            one for one in record.get("waiting", []) if leases.left_s(one[2], now)
        ]
        self.left_s = leases.left_s(self.until, now) if self.owner else 0.0

    @property
    def is_free(self) -> bool:
        return not self.left_s

    def ahead_of(self, ticket: str) -> int:
        """How many wait before that one."""
        tickets = [one[0] for one in self.waiting]
        return tickets.index(ticket) if ticket in tickets else len(tickets)

    def leave(self, ticket: str) -> bool:
        """Take a ticket out of the line; whether it was there."""
        before = len(self.waiting)
        self.waiting = [one for one in self.waiting if one[0] != ticket]
        return len(self.waiting) < before

    def free(self) -> None:
        self.owner, self.left_s = "", 0.0

    def write(self, tx: "Transaction") -> None:
        record = {
            "owner": self.owner,
            "token": self.token,
            "until": self.until,
            "since": self.since,
            "ticket": self.ticket,
            "waiting": self.waiting,
        }
        tx.put(*key(self.name), jsontext.dumps(record).encode())


def key(name: str) -> "tuple[str, str]":
    """The item of a lock."""
    return names.to_key(LOCKS, name)


def find(tx: "Transaction", name: str) -> Lock:
    item = tx.get(*key(name))
    record: Any = {} if item is None else jsontext.loads_own(item.value)
    return Lock(name, record, tx.now())


def grant(tx: "Transaction", name: str, owner: str, ttl_s: float, at: str, ticket: str) -> "Lock | None":
    """Give the lock to the owner, if it is free and nobody waits before; the ticket is used up then."""
    lock = find(tx, name)
    if not lock.is_free or lock.ahead_of(ticket):
        return None
    lock.leave(ticket)
    lock.owner, lock.token, lock.since, lock.ticket = owner, lock.token + 1, at, ticket
    lock.until, lock.left_s = leases.until(tx.now(), ttl_s), ttl_s
    lock.write(tx)
    return lock


def wait(tx: "Transaction", name: str, owner: str, at: str, ticket: str) -> Lock:
    """Stand in line, or stay there; writes only when the ticket is new or half over. A line too long is not joined."""
    lock = find(tx, name)
    mine = [one for one in lock.waiting if one[0] == ticket]
    if mine and leases.left_s(mine[0][2], tx.now()) > TICKET_S / 2:
        return lock
    until = leases.until(tx.now(), TICKET_S)
    if mine:
        mine[0][2] = until
    elif len(lock.waiting) >= MOST_WAITING:
        raise held(lock, len(lock.waiting), 0)
    else:
        lock.waiting.append([ticket, owner, until, at])
    lock.write(tx)
    return lock


def give_up(tx: "Transaction", name: str, ticket: str, granted: bool) -> "tuple[Lock, int]":
    """Wait no longer, or with `granted` have a grant to this ticket undone; the lock, and how many waited before."""
    lock = find(tx, name)
    ahead = lock.ahead_of(ticket)
    is_mine = granted and bool(lock.owner) and lock.ticket == ticket
    if is_mine:
        lock.free()
    if lock.leave(ticket) or is_mine:
        lock.write(tx)
    return lock, ahead


def next_s(tx: "Transaction", lock: Lock) -> float:
    """How long until one who waits must look again: its end, that of the first ticket, half of that of their own."""
    ends = [leases.left_s(one[2], tx.now()) for one in lock.waiting[:1]]
    return min(lock.left_s or TICKET_S, *ends, TICKET_S / 2)


def held(lock: Lock, ahead: int, waited_s: float) -> "errors.LockHeld":
    return errors.LockHeld(
        name=lock.name,
        owner=lock.owner if lock.left_s else "nobody",
        left_s=round(lock.left_s, 1),
        ahead=ahead,
        waited_s=round(waited_s, 1),
    )


def renew(tx: "Transaction", name: str, owner: str, token: int, ttl_s: float) -> Lock:
    """Have it last longer from now on. A lease that was over, and that nobody took, is still its owner's."""
    lock = _held(tx, name, owner, token)
    lock.until, lock.left_s = leases.until(tx.now(), ttl_s), ttl_s
    lock.write(tx)
    return lock


def release(tx: "Transaction", name: str, owner: str, token: int) -> Lock:
    lock = _held(tx, name, owner, token)
    lock.free()
    lock.write(tx)
    return lock


def check_fence(tx: "Transaction", name: str, token: int) -> None:
    """Refuse what is done in the name of a grant that another has followed, or that was given back."""
    lock = find(tx, name)
    if token != lock.token:
        raise errors.Fenced(name=name, token=token, reason=f"{lock.token} is the last that was granted")
    if not lock.owner:
        raise errors.Fenced(name=name, token=token, reason="the lock was released")


def all_of(tx: "Transaction") -> "list[Lock]":
    """Every lock that is held, or waited for."""
    now = tx.now()
    locks = [Lock(name, jsontext.loads_own(item.value), now) for name, item in named.each(tx, LOCKS)]  # type: ignore[arg-type]
    return sorted([lock for lock in locks if lock.left_s or lock.waiting], key=lambda lock: lock.name)


def _held(tx: "Transaction", name: str, owner: str, token: int) -> Lock:
    lock = find(tx, name)
    reason = ""
    if token > lock.token:
        reason = "it was never granted"
    elif token < lock.token:
        reason = f"{lock.owner or 'somebody'} got it since, with {lock.token}"
    elif not lock.owner:
        reason = "it was released"
    elif owner != lock.owner:
        reason = f"it is {lock.owner}'s"
    if reason:
        raise errors.LockLost(name=name, owner=owner, token=token, reason=reason)
    return lock
