"""The hub of a home: starting, stopping, looking at it, and who may come in over the network."""

from accord import errors
from accord.operations import OPERATOR, as_is, operation
from accord.services import hub
from accord.services import port as ports
from accord.services.keys import LOCAL, Keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import OwnIdentity, Port, Seconds


@operation(changes=True, beyond=True, here=True)
def start(context: "Context", *, port: "Port | None" = None, http_port: "Port | None" = None) -> "results.StartedHub":
    """Start the hub of this home, unless it runs."""
    context.home.make()
    return as_is(hub.start(context.home.path, _ports(port, http_port), context.settings["wait_timeout_s"]))


@operation(right=OPERATOR, changes=True, beyond=True)
def stop(context: "Context", *, deadline: "Seconds" = hub.STOP_WITHIN_S) -> "results.StoppedHub":
    """Stop the hub: what it has accepted is finished, and listeners are told."""
    return {"stopped": context.hub.stop(deadline)}


@operation(right=OPERATOR, changes=True, beyond=True, here=True)
def restart(
    context: "Context",
    *,
    deadline: "Seconds" = hub.STOP_WITHIN_S,
    port: "Port | None" = None,
    http_port: "Port | None" = None,
) -> "results.StartedHub":
    """Stop the hub, if there is one, and start it anew on the same ports."""
    found = hub.status_when_ready(context.home.path, context.settings["wait_timeout_s"])
    wanted = _ports(port or found["port"], http_port or found["http_port"])
    for new in set(wanted.values()) - {found["port"], found["http_port"]}:
        ports.check(new)  # before the one that runs is gone
    hub.stop(context.home.path, deadline)
    return start(context, **wanted)


@operation()
def status(context: "Context") -> "results.HubStatus":
    """Say whether the hub runs and answers, and where it is reached."""
    found = context.hub.status()
    return as_is({**found, "answers": found["running"] and context.hub.answers()})


@operation(right=OPERATOR, changes=True, beyond=True)
def keys_make(context: "Context", *, name: "OwnIdentity") -> "results.MadeKey":
    """Make a key with which an agent may connect over ZeroMQ; the file at `path` holds all that it needs."""
    context.home.make()
    port = context.hub.status()["port"] or context.settings["hub_port"]
    return as_is(Keys(context.home.path).make(name, f"{LOCAL}{port}"))


@operation(right=OPERATOR)
def keys_list(context: "Context") -> "results.Keys":
    """List the keys that may connect over ZeroMQ."""
    return {"keys": as_is(Keys(context.home.path).listed())}


@operation(right=OPERATOR, changes=True, beyond=True)
def keys_revoke(context: "Context", *, name: "OwnIdentity") -> "results.RevokedKey":
    """Revoke a key: whoever is connected with it gets nothing any more, and cannot connect again."""
    return as_is(Keys(context.home.path).revoke(name))


def _ports(port: "int | None", http_port: "int | None") -> "dict[str, int]":
    """Those that are given."""
    if port and port == http_port:
        raise errors.Usage(reason=f"port and http_port are both {port}", see="hub.start in docs/operations.md")
    return {name: value for name, value in (("port", port), ("http_port", http_port)) if value}
