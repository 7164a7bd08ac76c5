"""The processes that tests start by the dozen, and kill: they call operations, and say at once what came of each.

They import no more than the command line does, since starting them is most of what they cost.
"""

import os
import sys
import time

from accord.errors import AccordError
from accord.operations import call
from accord.operations.context import local
from accord.services import locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from accord.operations.context import Context


def say(*words: str) -> None:
    os.write(1, " ".join(words).encode() + b"\n")


def send(sender: str, to: str, first: str, last: str) -> None:
    """Send numbered messages, each under an id of its own; whoever comes after may send the last one again."""
    context = local(os.environ)
    for n in range(int(first), int(last) + 1):
        params = {"sender": sender, "to": [to], "message": f"{sender} {n}", "id": f"{sender}-{n}"}
        call(context, "mail.send", params)
        say("sent", str(n))


def read(name: str) -> None:
    """Read and acknowledge for ever."""
    context = local(os.environ)
    say("ready")
    while True:
        found = call(context, "mail.check", {"identity": name, "limit": 3, "wait": 60})
        ids = [message["message_id"] for message in found["messages"]]
        say("got", *ids)
        call(context, "mail.ack", {"identity": name, "ids": ids})
        say("acknowledged", *ids)


def crowd(rounds: str, processes: str, *flags: str) -> None:
    """In each round, fork processes that register one name all at once, and say what each was told."""
    for round in range(int(rounds)):
        here, start = os.pipe()
        for _ in range(int(processes)):
            if os.fork() == 0:
                os.close(start)
                context = local(os.environ)
                os.read(here, 1)  # returns when all are there
                try:
                    call(context, "agent.register", {"identity": f"n{round}", **dict.fromkeys(flags, True)})
                    say(f"n{round}", "ok")
                except AccordError as error:
                    say(f"n{round}", error.code)
                os._exit(0)
        os.close(start)
        for _ in range(int(processes)):
            os.wait()
        os.close(here)


def lock(owner: str, name: str, ttl: str, ticket_s: str) -> None:
    """Acquire, write in the lock's name and release, for ever. Says what was asked and what came of it, and when."""
    locks.TICKET_S = float(ticket_s)
    context = local(os.environ)
    for n in range(1_000_000):
        token = asked(context, "lock.acquire", name=name, owner=owner, ttl=float(ttl), wait=60)
        for text in (f"{owner} {n} a", f"{owner} {n} b"):
            asked(context, "doc.write", token, name="log", text=text, fence=f"{name}:{token}")
        asked(context, "lock.release", token, name=name, owner=owner, token=token)


def asked(context: "Context", operation: str, number: int = 0, **params: "Any") -> int:
    """Do it, and say what, with which number, from when to when and how it went."""
    said = params.get("text", "-").replace(" ", "_")
    say("asks", operation, str(number), said)
    began, code = time.monotonic(), "OK"
    try:
        number = call(context, operation, params).get("token", number)
    except AccordError as error:
        code = error.code
    say("did", operation, str(number), said, repr(began), repr(time.monotonic()), code)
    return number


def late(name: str, ttl: str) -> None:
    """Acquire a lock, and when told to write in its name, do so, however late."""
    context = local(os.environ)
    token = call(context, "lock.acquire", {"name": name, "owner": "late", "ttl": float(ttl)})["token"]
    say("has", str(token))
    os.read(0, 1)
    asked(context, "doc.write", token, name="log", text="late", fence=f"{name}:{token}")


WORK: "dict[str, Callable[..., None]]" = {"send": send, "read": read, "crowd": crowd, "lock": lock, "late": late}

if __name__ == "__main__":
    WORK[sys.argv[1]](*sys.argv[2:])
