"""Messages between agents and their people."""

from accord import errors
from accord.model import new_message_id, read_identities, refuse_identities
from accord.operations import as_is, operation
from accord.services import mail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import (
        Body,
        Channel,
        Conversation,
        Count,
        Flag,
        Identity,
        MessageId,
        MessageIds,
        MessageType,
        Recipients,
        Seconds,
        Text,
    )


@operation(changes=True, halts=True)
def send(
    context: "Context",
    *,
    sender: "Identity",
    message: "Body",
    to: "Recipients | None" = None,
    channel: "Channel | None" = None,
    id: "MessageId | None" = None,
    reply_to: "MessageId | None" = None,
    conversation: "Conversation | None" = None,
    type: "MessageType | None" = None,
) -> "results.Sent":
    """Send a message to one or several agents, to `all`, or to a channel."""
    if not to and not channel and not reply_to:
        raise errors.Usage(reason="A message needs a recipient or a channel", see="mail.send in docs/operations.md")
    size = len(message.encode())
    most = context.settings["message_limit"]
    if size > most:
        raise errors.MessageTooLarge(most=most, found=size)
    names, wrong = read_identities(to or ())
    if wrong and not names:
        raise refuse_identities(wrong)
    draft = mail.Draft(
        id=id or _own_id(context, sender),
        body=message,
        at=context.now(),
        to=names,
        wrong=wrong,
        channel=channel or "",
        reply_to=reply_to or "",
        conversation=conversation or "",
        type=type or "",
        is_new=id is None and not context.caller.request,
    )
    reached = mail.send(context.store, context.actor(sender), draft, context.settings["inbox_limit"])
    return {
        "message_id": draft.id,
        "durability": context.store.durability,
        "to": [{"identity": name, "state": mail.QUEUED} for name in reached],
    }


@operation(halts=True, unless="peek")
def check(
    context: "Context", *, identity: "Identity", limit: "Count" = 100, peek: "Flag" = False, wait: "Seconds" = 0
) -> "results.Inbox":
    """Read the oldest unread messages; they stay unread until they are acknowledged."""
    context.check_reader(identity, peek)
    limit = min(limit, 1000)
    found = mail.unread(context.store, identity, limit)
    if wait and not found["messages"]:
        found = _wait(context, identity, limit, peek, wait) or found
    listener = context.listener(identity)
    return as_is({"identity": identity, "listener": listener, **found, "message_count": len(found["messages"])})


@operation(changes=True)
def ack(context: "Context", *, identity: "Identity", ids: "MessageIds") -> "results.Acknowledged":
    """Acknowledge messages, exactly those named."""
    mail.acknowledge(context.store, context.actor(identity), ids, context.now())
    return {"identity": identity, "acknowledged": ids}


@operation(changes=True)
def hand_over(
    context: "Context", *, identity: "Identity", ids: "MessageIds", by: "Text" = "push"
) -> "results.HandedOver":
    """Note that messages were handed over to an agent; whether it has seen them is another matter."""
    number = _session_number(context, identity) if by == mail.BY_TOOL else 0
    mail.hand_over(context.store, context.actor(identity), ids, by[:50], context.now(), number)
    return {"identity": identity, "handed_over": ids}


@operation()
def sent(context: "Context", *, sender: "Identity", limit: "Count" = 100) -> "results.SentMessages":
    """Show what somebody sent, newest first, and how far it got with each recipient."""
    return {"identity": sender, "messages": as_is(mail.sent(context.store, sender, min(limit, 1000)))}


@operation()
def receipt(context: "Context", *, id: "MessageId") -> "results.Receipt":
    """Show how far a message got with each of its recipients: queued, handed over, seen, answered."""
    return as_is(mail.receipt(context.store, id))


@operation()
def thread(context: "Context", *, conversation: "Conversation", limit: "Count" = 100) -> "results.Thread":
    """Show a conversation, named by its id or by that of one of its messages."""
    return {"conversation": conversation, "messages": as_is(mail.thread(context.store, conversation, min(limit, 1000)))}


@operation()
def search(context: "Context", *, query: "Text", limit: "Count" = 20) -> "results.FoundMessages":
    """Find messages by their words."""
    from accord.services.search import search as find

    cache = f"{context.home.path}/cache"
    found = find(context.store, cache, query, min(limit, 1000), context.progress)
    return {"query": query, "messages": as_is(found)}


def _session_number(context: "Context", identity: str) -> int:
    """Of the session whose model gets what its own tools hand over; its hooks then need not do so again."""
    from accord.services import sessions
    from accord.store.transaction import transact

    return transact(context.store, lambda tx: sessions.number(tx, identity))


def _own_id(context: "Context", sender: str) -> str:
    """An id for a message that came without: for a request that has a name always the same."""
    if not context.caller.request:
        return new_message_id()
    from _blake2 import blake2b

    return new_message_id(blake2b(f"{sender} {context.caller.request}".encode(), digest_size=16).hexdigest())


def _wait(context: "Context", identity: str, limit: int, peek: bool, wait_s: float) -> "dict[str, Any] | None":
    """What comes in time. Whoever waits notices soon that everything is halted, or that the name is another's."""
    from accord.operations import waiting

    def look() -> "dict[str, Any] | None":
        context.check_reader(identity, peek)
        found = mail.unread(context.store, identity, limit)
        return found if found["messages"] else None

    return waiting.until(context, [f"mail/{identity}"], wait_s, look)
