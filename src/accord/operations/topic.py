"""Publish and subscribe on channels."""

from accord import errors
from accord.model import HUMAN
from accord.operations import OPERATOR, as_is, operation, waiting
from accord.services import topics
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Body, Channel, Count, Place, Seconds, Text


@operation(changes=True, halts=True, step=True)
def publish(context: "Context", *, channel: "Channel", message: "Body") -> "results.Place":
    """Publish on a channel, for all who subscribe to it, now or later."""
    most = context.settings["message_limit"]
    size = len(message.encode())
    if size > most:
        raise errors.MessageTooLarge(most=most, found=size)
    sender = context.agent or (HUMAN if context.right == OPERATOR else context.who)
    return as_is(context.change(lambda tx: topics.publish(tx, channel, sender, message, context.now())))


@operation(halts=True)
def read(
    context: "Context",
    *,
    channel: "Channel",
    after: "Place | None" = None,
    since: "Text" = "",
    limit: "Count" = 100,
    wait: "Seconds" = 0,
) -> "results.Topic":
    """Read what was published on a channel: after a number, since a revision, or all that is kept."""
    if since and after is not None:
        raise errors.Usage(reason="Give a number or a revision to start after, not both", see="topic.read")
    if since:
        after = transact(context.store, lambda tx: topics.place_of(tx, channel, since))

    def look() -> "dict[str, Any] | None":
        found = transact(context.store, lambda tx: topics.read(tx, channel, after or 0, min(limit, 1000)))
        return found if found["entries"] else None

    found = waiting.until(context, [f"topic/{channel}"], wait, look)
    return as_is(found or {"channel": channel, "entries": [], "missed": 0})


@operation()
def last(context: "Context", *, channel: "Channel") -> "results.Place":
    """Show where a channel stands: the number of what was published last."""
    return {"channel": channel, "sequence": transact(context.store, lambda tx: topics.last(tx, channel))}
