"""A queue that several processes push to and pop from, through `accord.open()`."""

from collections.abc import Callable

import accord

QUEUE = "work"
PER_CALL = 2  # operations
PER_WHOLE_CALL = 3

_PAYLOAD = "x" * 300


def create(home: str) -> None:
    with accord.open(home) as opened:
        opened.queue.list()


def open_worker(home: str, whole: bool) -> Callable[[int], None]:
    """What pushes an entry and takes one, each durably; and, for the whole life of an entry, says that it is done."""
    queue = accord.open(home).queue
    queue.list()

    def work(n: int) -> None:
        queue.push(queue=QUEUE, payload=_PAYLOAD)
        taken = queue.pop(queue=QUEUE, visibility=3600)
        if whole:
            queue.done(queue=QUEUE, receipt=taken["receipt"])

    return work


def count(home: str, whole: bool) -> int:
    """The operations that can be seen to have been made."""
    with accord.open(home) as opened:
        [found] = opened.queue.list()["queues"]
        pushed = opened.queue.push(queue=QUEUE, payload="the last")["sequence"] - 1
    return int(3 * (pushed - found["length"]) if whole else pushed + found["in_flight"])
