"""Sending real mail, through `accord.open()`."""

from collections.abc import Callable

import accord

SENDER, RECIPIENT = "alice", "bob"
_BODY = "x" * 300


def create(home: str) -> None:
    """A home with a sender and a recipient."""
    with accord.open(home) as opened:
        for name in (SENDER, RECIPIENT):
            opened.agent.register(identity=name)


def open_sender(home: str) -> Callable[[int], None]:
    """What sends a message, durably."""
    opened = accord.open(home)

    def send(n: int) -> None:
        opened.mail.send(sender=SENDER, to=RECIPIENT, message=_BODY)

    opened.mail.sent(sender=SENDER, limit=1)
    return send


def count(home: str) -> int:
    with accord.open(home) as opened:
        found = {who["identity"]: who["pending"] for who in opened.agent.discover()["identities"]}
    return int(found[RECIPIENT])
