"""Messages: sending, reading, acknowledging.

messages/ID         the message, once: a line of JSON, with the number it has in each recipient's inbox, then the text
mail/NAME           an inbox: numbered ids, never changed and never removed
cursor              how far each inbox was acknowledged
sent/NAME           what somebody sent, numbered ids
thread/...          the messages of a conversation, numbered ids
answered/NAME       what somebody answered, by the id that was answered, and with what
handed/NAME         what was handed over to somebody and not seen at once, by id, and how
"""

from accord import errors, jsontext
from accord.model import ALL, HUMAN, MAX_MESSAGE_BYTES, refuse_identities
from accord.services import agents, cursors
from accord.store.contract import number_id
from accord.store.transaction import MOST_WRITES, transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from accord.services.agents import Actor
    from accord.store.contract import Number, Template
    from accord.store.protocols import Store
    from accord.store.transaction import Transaction

MESSAGES = "messages"
MOST_RECIPIENTS = MOST_WRITES - 4  # the message, what was sent, the conversation, what was answered

_SHOWN = (
    "from", "to", "timestamp", "message", "conversation", "type", "sequence", "reply_to", "channel", "verified",
)  # fmt: skip

HANDED = "handed"
BY_TOOL = "mcp"  # what hands over to the model that asked for it

_MOST_AT_ONCE = 128 << 20  # characters that one check reads; the rest remains

# Delivery states, in their order.
QUEUED, HANDED_OVER, SEEN, ANSWERED = "queued", "handed_over", "seen", "answered"


class Draft:
    """A message that is about to be sent."""

    def __init__(
        self,
        id: str,
        body: str,
        at: str,
        to: "Sequence[str]" = (),
        wrong: "Sequence[errors.InvalidIdentity]" = (),
        channel: str = "",
        reply_to: str = "",
        conversation: str = "",
        type: str = "",
        is_new: bool = False,
    ) -> None:
        self.id = id
        self.is_new = is_new  # the id was made for it, and nobody can have sent it before
        self.body = body
        self.at = at
        self.to = to  # names; `all` is everybody
        self.wrong = wrong  # recipients that can be nobody's name, so that it is refused
        self.channel = channel  # whose members get it too
        self.reply_to = reply_to
        self.conversation = conversation
        self.type = type


def send(store: "Store", actor: "Actor", draft: Draft, inbox_limit: int) -> list[str]:
    """Put a message into the inboxes of all its recipients, or of none; their names."""

    def work(tx: "Transaction") -> list[str]:
        agents.check_may_act(tx, actor)
        before = None if draft.is_new else find(tx, draft.id)
        if before is not None:
            return _sent_before(before, actor, draft)
        answered = _answered(tx, draft)
        to = _recipients(tx, actor.name, draft, answered)
        conversation = draft.conversation or (answered and answered["conversation"]) or draft.reply_to
        _check_room(tx, to, inbox_limit)
        pointer = draft.id.encode()
        places = {name: tx.append(f"mail/{name}", pointer) for name in to}
        tx.append(f"sent/{actor.name}", pointer)
        sequence = tx.append(thread_of(conversation), pointer) if conversation else None
        tx.put(MESSAGES, draft.id, _encode(actor.name, draft, conversation, places, sequence))
        if draft.reply_to:
            tx.put(f"answered/{actor.name}", draft.reply_to, pointer)
        return to

    return transact(store, work, expected=_expected(actor, draft))


def _expected(actor: "Actor", draft: Draft) -> "list[tuple[str, str]]":
    """What sending will most likely read, and the collections in which it will get numbers."""
    named = [name for name in draft.to if name != ALL]
    wanted = [(agents.AGENTS, name) for name in (actor.name, *named) if name != HUMAN]
    wanted += [(f"mail/{name}", "") for name in named]
    wanted.append((f"sent/{actor.name}", ""))
    if not draft.is_new:
        wanted.append((MESSAGES, draft.id))
    if draft.reply_to:
        wanted.append((MESSAGES, draft.reply_to))
    if draft.conversation:
        wanted.append((thread_of(draft.conversation), ""))
    return wanted


def unread(store: "Store", name: str, limit: int) -> "dict[str, Any]":
    """The oldest messages that are not acknowledged, how many more there are, and at which revision that was so."""

    def work(tx: "Transaction") -> "dict[str, Any]":
        cursor = cursors.read(tx, name)
        inbox = f"mail/{name}"
        found: list[dict[str, Any]] = []
        after = number_id(cursor.upto) if cursor.upto else ""
        while len(found) < limit and (page := tx.list(inbox, after, limit)):
            ids = [item.value.decode() for item in page if not cursor.has(int(item.id))][: limit - len(found)]
            messages = _shown_within(tx, ids, _MOST_AT_ONCE - sum(len(message["message"]) for message in found))
            found += messages
            if len(messages) < len(ids):
                break
            after = page[-1].id
        return {"messages": found, "remaining": tx.head(inbox).last - cursor.count - len(found)}

    return transact(store, work)


def unread_after(store: "Store", name: str, after: int, limit: int) -> "list[dict[str, Any]]":
    """The oldest messages after a number of the inbox that are not acknowledged, each with its own number."""

    def work(tx: "Transaction") -> "list[dict[str, Any]]":
        cursor = cursors.read(tx, name)
        place = max(after, cursor.upto)
        while page := tx.list(f"mail/{name}", number_id(place), limit):
            new = [item for item in page if not cursor.has(int(item.id))]
            if new:
                messages = _shown_within(tx, [item.value.decode() for item in new], MAX_MESSAGE_BYTES)
                return [
                    {"number": int(item.id), "message": message} for item, message in zip(new, messages, strict=False)
                ]
            place = int(page[-1].id)
        return []

    return transact(store, work)


def hand_over(store: "Store", actor: "Actor", ids: "Sequence[str]", by: str, at: str, number: int = 0) -> None:
    """Note that these were handed over, which is not yet that anybody has seen them.

    `number` is that of the actor's session, if it was handed over to that (see `sessions.py`).
    """

    def work(tx: "Transaction", some: "Sequence[str]") -> None:
        if actor.name != HUMAN:
            agents.check_token(tx, actor)
        cursor = cursors.read(tx, actor.name, check=False)
        for id, place in _places(tx, actor.name, some).items():
            before = handed(tx, actor.name, id)
            if not cursor.has(place) and (before is None or before["number"] < number):
                note_handed(tx, actor.name, id, {"by": by, "at": at, "number": number})

    for start in range(0, len(ids), MOST_WRITES):
        some = ids[start : start + MOST_WRITES]
        transact(store, lambda tx, some=some: work(tx, some))  # type: ignore[misc]


def acknowledge(store: "Store", actor: "Actor", ids: "Sequence[str]", at: str) -> None:
    """Acknowledge exactly these."""

    def work(tx: "Transaction") -> None:
        if actor.name != HUMAN:
            agents.check_token(tx, actor)
        see(tx, actor.name, ids, at)

    transact(store, work)


def see(tx: "Transaction", name: str, ids: "Sequence[str]", at: str) -> None:
    """Note that somebody has seen these."""
    places = _places(tx, name, ids)
    cursor = cursors.read(tx, name)
    if cursor.add(places.values()):
        cursor.at = at
        cursors.write(tx, name, cursor)


def handed(tx: "Transaction", name: str, id: str) -> "dict[str, Any] | None":
    """The newest hand-over of a message to an agent: by what, when, and to which of its sessions; 0: to none."""
    item = tx.get(f"{HANDED}/{name}", id)
    record: Any = jsontext.loads_own(item.value) if item else None
    return {"number": 0, **record} if record else None


def note_handed(tx: "Transaction", name: str, id: str, record: "dict[str, Any]") -> None:
    """The newest hand-over of a message to an agent: by what, and when."""
    tx.put(f"{HANDED}/{name}", id, jsontext.dumps(record).encode())


def sent(store: "Store", name: str, limit: int) -> "list[dict[str, Any]]":
    """What somebody sent, newest first, with the state at each recipient."""

    def work(tx: "Transaction") -> "list[dict[str, Any]]":
        if name != HUMAN and agents.find(tx, name) is None:
            raise errors.NotRegistered(identity=name, near=agents.near(tx, [name]))
        known: dict[str, cursors.Cursor] = {}
        return [
            {**shown(tx, id), "states": _states(tx, id, known)}
            for id in [item.value.decode() for item in tx.list(f"sent/{name}", limit=limit, reverse=True)]
        ]

    return transact(store, work)


def receipt(store: "Store", id: str) -> "dict[str, Any]":
    """How far one message got with each recipient, and what was tried to bring it there."""

    def work(tx: "Transaction") -> "dict[str, Any]":
        record = find(tx, id)
        if record is None:
            raise errors.MessageNotFound(identity="anybody", ids=id)
        states = [
            {
                "identity": state["identity"],
                "state": state["state"],
                "handed_over": _shown_handed(tx, state["identity"], id),
            }
            for state in _states(tx, id, {})
        ]
        return {"message_id": id, "from": record["from"], "timestamp": record["timestamp"], "to": states}

    return transact(store, work)


def thread(store: "Store", id: str, limit: int) -> "list[dict[str, Any]]":
    """The newest messages of a conversation, named by its id or by that of one of its messages; oldest first."""

    def work(tx: "Transaction") -> "list[dict[str, Any]]":
        message = find(tx, id)
        conversation = message["conversation"] or id if message else id
        pointers = tx.list(thread_of(conversation), limit=limit, reverse=True)
        ids = [item.value.decode() for item in reversed(pointers)]
        # A conversation that a reply started bears the id of the message that was answered first.
        if len(ids) < limit and conversation not in ids and find(tx, conversation) is not None:
            ids.insert(0, conversation)
        if not ids:
            raise errors.MessageNotFound(identity="anybody", ids=id)
        return [shown(tx, id) for id in ids]

    return transact(store, work)


def pending(tx: "Transaction", name: str, check: bool = True) -> int:
    """How many messages are not acknowledged."""
    return tx.head(f"mail/{name}", check).last - cursors.read(tx, name, check).count


def last_seen(tx: "Transaction", name: str) -> "str | None":
    """When somebody last acknowledged or sent anything."""
    last_sent = tx.list(f"sent/{name}", limit=1, reverse=True)
    moments = [cursors.read(tx, name).at, *[shown(tx, item.value.decode())["timestamp"] for item in last_sent]]
    return max(moments) or None


def find(tx: "Transaction", id: str, check: bool = True) -> "dict[str, Any] | None":
    """The message as it is stored; one that is there never changes."""
    item = tx.get(MESSAGES, id, check=check)
    return None if item is None else decode(item.value)


def shown(tx: "Transaction", id: str) -> "dict[str, Any]":
    """A message as it is given out."""
    record = find(tx, id, check=False)
    if record is None:
        raise errors.StoreDamaged(path=f"{MESSAGES}/{id}", reason="an inbox names it, and it is not there")
    return {"message_id": id, **{name: record[name] for name in _SHOWN}, "to": list(record["to"])}


def decode(value: bytes) -> "dict[str, Any]":
    """What a message's item holds."""
    line, _, text = value.partition(b"\n")
    record: dict[str, Any] = jsontext.loads_own(line)  # type: ignore[assignment]
    return {**record, "message": text.decode()}


def thread_of(conversation: str) -> str:
    from accord.store import names

    return names.to_collection("thread", conversation)


def _shown_within(tx: "Transaction", ids: "Sequence[str]", room: int) -> "list[dict[str, Any]]":
    """The first of these messages, until they have more characters than there is room for; always one."""
    found: list[dict[str, Any]] = []
    for id in ids:
        found.append(shown(tx, id))
        room -= len(found[-1]["message"])
        if room < 0:
            break
    return found


def _places(tx: "Transaction", name: str, ids: "Sequence[str]") -> dict[str, int]:
    """The number of each of these messages in somebody's inbox."""
    records = {id: find(tx, id, check=False) for id in ids}
    strange = [id for id, record in records.items() if record is None or name not in record["to"]]
    if strange:
        raise errors.MessageNotFound(identity=name, ids=", ".join(strange))
    return {id: record["to"][name] for id, record in records.items() if record}


def _recipients(tx: "Transaction", sender: str, draft: Draft, answered: "dict[str, Any] | None") -> list[str]:
    """Who gets it, each once; an error names everybody who cannot. An answer goes to who asked, if to nobody else."""
    wanted = [name for name in draft.to if name != ALL]
    if answered is not None and not draft.to and not draft.channel:
        wanted = [answered["from"]]
    if ALL in draft.to:
        wanted += [name for name, _ in agents.present(tx) if name != sender]
    if draft.channel:
        from accord.services import channels

        wanted += [name for name in channels.members(tx, draft.channel) if name != sender]
    to = list(dict.fromkeys(wanted))
    if not to:
        raise errors.NoRecipients(where=f"The channel {draft.channel}" if draft.channel else "This home")
    if len(to) > MOST_RECIPIENTS:
        raise errors.TooManyRecipients(most=MOST_RECIPIENTS, found=len(to))
    records = {name: agents.find(tx, name) for name in to if name != HUMAN}
    never = [name for name, record in records.items() if record is None]
    gone = [name for name, record in records.items() if record and record["gone"]]
    if never or gone or draft.wrong:
        raise _refusal(tx, never, gone, draft.wrong)
    return to


def _refusal(
    tx: "Transaction", never: list[str], gone: list[str], wrong: "Sequence[errors.InvalidIdentity]"
) -> errors.AccordError:
    """One error for all recipients that there are not."""
    invalid = [str(error.details["identity"]) for error in wrong]
    found = {"never": never, "gone": gone, "invalid": invalid}
    if not never and not gone:
        return refuse_identities(wrong)
    if not never and not invalid:
        return errors.RecipientGone(names=", ".join(gone), **found)
    names = [
        *never,
        *[f"{name} (registered once, and gone)" for name in gone],
        *[f"{name!r} (which can be nobody's name)" for name in invalid],
    ]
    return errors.RecipientNeverRegistered(names=", ".join(names), near=agents.near(tx, never), **found)


def _answered(tx: "Transaction", draft: Draft) -> "dict[str, Any] | None":
    """The message that this one answers."""
    if not draft.reply_to:
        return None
    answered = find(tx, draft.reply_to)
    if answered is None:
        raise errors.MessageNotFound(identity="an answer", ids=draft.reply_to)
    return answered


def _check_room(tx: "Transaction", to: list[str], inbox_limit: int) -> None:
    """A soft limit: looked at without a check, or every acknowledgement would disturb every sender."""
    # An inbox that never had so many cannot be full, and most are such.
    large = [name for name in to if tx.head(f"mail/{name}", check=False).last >= inbox_limit]
    unread = {name: pending(tx, name, check=False) for name in large}
    full = [name for name in large if unread[name] >= inbox_limit]
    if full:
        raise errors.InboxFull(identity=", ".join(full), found=max(unread.values()), most=inbox_limit)


def _sent_before(record: "dict[str, Any]", actor: "Actor", draft: Draft) -> list[str]:
    asked = (actor.name, draft.body, draft.reply_to or None, draft.type or None, draft.channel or None)
    same = asked == (record["from"], record["message"], record["reply_to"], record["type"], record["channel"])
    if draft.conversation:
        same = same and draft.conversation == record["conversation"]
    if draft.to and ALL not in draft.to:
        # A channel may have had other members then.
        same = same and (set(draft.to) <= set(record["to"]) if draft.channel else set(draft.to) == set(record["to"]))
    if not same:
        raise errors.IdReused(key=draft.id)
    return list(record["to"])


def _encode(
    sender: str, draft: Draft, conversation: str, places: "dict[str, Number]", sequence: "Number | None"
) -> "Template":
    """The message as it is stored, in pieces around the numbers that the commit will give.

    The text is not part of the JSON: escapes could make it too long for a commit.
    """
    record = {
        "from": sender,
        "timestamp": draft.at,
        "conversation": conversation or None,
        "type": draft.type or None,
        "reply_to": draft.reply_to or None,
        "channel": draft.channel or None,
        "verified": "local",
    }
    pieces: list[bytes | Number] = [jsontext.dumps(record)[:-1].encode() + b',"to":{']
    for comma, (name, number) in zip([b"", *[b","] * len(places)], places.items(), strict=False):
        pieces += [comma + f'"{name}":'.encode(), number]
    pieces += [b'},"sequence":', sequence if sequence is not None else b"null", b"}\n", draft.body.encode()]
    return tuple(pieces)


def _shown_handed(tx: "Transaction", name: str, id: str) -> "dict[str, Any] | None":
    last = handed(tx, name, id)
    return {"by": last["by"], "at": last["at"]} if last else None


def _states(tx: "Transaction", id: str, known: "dict[str, cursors.Cursor]") -> "list[dict[str, str]]":
    record = find(tx, id)
    states = []
    for name, number in (record or {"to": {}})["to"].items():
        if name not in known:
            known[name] = cursors.read(tx, name)
        states.append({"identity": name, **_state(tx, id, name, known[name].has(number))})
    return states


def _state(tx: "Transaction", id: str, name: str, is_seen: bool) -> "dict[str, str]":
    """How far a message got with one recipient."""
    if tx.get(f"answered/{name}", id):
        return {"state": ANSWERED}
    if is_seen:
        return {"state": SEEN}
    last = handed(tx, name, id)
    return {"state": HANDED_OVER, "by": last["by"]} if last else {"state": QUEUED}
