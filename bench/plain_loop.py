"""The baseline: each message is one durable transaction of SQLite, as one would write it without accord."""

from collections.abc import Callable

import apsw

BODY = b"x" * 300


def create(path: str) -> None:
    connection = _connect(path)
    connection.execute("create table messages(number integer primary key, body blob)")
    connection.close()


def open_sender(path: str) -> Callable[[int], None]:
    """What sends the n-th message, durably."""
    connection = _connect(path)
    execute = connection.cursor().execute
    execute("select number from messages limit 1").fetchall()

    def send(n: int) -> None:
        execute("begin immediate")
        execute("insert into messages(body) values (?)", (BODY,))
        execute("commit")

    return send


def count(path: str) -> int:
    found = _connect(path).execute("select count(*) from messages").fetchone()
    assert found is not None
    return int(found[0])


def _connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path)
    connection.set_busy_timeout(60_000)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection
