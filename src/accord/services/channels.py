"""Channels: who joined, and so gets what is sent there."""

from accord import errors, jsontext
from accord.model import HUMAN
from accord.services import agents
from accord.store.contract import MAX_PAGE
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from accord.services.agents import Actor
    from accord.store.protocols import Store
    from accord.store.transaction import Transaction

CHANNELS = "channels"
MEMBERS = "channel"


def join(store: "Store", actor: "Actor", channel: str, at: str) -> None:
    """Joining twice is joining once."""

    def work(tx: "Transaction") -> None:
        agents.check_may_act(tx, actor)
        if tx.get(_members_of(channel), actor.name) is None:
            record = jsontext.dumps({"joined_at": at}).encode()
            tx.put(_members_of(channel), actor.name, record)
            if tx.get(CHANNELS, channel) is None:
                tx.put(CHANNELS, channel, record)

    transact(store, work)


def leave(store: "Store", actor: "Actor", channel: str) -> None:
    """Leaving what one is not in changes nothing."""

    def work(tx: "Transaction") -> None:
        agents.check_may_act(tx, actor)
        _check_there(tx, channel)
        if tx.get(_members_of(channel), actor.name) is not None:
            tx.delete(_members_of(channel), actor.name)

    transact(store, work)


def all_of(store: "Store") -> "list[dict[str, Any]]":
    """Every channel and its members."""

    def work(tx: "Transaction") -> "list[dict[str, Any]]":
        return [{"channel": channel, "members": members(tx, channel)} for channel in _ids(tx, CHANNELS)]

    return transact(store, work)


def members(tx: "Transaction", channel: str) -> list[str]:
    """Those who joined and are still registered."""
    _check_there(tx, channel)
    there = {name for name, _ in agents.present(tx)} | {HUMAN}
    return [name for name in _ids(tx, _members_of(channel)) if name in there]


def _check_there(tx: "Transaction", channel: str) -> None:
    if tx.get(CHANNELS, channel) is None:
        from difflib import get_close_matches

        found = get_close_matches(channel, list(_ids(tx, CHANNELS)))
        near = f" (did you mean {' or '.join(found)}?)" if found else ""
        raise errors.ChannelNotFound(channel=channel, near=near)


def _members_of(channel: str) -> str:
    return f"{MEMBERS}/{channel}"


def _ids(tx: "Transaction", collection: str) -> "Iterator[str]":
    after = ""
    while page := tx.list(collection, after, MAX_PAGE):
        yield from [item.id for item in page]
        after = page[-1].id
