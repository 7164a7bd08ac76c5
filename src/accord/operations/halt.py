"""Stopping everything, and letting it go on."""

from accord import errors
from accord.operations import OPERATOR, operation
from accord.services import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Flag, Identities, Text


@operation(changes=True, beyond=True)
def set(context: "Context", *, reason: "Text" = "") -> "results.HaltState":
    """Halt everything, in every home of this user; anybody may."""
    context.halt.set(reason)
    return {"halted": context.halt.reason(), "path": context.halt.path}


@operation(right=OPERATOR, changes=True, beyond=True)
def lift(context: "Context") -> "results.Lifted":
    """Lift a halt; the agents that were there wait until they are engaged."""
    return {"lifted": context.halt.lift()}


@operation(right=OPERATOR, changes=True)
def engage(context: "Context", *, identities: "Identities | None" = None, all: "Flag" = False) -> "results.Engaged":
    """Let agents go on after a halt: those named, or all."""
    if bool(identities) == all:
        raise errors.Usage(reason="Name the agents to engage, or say --all", see="accord engage --help")
    return {"engaged": agents.engage(context.store, identities or [], context.halt.count())}


@operation()
def status(context: "Context") -> "results.HaltState":
    """Say whether everything is halted, and why."""
    return {"halted": context.halt.reason(), "path": context.halt.path}
