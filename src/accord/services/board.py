"""Tasks as they are kept: each lies where its state puts it, so that nobody has to look through all of them.

task                    each task, by its number
task-id/...             the number of what people call so
task-text               what there is to say of a task beyond its title, by number
task-count              how many tasks there are, and how often dependencies were added later
task-ready              what anybody may take, in the order in which it should be taken
task-ready-for/AGENT    the same, of what is assigned to somebody
task-due                what is claimed, in the order in which the claims end
task-waiting            what waits for other tasks
task-blocked            what somebody blocked
task-done               the numbers of what is done, in that order
task-needed             NUMBER-NUMBER: the second waits for the first, which was not done by then
task-wake               what is done, and may have others waiting for it that do not know yet
"""

from accord import errors, jsontext
from accord.model import PRIORITIES
from accord.services import leases, named
from accord.store import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from accord.store.contract import Instant, Item
    from accord.store.transaction import Transaction

TASKS, IDS, TEXTS, COUNT = "task", "task-id", "task-text", "task-count"
READY, READY_FOR, DUE = "task-ready", "task-ready-for", "task-due"
WAITING, BLOCKED, DONE = "task-waiting", "task-blocked", "task-done"
NEEDED, WAKE = "task-needed", "task-wake"

OPEN = "open"  # neither blocked nor done

_DIGITS = 10  # of a number
_PAGE = 100
_AT_ONCE = 10  # tasks that one commit puts elsewhere: each takes up to four writes


class Task:
    """A task as it is now: a claim that is over is not there."""

    id: str
    title: str
    priority: str
    standing: str  # OPEN, "blocked" or "done"
    reason: str  # why it is blocked
    assignee: str  # "": anybody
    after: "list[list[Any]]"  # number and id of each task that must be done before
    is_needed: bool  # whether others had to wait for it
    token: int  # of the last claim
    claim: "dict[str, Any] | None"  # agent, session, since, said_at, ttl_s, due (when it ends), is_started
    assignments: "dict[str, dict[str, Any]]"  # of each agent that ever had it
    note: str
    created_at: str
    done_at: str
    done_by: str
    place: "list[str] | None"  # the key of the item that says where it lies

    def __init__(self, number: int, record: "dict[str, Any]", now: "Instant") -> None:
        self.number = number
        self.__dict__.update(record)
        self.left_s = leases.due_left_s(self.claim["due"], now) if self.claim else 0.0
        if self.claim and not self.left_s:
            self.end_claim("expired")

    @property
    def holder(self) -> str:
        return str(self.claim["agent"]) if self.claim else ""

    @property
    def is_done(self) -> bool:
        return self.standing == "done"

    def end_claim(self, why: str) -> None:
        """Nobody has it any more; what became of the assignment."""
        if self.claim:
            self.assignments[self.holder]["status"] = why
            self.claim, self.left_s = None, 0.0


def find(tx: "Transaction", id: str) -> Task:
    item = tx.get(*names.to_key(IDS, id), check=False)  # once there, it stays
    if item is None:
        raise errors.TaskNotFound(id=id)
    return load(tx, int(item.value))


def load(tx: "Transaction", number: int, check: bool = True) -> Task:
    item = tx.get(TASKS, key(number), check)
    if item is None:
        raise errors.StoreDamaged(path=f"task {number}", reason="it is named elsewhere, and is not there")
    return _decoded(item, tx.now())


def save(tx: "Transaction", task: Task) -> None:
    """Write it, and leave it where it is."""
    record = {name: task.__dict__[name] for name in Task.__annotations__}
    tx.put(TASKS, key(task.number), jsontext.dumps(record).encode())


def settle(tx: "Transaction", task: Task) -> None:
    """Write it, and put it where it belongs."""
    place = _place(tx, task)
    if place != task.place:
        if task.place:
            tx.delete(*task.place)
        if place:
            tx.put(place[0], place[1], b"")
        task.place = place
    save(tx, task)


def tidy(tx: "Transaction") -> bool:
    """Give back some of what is claimed no longer, or waits no longer; whether there may be more to do."""
    over = leases.over(tx, DUE, _AT_ONCE)
    for item in over:
        settle(tx, load(tx, int(leases.what_of(item.id))))
    return bool(over) or _wake(tx)


def _wake(tx: "Transaction") -> bool:
    """Look again at some of those that wait for something done."""
    done = tx.list(WAKE, limit=1, check=False)
    if not done:
        return False
    first = f"{done[0].id}-"
    page = tx.list(NEEDED, first, _AT_ONCE, check=False)
    waiting = [item.id for item in page if item.id.startswith(first)]
    for id in waiting:
        tx.delete(NEEDED, id)
        # Written even when it stays where it is: whoever read it before that task was done must read it again.
        settle(tx, load(tx, int(id[len(first) :])))
    if len(waiting) < _AT_ONCE:
        tx.delete(WAKE, done[0].id)
    return True


def unfinished(tx: "Transaction", task: Task) -> "Iterator[str]":
    """What it waits for. What is done stays so, so that nothing here needs to be checked."""
    for number, id in task.after:
        if not load(tx, number, check=False).is_done:
            yield id


def state(tx: "Transaction", task: Task) -> str:
    if task.standing != OPEN:
        return task.standing
    if task.claim:
        return "started" if task.claim["is_started"] else "claimed"
    return "waiting" if any(unfinished(tx, task)) else "ready"


def all_of(tx: "Transaction", state: "str | None", agent: "str | None", limit: int) -> "list[Task]":
    """Those in a state, in the order in which it matters, or all, the newest first; those of an agent, or all."""
    found: list[Task] = []
    for task in _each(tx, state):
        if agent is None or agent in (task.holder, task.assignee, task.done_by):
            found.append(task)
            if len(found) == limit:
                break
    return found


def count(tx: "Transaction", what: str) -> int:
    """How many there were so far; whoever reads it is disturbed by whoever counts on."""
    item = tx.get(COUNT, what)
    return 0 if item is None else int(item.value)


def key(number: int) -> str:
    return f"{number:0{_DIGITS}d}"


def ready_for(agent: str) -> str:
    return names.to_collection(READY_FOR, agent)


def number_of(place_id: str) -> int:
    """Of the task that lies there."""
    return int(place_id[-_DIGITS:])


def _place(tx: "Transaction", task: Task) -> "list[str] | None":
    if task.is_done:
        return None
    if task.claim:
        return [DUE, task.claim["due"]]
    order = f"{PRIORITIES.index(task.priority)}-{key(task.number)}"
    if task.standing == "blocked":
        return [BLOCKED, order]
    if any(unfinished(tx, task)):
        return [WAITING, order]
    return [ready_for(task.assignee) if task.assignee else READY, order]


def _each(tx: "Transaction", state: "str | None") -> "Iterator[Task]":
    now = tx.now()
    if state is None:
        yield from (_decoded(item, now) for item in _items(tx, TASKS, reverse=True))
    elif state == "done":
        yield from (load(tx, int(item.value), check=False) for item in _items(tx, DONE, reverse=True))
    elif state in ("claimed", "started"):
        tasks = (load(tx, number_of(item.id), check=False) for item in _items(tx, DUE))
        yield from (task for task in tasks if task.claim and task.claim["is_started"] == (state == "started"))
    else:
        for item in _in_order(tx, {"ready": READY, "waiting": WAITING, "blocked": BLOCKED}[state]):
            yield load(tx, number_of(item.id), check=False)


def _in_order(tx: "Transaction", collection: str) -> "Iterator[Item]":
    """What lies in it, and in those below it."""
    from heapq import merge

    below = named.collections(tx, READY_FOR) if collection == READY else []
    yield from merge(*[_items(tx, one) for one in [collection, *below]], key=lambda item: item.id)


def _items(tx: "Transaction", collection: str, reverse: bool = False) -> "Iterator[Item]":
    after = ""
    while page := tx.list(collection, after, _PAGE, reverse, check=False):
        yield from page
        after = page[-1].id


def _decoded(item: "Item", now: "Instant") -> Task:
    return Task(int(item.id), jsontext.loads_own(item.value), now)  # type: ignore[arg-type]
