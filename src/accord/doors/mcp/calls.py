"""An operation, done for an agent: whoever comes by MCP has the right of one, whatever they have shown."""

import asyncio
import threading
from functools import cache
from typing import Any

from accord import errors, operations
from accord.cli.words import near
from accord.doors.methods import wait_of
from accord.hub.core import REQUEST_S, Hub, Request
from accord.hub.session import Session
from accord.services import agents
from accord.store.transaction import transact

# What would put messages before a model. Under a HALT nothing does, though a person may look.
_HANDS_OVER = ("mail.check", "mail.thread", "mail.search", "mail.sent")

# What tells that a person has written a prompt, and so engages, is for an agent's program; its model shall not say so.
_PROGRAMS_OWN = "hook"


@cache
def reachable() -> tuple[str, ...]:
    """The operations that agents have, and that a hub can do."""
    groups = [group for group in operations.NAMES if group != _PROGRAMS_OWN]
    names = [f"{group}.{word}" for group in groups for word in operations.NAMES[group]]
    return tuple(name for name in names if _is_reachable(operations.find(name)))


async def call(hub: Hub, session: Session, name: str, params: dict[str, Any], request: str = "") -> dict[str, Any]:
    """What it answers. `request` is the caller's own name for this call, by which it is done once."""
    function = _find(name)
    if name in _HANDS_OVER:
        await hub.loop.run_in_executor(hub.pool, _check_may_see, hub, session.agent)
    wait_s = wait_of(function, params)
    writes = function.changes and not function.beyond and not wait_s
    context = hub.context(session.renewed(request), writes)
    gone = threading.Event()
    over = context.is_gone
    context.is_gone = lambda: gone.is_set() or over()
    answered: asyncio.Future[dict[str, Any]] = hub.loop.create_future()
    hub.count("requests")
    hub.call(Request(context, name, params, answered, _answer), wait_s > 0)
    try:
        async with asyncio.timeout(REQUEST_S + wait_s):
            return await answered
    except TimeoutError:
        raise errors.RequestTimeout(method=name, timeout_seconds=REQUEST_S + wait_s) from None
    finally:
        gone.set()  # nobody waits for it any more


def _check_may_see(hub: Hub, agent: str) -> None:
    """Not under a HALT, nor after it until a person has engaged the agent."""
    hub.halt.check()
    halts = hub.halt.count()
    if agent and halts:
        transact(hub.store, lambda tx: agents.check_engaged(tx, agent, halts))


def _find(name: str) -> Any:
    group, _, word = name.partition(".")
    if group == _PROGRAMS_OWN or word not in operations.NAMES.get(group, ()):
        raise errors.MethodNotFound(method=name[:100], near=near(name[:100], reachable()))
    function: Any = operations.find(name)
    if function.here:
        raise errors.MethodNotFound(method=name, near=" in a hub: only a process of one's own can do that")
    return function


def _is_reachable(function: Any) -> bool:
    return function.right == operations.AGENT and not function.here


def _answer(request: Request) -> None:
    if request.asked.done():
        return
    if request.error is None:
        request.asked.set_result(request.result)
    else:
        request.asked.set_exception(request.error)
