"""Every wait ends, and a page costs the same however much lies behind it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import accord
from accord.store.contract import Item, number_id
from accord.store.engines.sqlite import Sqlite
from accord.store.engines.sqlite.link import Link
from tests.operations.ways import Python, Refused

MESSAGE = (
    b'{"from":"ann","timestamp":"2026-01-01T00:00:00.000Z","conversation":null,"type":null,"reply_to":null,'
    b'"channel":null,"verified":"local","to":{"ben":%d},"sequence":null}\nhello'
)


@pytest.mark.covers("T3.12")
def test_a_command_waits_for_a_lock_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_LOCK_TIMEOUT_S", "1")
    way = Python(f"sqlite:{tmp_path}/store.db")
    way.do("agent.register", identity="ann")
    started = time.monotonic()
    with Sqlite(f"{tmp_path}/store.db").exclusive(), pytest.raises(Refused) as refused:
        way.do("mail.send", sender="ann", to="ann", message="hello")
    assert refused.value.code == "LOCK_TIMEOUT"
    assert 0 < refused.value.details["timeout_seconds"] <= 1
    assert 0.9 < time.monotonic() - started < 10


def counted(read: Callable[..., Any], statements: list[str]) -> Callable[..., Any]:
    def count(link: Link, sql: str, *values: Any) -> Any:
        statements.append(sql)
        return read(link, sql, *values)

    return count


@pytest.mark.covers("T3.13")
def test_a_page_costs_the_same_with_few_and_many_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    for name in ("row", "rows"):
        monkeypatch.setattr(Link, name, counted(getattr(Link, name), statements))
    costs = []
    for count in (10, 5_000):
        path = tmp_path / str(count)
        path.mkdir(mode=0o700)
        store = Sqlite(f"{path}/store.db")
        store.load([
            ("mail/ben", count, [Item(number_id(n), b"m%06d" % n, 0) for n in range(1, count + 1)]),
            ("messages", 0, [Item(f"m{n:06d}", MESSAGE % n, 0) for n in range(1, count + 1)]),
        ])  # fmt: skip
        store.close()
        with accord.open(str(path)) as home:
            home.agent.register(identity="ben")
            home.mail.check(identity="ben", limit=10)
            statements.clear()
            found = home.mail.check(identity="ben", limit=10)
        assert (found["message_count"], found["remaining"]) == (10, count - 10)
        costs.append(sorted(statements))
    assert costs[0] == costs[1]
