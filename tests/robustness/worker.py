"""The process that the tests kill, stop, starve and record: it opens a store and makes changes.

It says each acknowledgement at once, in one line of standard output; nothing else tells a test what a killed
process had been promised. It imports what it must and no more, since it is started hundreds of times.
"""

import os
import sys

from accord import errors
from accord.store.open import open_store
from accord.store.transaction import Transaction, transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.store.protocols import Exclusive

NOBODY = 65534  # a user and a group who own nothing

RESTART_EVERY = 8  # commits, in a worker, until the files engine tidies up


def change(n: int) -> "Callable[[Transaction], None]":
    """The n-th change: appends, puts and a delete in three collections. Seven values are longer than a page."""

    def work(tx: "Transaction") -> None:
        number = tx.append("mail/ada", b"%d" % n)
        tx.put("place/ada", f"m{n % 10}", (b"change %d is letter " % n, number))
        tx.put("doc/notes", "today", b"change %d\n" % n * 250)
        tx.put("doc/notes", f"kept{n % 3}", b"%d\n" % n)
        tx.delete("doc/notes", f"kept{(n + 1) % 3}")
        tx.append("mail/ada", b"%d" % -n)

    return work


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def make_changes(url: str, first: int, last: int) -> None:
    """Open the store and make the changes `first` to `last`, each once, whatever becomes of it."""
    try:
        store = open_store(url)
        say("opened")
    except errors.AccordError as error:
        say(f"failed 0 {error.code} {error}")
        return
    for n in range(first, last + 1):
        try:
            transact(store, change(n))
            say(f"acknowledged {n}")
        except errors.AccordError as error:
            say(f"failed {n} {error.code} {error}")


def make_changes_together(url: str, first: int, last: int) -> None:
    """The same changes, held together by one lock and made durable by one flush."""
    store: Exclusive = open_store(url)  # type: ignore[assignment]  # all engines on a disk can be locked
    with store.exclusive() as batch:
        for n in range(first, last + 1):
            with batch.snapshot() as snapshot:
                tx = Transaction(batch, snapshot)
                change(n)(tx)
                tx.commit(0)
    for n in range(first, last + 1):
        say(f"acknowledged {n}")


def crowd(url: str, processes: int, changes: int) -> None:
    """Fork processes that open the store all at once and make changes of their own."""
    here, start = os.pipe()
    for number in range(processes):
        if os.fork() == 0:
            os.close(start)
            os.read(here, 1)  # returns when all are there
            make_changes(url, number * changes + 1, (number + 1) * changes)
            os._exit(0)
    os.close(start)
    for _ in range(processes):
        _, status = os.wait()
        if status:
            say(f"ended with status {status}")


def hold(url: str) -> None:
    """Hold the store for oneself until standard input ends, and then make change 1."""
    store: Exclusive = open_store(url)  # type: ignore[assignment]  # all engines on a disk can be locked
    with store.exclusive() as batch, batch.snapshot() as snapshot:
        tx = Transaction(batch, snapshot)
        change(1)(tx)
        say("inside")
        os.read(0, 1)
        tx.commit(0)
    say("acknowledged 1")


def be_nobody() -> None:
    """Give up root's rights for those of a user who owns nothing."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def main() -> None:
    url, first, last, *together = sys.argv[1:]
    if url.startswith("files:"):
        from accord.store.engines.files import writer

        writer.RESTART_EVERY = RESTART_EVERY
    make = make_changes_together if together else make_changes
    make(url, int(first), int(last))
