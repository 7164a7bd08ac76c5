"""The task board: tasks that wait for each other, and agents that take them, each task one at a time."""

import time

from accord import errors
from accord.model import timestamp
from accord.operations import as_is, operation, waiting
from accord.services import board as boards
from accord.services import leases, tasks
from accord.services.tasks import Agent
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import (
        Count,
        Label,
        Lease,
        Priority,
        Reason,
        Seconds,
        Session,
        TaskId,
        TaskIds,
        TaskState,
        Text,
        Title,
    )
    from accord.services.board import Task
    from accord.store.transaction import Transaction

_TTL_S = 1800
_COMMITS = 50  # after which whoever looks is content with what is where it belongs by then
_COLUMNS = ("ready", "waiting", "started", "claimed", "blocked", "done")


@operation(changes=True, halts=True, step=True)
def add(
    context: "Context",
    *,
    title: "Title",
    id: "TaskId | None" = None,
    text: "Text" = "",
    priority: "Priority" = "normal",
    after: "TaskIds | None" = None,
    assignee: "Label | None" = None,
) -> "results.Task":
    """Add a task to the board."""
    at = context.now()
    return _change(context, lambda tx: tasks.add(tx, title, at, id, text, priority, after or (), assignee))


@operation(changes=True, step=True)
def depend(context: "Context", *, id: "TaskId", after: "TaskIds") -> "results.Task":
    """Have a task wait for others."""
    return _change(context, lambda tx: tasks.depend(tx, id, after))


@operation(changes=True, step=True)
def assign(context: "Context", *, id: "TaskId", agent: "Label", session: "Session | None" = None) -> "results.Task":
    """Say which agent is to do a task; no other can take it then."""
    return _change(context, lambda tx: tasks.assign(tx, id, Agent(agent, context.now(), session=session or "")))


@operation(changes=True, halts=True, step=True)
def claim(
    context: "Context", *, id: "TaskId", agent: "Label", ttl: "Lease" = _TTL_S, session: "Session | None" = None
) -> "results.Task":
    """Take a task, for a time after which it is free again; or keep it for longer."""
    return _change(context, lambda tx: tasks.claim(tx, id, Agent(agent, context.now(), ttl, session or "")))


@operation(changes=True, halts=True)
def next(
    context: "Context", *, agent: "Label", ttl: "Lease" = _TTL_S, wait: "Seconds" = 0, session: "Session | None" = None
) -> "results.Task":
    """Take the best task that is ready: one assigned to the agent, then the most urgent, then the oldest."""

    def work(tx: "Transaction") -> "results.Task | None":
        task = tasks.claim_next(tx, Agent(agent, context.now(), ttl, session or ""))
        return None if task is None else _shown(tx, task)

    def look() -> "results.Task | None":
        is_tidy, found = False, None
        while found is None and not is_tidy:
            is_tidy = _tidy(context)
            found = context.change(work)
        return found

    found = waiting.until(context, [boards.TASKS], wait, look, lambda: _pause_s(context))
    if found is None:
        waited = f"; {wait:g} s were waited for a task to be ready" if wait else ""
        raise errors.Empty(what="The board", waited=f" for {agent}{waited}")
    return found


@operation(changes=True, halts=True, step=True)
def start(context: "Context", *, id: "TaskId", agent: "Label") -> "results.Task":
    """Say that work on a claimed task has begun; the claim lasts as long again."""
    at = context.now()
    return _change(context, lambda tx: tasks.start(tx, id, agent, at))


@operation(changes=True, step=True)
def progress(
    context: "Context", *, id: "TaskId", agent: "Label", note: "Text", ttl: "Lease | None" = None
) -> "results.Task":
    """Say how it goes with a claimed task; the claim lasts as long again."""
    at = context.now()
    return _change(context, lambda tx: tasks.progress(tx, id, agent, at, note, ttl))


@operation(changes=True, step=True)
def block(context: "Context", *, id: "TaskId", reason: "Reason", agent: "Label | None" = None) -> "results.Task":
    """Let nobody take a task until it is unblocked; whoever has it has it no longer."""
    return _change(context, lambda tx: tasks.block(tx, id, reason, agent))


@operation(changes=True, step=True)
def unblock(context: "Context", *, id: "TaskId") -> "results.Task":
    """Let a blocked task be taken again."""
    return _change(context, lambda tx: tasks.unblock(tx, id))


@operation(changes=True, step=True)
def release(context: "Context", *, id: "TaskId", agent: "Label") -> "results.Task":
    """Give a claimed task back, for anybody to take."""
    return _change(context, lambda tx: tasks.release(tx, id, agent))


@operation(changes=True, step=True)
def done(context: "Context", *, id: "TaskId", agent: "Label | None" = None, note: "Text" = "") -> "results.Task":
    """Say that a task is done: whoever has it, or anybody when nobody has."""
    at = context.now()
    return _change(context, lambda tx: tasks.done(tx, id, at, agent, note))


@operation()
def show(context: "Context", *, id: "TaskId") -> "results.WholeTask":
    """Show a task with its text, what it waits for, and who had it."""

    def work(tx: "Transaction") -> "results.WholeTask":
        task = boards.find(tx, id)
        return {
            **_shown(tx, task),
            "text": tasks.text_of(tx, task),
            "waits_for": [*boards.unfinished(tx, task)],
            "assignments": [as_is({"agent": agent, **how}) for agent, how in task.assignments.items()],
        }

    return transact(context.store, work)


@operation()
def list(
    context: "Context", *, state: "TaskState | None" = None, agent: "Label | None" = None, limit: "Count" = 100
) -> "results.Tasks":
    """Show tasks: the newest first, or those in a state, in the order in which it matters."""
    _tidy(context)
    return {
        "tasks": transact(
            context.store, lambda tx: [_shown(tx, task) for task in boards.all_of(tx, state, agent, limit)]
        )
    }


@operation()
def board(context: "Context", *, limit: "Count" = 10) -> "results.Board":
    """Show the board: of each state the tasks that come first, of those done the latest."""
    _tidy(context)

    def work(tx: "Transaction") -> "results.Board":
        found = {state: boards.all_of(tx, state, None, limit + 1) for state in _COLUMNS}
        columns = {state: [_shown(tx, task) for task in some[:limit]] for state, some in found.items()}
        return as_is({**columns, "more": [state for state, some in found.items() if len(some) > limit]})

    return transact(context.store, work)


def _change(context: "Context", work: "Callable[[Transaction], Task]") -> "results.Task":
    return context.change(lambda tx: _shown(tx, work(tx)))


def _tidy(context: "Context") -> bool:
    """Have what is looked at lie where it belongs by now, in so many commits; whether all does."""
    return not all(transact(context.store, boards.tidy) for _ in range(_COMMITS))


def _pause_s(context: "Context") -> float:
    """Until the first claim is over."""
    return transact(context.store, lambda tx: leases.next_s(tx, boards.DUE)) + 0.001


def _shown(tx: "Transaction", task: "Task") -> "results.Task":
    claim = task.claim or {}
    return {
        "id": task.id,
        "title": task.title,
        "state": boards.state(tx, task),
        "priority": task.priority,
        "assignee": task.assignee or None,
        "agent": task.holder or task.done_by or None,
        "session": claim.get("session") or None,
        "token": task.token if claim else None,
        "expires_at": timestamp(time.time() + task.left_s) if claim else None,
        "after": [id for _, id in task.after],
        "reason": task.reason or None,
        "note": task.note or None,
        "created_at": task.created_at,
        "done_at": task.done_at or None,
    }
