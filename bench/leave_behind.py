"""A process that sends until the WAL, or the journal, is as full as it gets, and is gone without closing."""

import os
import sys

from accord.store.engines.sqlite.link import CHECKPOINT_PAGES
from accord.store.engines.sqlite.making import PAGE_BYTES
from accord.store.open import open_store
from bench import mail_send

_WAL_HEAD_BYTES = 32
_FRAME_HEAD_BYTES = 24


def fill_wal(path: str) -> int:
    """Send until one more send may copy the WAL into the database; the pages in it."""
    send = mail_send.open_sender(f"sqlite:{path}", "p0")
    pages, largest, sent = wal_pages(path), 0, 0
    while pages + largest < CHECKPOINT_PAGES:
        send(sent)
        sent += 1
        largest = max(largest, wal_pages(path) - pages)
        pages = wal_pages(path)
    return pages


def fill_journal(path: str, commits: int) -> int:
    """Send until the store has that many commits, all of them in its journal."""
    send = mail_send.open_sender(f"files:{path}", "p0")
    with open_store(f"files:{path}").snapshot() as snapshot:
        missing = commits - snapshot.revision
    for number in range(missing):
        send(number)
    return commits


def wal_pages(path: str) -> int:
    return (os.path.getsize(f"{path}-wal") - _WAL_HEAD_BYTES) // (PAGE_BYTES + _FRAME_HEAD_BYTES)


def main() -> None:
    engine, _, path = sys.argv[1].partition(":")
    filled = fill_wal(path) if engine == "sqlite" else fill_journal(path, int(sys.argv[2]))
    print(filled, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
