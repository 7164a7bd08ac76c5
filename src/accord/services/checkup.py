"""How it stands with what is shared: locks, queues, tasks, the clock. For `accord doctor`."""

import time
from typing import Any

from accord import errors
from accord.model import timestamp
from accord.services import board, locks, queues
from accord.services.audit import entries
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact

LONGEST_WAIT_S = 60.0  # for a lock
LONGEST_SILENCE_S = 24 * 3600.0  # of whoever has a task
MOST_BEHIND_S = 60.0  # of the clock

_MOST = 1000  # tasks that are looked at


def of_locks(store: Store) -> dict[str, Any]:
    """Who holds what, who waits for it, and how long."""
    now = time.time()

    def work(tx: Transaction) -> list[dict[str, Any]]:
        return [_lock(lock, now) for lock in locks.all_of(tx)]

    found = transact(store, work)
    waits = [(waiter["waited_s"], lock, waiter) for lock in found for waiter in lock["waiting"]]
    if waits and max(waits, key=lambda wait: wait[0])[0] > LONGEST_WAIT_S:
        waited_s, lock, waiter = max(waits, key=lambda wait: wait[0])
        what = f"{waiter['owner']} has waited {waited_s:.0f} s for {lock['name']}, which {lock['owner']} holds"
        raise errors.NeedsAttention(what=what, see="accord lock list", beside={"locks": found})
    text = f"{len(found)} held, {len(waits)} waiting"
    return {"found": text, "locks": found}


def of_queues(store: Store) -> dict[str, Any]:
    found = transact(store, queues.all_of)
    dead = [queue for queue in found if queue["dead"]]
    if dead:
        names = ", ".join(f"{queue['queue']} ({queue['dead']})" for queue in dead)
        raise errors.NeedsAttention(what=f"Dead letters in {names}", see=f"accord queue dead {dead[0]['queue']}")
    return {"found": f"{len(found)} with {sum(queue['length'] for queue in found)} entries, no dead letters"}


def of_tasks(store: Store) -> dict[str, Any]:
    """Claims that are kept for ever by somebody who does nothing are as bad as none."""
    now = time.time()

    def work(tx: Transaction) -> list[board.Task]:
        return [task for state in ("claimed", "started") for task in board.all_of(tx, state, None, _MOST)]

    claimed = transact(store, work)
    stuck = [task for task in claimed if task.claim and _age_s(task.claim["said_at"], now) > LONGEST_SILENCE_S]
    if stuck:
        what = f"{stuck[0].holder} has {stuck[0].id}, and said nothing of it since {stuck[0].claim['said_at']}"  # type: ignore[index]
        raise errors.NeedsAttention(what=what, see=f"accord task show {stuck[0].id}")
    return {"found": f"{len(claimed)} in work"}


def of_clock(store: Store) -> dict[str, Any]:
    """Leases go by a clock that nobody sets; times that are shown go by this one."""
    last = transact(store, lambda tx: entries(tx, None, 1))
    now = timestamp(time.time())
    if last and last[0]["at"] > timestamp(time.time() + MOST_BEHIND_S):
        what = f"The clock says {now}, and the last change was made at {last[0]['at']}"
        raise errors.NeedsAttention(what=what, see="the clock of this machine")
    return {"found": now}


def _lock(lock: locks.Lock, now: float) -> dict[str, Any]:
    waiting = [{"owner": owner, "waited_s": round(_age_s(since, now), 1)} for _, owner, _, since in lock.waiting]
    return {
        "name": lock.name,
        "owner": lock.owner,
        "held_s": round(_age_s(lock.since, now), 1) if lock.since else 0.0,
        "left_s": round(lock.left_s, 1),
        "waiting": waiting,
    }


def _age_s(at: str, now: float) -> float:
    from datetime import datetime

    return max(0.0, now - datetime.fromisoformat(at).timestamp())
