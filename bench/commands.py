"""Commands as processes, durable and with nothing else running, against `python -c pass` of the same environment.

`check` with many messages waiting is timed inside a process, and its memory is that of the whole command.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import accord
from accord import jsontext
from accord.model import timestamp
from accord.store.contract import Item, number_id
from accord.store.open import open_store
from bench import mail_api, place, progress
from bench.processes import ENVIRONMENT
from bench.rounds import interleave, ratios
from bench.row import MEBIBYTES, MILLISECONDS, SECONDS, TIMES_AS_LONG, Row
from bench.sizes import Sizes

if TYPE_CHECKING:
    from accord.store.contract import Content

ACCORD = str(Path(sys.executable).parent / "accord")
WORDS = ("apple", "bread", "cheese", "date", "endive", "fig", "grape", "honey", "ice", "jam")
READS = 50


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    with place.folder() as folder:
        home = f"{folder}/home"
        mail_api.create(home)
        rows = _commands(rounds, home)
        rows += _checks(rounds, {count: _filled(f"{folder}/{count}", count) for count in (10, sizes.waiting)})
        rows += _search(_filled(f"{folder}/search", sizes.searched))
    return rows


def _commands(rounds: int, home: str) -> list[Row]:
    send = [ACCORD, "send", "--from", "alice", "--to", "bob", "--message", "x" * 300]
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        "accord send": send,
        "accord check, one message": [ACCORD, "check", "bob", "--limit", "1"],
        "accord check, nothing new": [ACCORD, "check", "alice"],
    }
    environment = {**ENVIRONMENT, "ACCORD_HOME": home}
    for command in commands.values():
        _run_ms(command, environment)  # the first one reads the disk
    found = interleave(rounds, {name: partial(_run_ms, command, environment) for name, command in commands.items()})
    floor = found.pop("pass")
    return [
        Row(f"{name} ({median(times):.1f} ms)", TIMES_AS_LONG, ratios(times, floor), 1.8)
        for name, times in found.items()
    ]


def _checks(rounds: int, homes: dict[int, str]) -> list[Row]:
    few, many = homes
    runs = {str(count): partial(_check_ms, home) for count, home in homes.items()}
    times = interleave(rounds, runs)
    sizes = interleave(3, {str(count): partial(_peak_mib, home) for count, home in homes.items()})
    most = median(sizes[str(few)]) + 1
    return [
        Row(
            f"check of 10 with {many:,} waiting, in process ({median(times[str(many)]):.2f} ms)",
            TIMES_AS_LONG,
            ratios(times[str(many)], times[str(few)]),
            1.5,
        ),
        Row(f"memory of `accord check --limit 10` with {few} waiting", MEBIBYTES, sizes[str(few)]),
        Row(f"memory of `accord check --limit 10` with {many:,} waiting", MEBIBYTES, sizes[str(many)], round(most, 1)),
    ]


def _search(home: str) -> list[Row]:
    with accord.open(home) as opened:
        progress.show("search: making the index")
        first = _time_s(lambda: opened.mail.search(query="apple"))
        times = [_time_s(partial(opened.mail.search, query=query)) * 1000 for query in ("apple 777", "fig jam", "ho")]
    return [Row("the first search, which makes the index", SECONDS, [first]), Row("search", MILLISECONDS, times, 50)]


def _filled(home: str, count: int) -> str:
    """A home in which bob has so many messages waiting."""
    progress.show(f"making {count:,} messages")
    os.makedirs(home, mode=0o700)
    store = open_store(f"sqlite:{home}/store.db")
    store.load(_contents(count))
    store.close()
    with accord.open(home) as opened:
        opened.agent.register(identity="bob")
    return home


def _contents(count: int) -> "Iterator[Content]":
    at = timestamp(time.time())
    yield "mail/bob", count, (Item(number_id(n), b"m%012d" % n, 0) for n in range(1, count + 1))
    yield "messages", 0, (Item(f"m{n:012d}", _message(n, at), 0) for n in range(1, count + 1))


def _message(n: int, at: str) -> bytes:
    record = {
        "from": "alice",
        "timestamp": at,
        "conversation": None,
        "type": None,
        "reply_to": None,
        "channel": None,
        "verified": "local",
        "to": {"bob": n},
        "sequence": None,
    }
    return f"{jsontext.dumps(record)}\n{WORDS[n % 10]} {WORDS[n // 10 % 10]} {n}".encode()


def _run_ms(command: list[str], environment: dict[str, str]) -> float:
    return _time_s(partial(subprocess.run, command, check=True, env=environment, stdout=subprocess.DEVNULL)) * 1000


def _check_ms(home: str) -> float:
    with accord.open(home) as opened:
        opened.mail.check(identity="bob", limit=10)
        return _time_s(lambda: [opened.mail.check(identity="bob", limit=10) for _ in range(READS)]) / READS * 1000


def _peak_mib(home: str) -> float:
    """The most memory that the command had."""
    program = (
        "import os, resource, sys\n"
        "pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])\n"
        "print(os.wait4(pid, 0)[2].ru_maxrss)"
    )
    command = [ACCORD, "check", "bob", "--limit", "10", "--peek", "--json"]
    environment = {**ENVIRONMENT, "ACCORD_HOME": home}
    done = subprocess.run([sys.executable, "-c", program, *command], env=environment, capture_output=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


def _time_s(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
