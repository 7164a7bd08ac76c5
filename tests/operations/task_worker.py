"""Processes that work on one task board, and say at once what came of each step."""

import os
import sys

from accord.errors import AccordError
from accord.operations import call
from accord.operations.context import local
from tests.operations.worker import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def work(agent: str) -> None:
    """Take and do tasks until there are no more."""
    context = local(os.environ)
    say("ready")
    os.read(0, 1)
    try:
        while True:
            id = call(context, "task.next", {"agent": agent})["id"]
            say("took", id)
            call(context, "task.done", {"id": id, "agent": agent})
            say("did", id)
    except AccordError as error:
        say(error.code)


def hold(agent: str, ttl_s: str) -> None:
    """Take a task, and never come back to it."""
    context = local(os.environ)
    say("took", call(context, "task.next", {"agent": agent, "ttl": ttl_s})["id"])
    os.read(0, 1)


def claim(rounds: str, processes: str) -> None:
    """In each round, processes that claim one task."""
    at_once(int(rounds), int(processes), lambda n, who: ("task.claim", {"id": f"n{n}", "agent": f"p{who}"}))


def halves(rounds: str) -> None:
    """In each round, two processes that make one half of a cycle each."""
    at_once(int(rounds), 2, lambda n, who: ("task.depend", {"id": f"{'ab'[who]}{n}", "after": [f"{'ba'[who]}{n}"]}))


def at_once(rounds: int, processes: int, what: "Callable[[int, int], tuple[str, dict[str, object]]]") -> None:
    """In each round, fork processes that do something at the same instant, and say what each was told."""
    for n in range(rounds):
        here, start = os.pipe()
        for who in range(processes):
            if os.fork() == 0:
                os.close(start)
                context = local(os.environ)
                os.read(here, 1)  # returns when all are there
                try:
                    call(context, *what(n, who))
                    say(str(n), "ok")
                except AccordError as error:
                    say(str(n), error.code)
                os._exit(0)
        os.close(start)
        for _ in range(processes):
            os.wait()
        os.close(here)


WORK: "dict[str, Callable[..., None]]" = {"work": work, "hold": hold, "claim": claim, "halves": halves}

if __name__ == "__main__":
    WORK[sys.argv[1]](*sys.argv[2:])
