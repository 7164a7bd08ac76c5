"""Processes that push to a queue and work through it, and say at once what came of each step."""

import os
import sys

from accord.operations import call
from accord.operations.context import local
from tests.operations.worker import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

QUEUE = "jobs"


def push(name: str, count: str) -> None:
    context = local(os.environ)
    for n in range(int(count)):
        pushed = call(context, "queue.push", {"queue": QUEUE, "payload": f"{name}-{n}"})
        say("pushed", str(pushed["sequence"]), f"{name}-{n}")


def race(name: str, count: str) -> None:
    """Push an entry, take one and say that it is done, again and again."""
    context = local(os.environ)
    for n in range(int(count)):
        pushed = call(context, "queue.push", {"queue": QUEUE, "payload": f"{name}-{n}"})
        say("pushed", str(pushed["sequence"]), f"{name}-{n}")
        taken = call(context, "queue.pop", {"queue": QUEUE, "wait": 60})
        call(context, "queue.done", {"queue": QUEUE, "receipt": taken["receipt"]})
        say("done", str(taken["sequence"]), taken["payload"])


def take(visibility: str) -> None:
    """Work for ever."""
    context = local(os.environ)
    say("ready")
    while True:
        taken = call(context, "queue.pop", {"queue": QUEUE, "wait": 60, "visibility": float(visibility)})
        say("taken", str(taken["sequence"]), taken["payload"], taken["receipt"])
        call(context, "queue.done", {"queue": QUEUE, "receipt": taken["receipt"]})
        say("done", str(taken["sequence"]), taken["payload"])


def hold(visibility: str) -> None:
    """Take an entry and get stuck with it."""
    taken = call(local(os.environ), "queue.pop", {"queue": QUEUE, "visibility": float(visibility)})
    say("taken", str(taken["sequence"]), taken["payload"], taken["receipt"])
    sys.stdin.read()


WORK: "dict[str, Callable[..., None]]" = {"push": push, "race": race, "take": take, "hold": hold}

if __name__ == "__main__":
    WORK[sys.argv[1]](*sys.argv[2:])
