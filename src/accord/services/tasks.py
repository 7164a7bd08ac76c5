"""The task board: who does what, when it may be begun, and that nobody does it twice. `board.py` says where tasks lie.

A claim is a lease. Once it is over, whoever looks for work finds the task again; until somebody has taken it, the one
who had it may still say that it is done.
"""

from accord import errors
from accord.services import board, leases
from accord.services.board import Task
from accord.store import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from accord.store.transaction import Transaction

MAX_TEXT_BYTES = 100_000
WHAT_TEXT = "The text of a task"
MAX_NOTE_BYTES = 10_000
MOST_ASSIGNMENTS = 100  # of one task that are remembered

_MOST_NAMED = 10  # ids in one sentence


class Agent:
    """Somebody who takes a task, from when, and for how long."""

    def __init__(self, name: str, at: str, ttl_s: float = 0.0, session: str = "") -> None:
        self.name = name
        self.at = at
        self.ttl_s = ttl_s
        self.session = session  # of the agent, which may have several


def add(
    tx: "Transaction",
    title: str,
    at: str,
    id: "str | None" = None,
    text: str = "",
    priority: str = "normal",
    after: "Sequence[str]" = (),
    assignee: "str | None" = None,
) -> Task:
    """A new task, under an id that no other has."""
    _check_size(WHAT_TEXT, text, MAX_TEXT_BYTES)
    number = board.count(tx, "tasks") + 1
    if id is None:
        id = _unused(tx, number)
    elif tx.get(*names.to_key(board.IDS, id)) is not None:
        raise errors.TaskExists(id=id)
    task = Task(number, _new(id, title, priority, at), tx.now())
    _wait_for(tx, task, after)
    if assignee is not None:
        _assign(task, Agent(assignee, at))
    tx.put(board.COUNT, "tasks", b"%d" % number)
    tx.put(*names.to_key(board.IDS, id), b"%d" % number)
    if text:
        tx.put(board.TEXTS, board.key(number), text.encode())
    board.settle(tx, task)
    return task


def depend(tx: "Transaction", id: str, after: "Sequence[str]") -> Task:
    """Have it wait for others too. Whoever has it keeps it."""
    task = board.find(tx, id)
    _check_open(task)
    # All who add dependencies to what is there write this, so that two halves of a cycle cannot miss each other.
    tx.put(board.COUNT, "dependencies", b"%d" % (board.count(tx, "dependencies") + 1))
    for before in _wait_for(tx, task, after):
        path = _path(tx, before, task)
        if path:
            raise errors.DependencyCycle(cycle=_listed([task.id, *path], " waits for "))
    board.settle(tx, task)
    return task


def assign(tx: "Transaction", id: str, agent: Agent) -> Task:
    """Say whose it is: nobody else can claim it then."""
    task = board.find(tx, id)
    _check_open(task)
    if task.claim and task.holder != agent.name:
        raise _claimed(task)
    mine = task.assignments.get(agent.name)
    if task.assignee == agent.name and mine and agent.session in ("", mine["session"]):
        return task
    _assign(task, agent)
    board.settle(tx, task)
    return task


def claim(tx: "Transaction", id: str, agent: Agent) -> Task:
    """Take it for a while, or have it for longer."""
    task = board.find(tx, id)
    if task.claim and task.holder != agent.name:
        raise _claimed(task)
    reason = "" if task.claim else _why_not(tx, task, agent.name)
    if reason:
        raise errors.NotReady(id=id, reason=reason)
    return _take(tx, task, agent)


def claim_next(tx: "Transaction", agent: Agent) -> "Task | None":
    """Take the best that is ready: what is assigned to the agent first."""
    for collection in (board.ready_for(agent.name), board.READY):
        first = tx.list(collection, limit=1, check=False)  # the task itself is checked, and tells whether it still is
        if first:
            return _take(tx, board.load(tx, board.number_of(first[0].id)), agent)
    return None


def start(tx: "Transaction", id: str, agent: str, at: str) -> Task:
    task = _held(tx, id, agent)
    task.assignments[agent]["status"] = "started"
    return _renew(tx, task, at, is_started=True)


def progress(tx: "Transaction", id: str, agent: str, at: str, note: str, ttl_s: "float | None" = None) -> Task:
    """Say how it goes, and have the task for longer."""
    task = _held(tx, id, agent)
    task.note = _note(note)
    return _renew(tx, task, at, **({} if ttl_s is None else {"ttl_s": ttl_s}))


def release(tx: "Transaction", id: str, agent: str) -> Task:
    """Give it back to everybody."""
    task = _held(tx, id, agent)
    task.end_claim("released")
    task.assignee = ""
    board.settle(tx, task)
    return task


def block(tx: "Transaction", id: str, reason: str, agent: "str | None" = None) -> Task:
    """Let nobody take it until it is unblocked. An agent can do so unless another has it, a person always."""
    task = board.find(tx, id)
    _check_open(task)
    if agent is not None and task.claim and task.holder != agent:
        raise errors.NotClaimed(id=id, agent=agent, reason=f"{task.holder} does")
    task.end_claim("blocked")
    task.standing, task.reason = "blocked", _note(reason)
    board.settle(tx, task)
    return task


def unblock(tx: "Transaction", id: str) -> Task:
    task = board.find(tx, id)
    _check_open(task)
    if task.standing == "blocked":
        task.standing, task.reason = board.OPEN, ""
        board.settle(tx, task)
    return task


def done(tx: "Transaction", id: str, at: str, agent: "str | None" = None, note: str = "") -> Task:
    """End it: whoever has it, or anybody when nobody has. Those that wait for it are looked at afterwards."""
    task = board.find(tx, id)
    who = agent or ""
    if task.is_done and task.done_by == who:
        return task
    if task.is_done or task.holder not in ("", who):
        reason = f"{task.done_by or 'somebody'} did it" if task.is_done else f"{task.holder} does"
        raise errors.NotClaimed(id=id, agent=agent or "whoever says no name", reason=reason)
    task.claim = None
    task.standing, task.reason, task.note = "done", "", _note(note) or task.note
    task.done_at, task.done_by = at, who
    if agent:
        mine = task.assignments.get(agent) or _enter(task, Agent(agent, at))
        mine |= {"status": "done", "completed_at": at}
    board.settle(tx, task)
    tx.append(board.DONE, b"%d" % task.number)
    if task.is_needed:
        tx.put(board.WAKE, board.key(task.number), b"")
    return task


def text_of(tx: "Transaction", task: Task) -> str:
    item = tx.get(board.TEXTS, board.key(task.number))
    return "" if item is None else item.value.decode()


def _new(id: str, title: str, priority: str, at: str) -> "dict[str, Any]":
    return {
        "id": id, "title": title, "priority": priority, "standing": board.OPEN, "reason": "", "assignee": "",
        "after": [], "is_needed": False, "token": 0, "claim": None, "assignments": {}, "note": "",
        "created_at": at, "done_at": "", "done_by": "", "place": None,
    }  # fmt: skip


def _unused(tx: "Transaction", number: int) -> str:
    """`t` and its number, or a larger one where people took that."""
    step = 1
    while tx.get(*names.to_key(board.IDS, f"t{number}"), check=False) is not None:
        number += step
        step *= 2
    tx.get(*names.to_key(board.IDS, f"t{number}"))
    return f"t{number}"


def _wait_for(tx: "Transaction", task: Task, after: "Sequence[str]") -> "list[Task]":
    """Have it wait for these; those of them that are not done."""
    waits_for = []
    for id in after:
        if id == task.id:
            raise errors.DependencyCycle(cycle=f"{id} waits for {id}")
        before = board.find(tx, id)
        if any(number == before.number for number, _ in task.after):
            continue
        task.after.append([before.number, id])
        if before.is_done:
            continue
        waits_for.append(before)
        tx.put(board.NEEDED, f"{board.key(before.number)}-{board.key(task.number)}", b"")
        if not before.is_needed:
            before.is_needed = True
            board.save(tx, before)
    return waits_for


def _path(tx: "Transaction", start: Task, goal: Task) -> "list[str]":
    """The ids of tasks, each of which waits for the next, from one to another; none when there is no such path.

    Read without checks, which could be thousands: `depend` alone can make one, and no two of them at once.
    """
    came_from = {start.number: 0}
    ids = {start.number: start.id}
    left = [start.number]
    while left:
        number = left.pop()
        if number == goal.number:
            path = [number]
            while came_from[path[-1]]:
                path.append(came_from[path[-1]])
            return [ids[number] for number in reversed(path)]
        task = board.load(tx, number, check=False)
        for before, id in [] if task.is_done else task.after:
            if before not in came_from:
                came_from[before], ids[before] = number, id
                left.append(before)
    return []


def _assign(task: Task, agent: Agent) -> None:
    before = task.assignments.get(task.assignee)
    if before and task.assignee != agent.name:
        before["status"] = "reassigned"
    task.assignee = agent.name
    mine = _enter(task, agent)
    if task.claim:
        mine["status"] = "started" if task.claim["is_started"] else "claimed"


def _enter(task: Task, agent: Agent) -> "dict[str, Any]":
    """The agent's assignment, made anew; there is one of each."""
    before = task.assignments.pop(agent.name, {})
    task.assignments[agent.name] = mine = {
        "session": agent.session or before.get("session", ""),
        "status": "assigned",
        "assigned_at": agent.at,
        "completed_at": None,
    }
    while len(task.assignments) > MOST_ASSIGNMENTS:
        del task.assignments[next(iter(task.assignments))]
    return mine


def _take(tx: "Transaction", task: Task, agent: Agent) -> Task:
    if task.claim:
        session = agent.session or task.claim["session"]
        task.assignments[agent.name]["session"] = session
        return _renew(tx, task, agent.at, ttl_s=agent.ttl_s, session=session)
    mine = task.assignments.get(agent.name)
    if task.assignee != agent.name or mine is None:
        mine = _enter(task, agent)
    mine |= {"status": "claimed", "session": agent.session or mine["session"]}
    task.token += 1
    task.claim = {"agent": agent.name, "since": agent.at, "is_started": False}
    return _renew(tx, task, agent.at, ttl_s=agent.ttl_s, session=mine["session"])


def _renew(tx: "Transaction", task: Task, at: str, **changed: object) -> Task:
    """Have the claim last as long as it did at first, or as it shall from now on."""
    claim: Any = {**(task.claim or {}), "said_at": at, **changed}
    claim["due"] = leases.due_id(tx.now(), claim["ttl_s"], board.key(task.number))
    task.claim, task.left_s = claim, claim["ttl_s"]
    board.settle(tx, task)
    return task


def _held(tx: "Transaction", id: str, agent: str) -> Task:
    task = board.find(tx, id)
    if not task.claim or task.holder != agent:
        if task.claim:
            reason = f"{task.holder} does"
        elif agent in task.assignments and task.assignments[agent]["status"] == "expired":
            reason = "its time was over"
        else:
            reason = f"it is {board.state(tx, task)}"
        raise errors.NotClaimed(id=id, agent=agent, reason=reason)
    return task


def _why_not(tx: "Transaction", task: Task, agent: str) -> str:
    """Why the agent cannot take a task that nobody has; "" when it can."""
    if task.is_done:
        return "it is done"
    if task.standing == "blocked":
        return f"it is blocked, {task.reason}" if task.reason else "it is blocked"
    if task.assignee not in ("", agent):
        return f"it is assigned to {task.assignee}"
    before = list(board.unfinished(tx, task))
    return f"it waits for {_listed(before, ', ')}" if before else ""


def _check_open(task: Task) -> None:
    if task.is_done:
        raise errors.NotReady(id=task.id, reason="it is done")


def _claimed(task: Task) -> "errors.AlreadyClaimed":
    return errors.AlreadyClaimed(id=task.id, holder=task.holder, left_s=round(task.left_s, 1))


def _note(text: str) -> str:
    _check_size("A note on a task", text, MAX_NOTE_BYTES)
    return text


def _check_size(what: str, text: str, most: int) -> None:
    size = len(text.encode())
    if size > most:
        raise errors.TooLarge(what=what, most=most, found=size)


def _listed(ids: "Sequence[str]", between: str) -> str:
    """The ids; of many, the first and the last."""
    if len(ids) > _MOST_NAMED:
        half = _MOST_NAMED // 2
        ids = [*ids[:half], f"... ({len(ids) - 2 * half} more)", *ids[-half:]]
    return between.join(ids)
