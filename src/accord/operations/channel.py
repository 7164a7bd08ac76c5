"""Channels: what is sent to one reaches all who joined it."""

from accord.operations import as_is, operation
from accord.services import channels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Channel, Identity


@operation(changes=True)
def join(context: "Context", *, channel: "Channel", identity: "Identity") -> "results.Membership":
    """Join a channel; it is made when nobody was in it before."""
    channels.join(context.store, context.actor(identity), channel, context.now())
    return {"channel": channel, "identity": identity}


@operation(changes=True)
def leave(context: "Context", *, channel: "Channel", identity: "Identity") -> "results.Membership":
    """Leave a channel."""
    channels.leave(context.store, context.actor(identity), channel)
    return {"channel": channel, "identity": identity}


@operation()
def list(context: "Context") -> "results.Channels":
    """Show the channels and who is in them."""
    return {"channels": as_is(channels.all_of(context.store))}
