"""The hub of a home: starting, stopping, looking at it, and who may come in over the network."""

from accord.operations import OPERATOR, operation
from accord.services import hub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations.context import Context
    from accord.operations.kinds import Port, Seconds


@operation(changes=True, beyond=True, here=True)
def start(context: "Context", *, port: "Port | None" = None, http_port: "Port | None" = None) -> "dict[str, Any]":
    """Start the hub of this home, unless it runs."""
    context.home.make()
    return hub.start(context.home.path, {name: value for name, value in _ports(port, http_port) if value})


@operation(right=OPERATOR, changes=True, beyond=True)
def stop(context: "Context", *, deadline: "Seconds" = hub.STOP_WITHIN_S) -> "dict[str, Any]":
    """Stop the hub: what it has accepted is finished, and listeners are told."""
    return {"stopped": context.hub.stop(deadline)}


@operation(right=OPERATOR, changes=True, beyond=True, here=True)
def restart(
    context: "Context",
    *,
    deadline: "Seconds" = hub.STOP_WITHIN_S,
    port: "Port | None" = None,
    http_port: "Port | None" = None,
) -> "dict[str, Any]":
    """Stop the hub, if there is one, and start it anew on the same ports."""
    found = hub.status(context.home.path)
    hub.stop(context.home.path, deadline)
    return start(context, port=port or found["port"], http_port=http_port or found["http_port"])


@operation()
def status(context: "Context") -> "dict[str, Any]":
    """Say whether the hub runs, and where it is reached."""
    return context.hub.status()


def _ports(port: "int | None", http_port: "int | None") -> "list[tuple[str, int | None]]":
    return [("port", port), ("http_port", http_port)]
