"""Who `accord mcp` speaks for where nobody told it: the session of the agent whose program has started it."""

import os
from typing import TYPE_CHECKING

from accord import errors, platform
from accord.hub.session import Session
from accord.services import processes, sessions
from accord.store.transaction import transact

if TYPE_CHECKING:
    from accord.hub.core import Hub

_MOST_ABOVE = 32  # processes above a caller that are looked at


async def speaker(hub: "Hub", session: Session) -> Session:
    """The caller, under its agent's name if it has shown none. Its session may begin later than the pipe."""
    if session.agent or not session.pid or session.uid != os.geteuid():
        return session
    try:
        name = await hub.loop.run_in_executor(hub.pool, _find, hub, session.pid)
    except (OSError, errors.AccordError):
        name = ""  # what is asked will say it
    return session.known_as(name) if name else session


def _find(hub: "Hub", pid: int) -> str:
    processes = _above(pid)
    found = transact(hub.store, lambda tx: sessions.by_process(tx, set(processes)))
    return next((found[process] for process in processes if process in found), "")


def _above(pid: int) -> list[str]:
    """The processes above one, the nearest first."""
    found: list[str] = []
    _, above = platform.command_of(pid)
    while above > 1 and len(found) < _MOST_ABOVE:
        found.append(processes.named(above))
        _, above = platform.command_of(above)
    return found
