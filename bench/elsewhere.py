"""Sends to a store on a server on this machine, whose data lie on the disk: Redis that flushes always, and etcd.

What they are compared with goes to the same server, by turns or in the same rounds, by the same client: Redis adds 300
bytes to a stream, which is what a queue of one's own would be; etcd puts 300 bytes. Firebase's is a server of the
tests, in memory and in Python, and no figure of it says anything about Google's. Through the hub a command pays for its
own start, as on any engine; what more it takes is the hub's send.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

from accord.store.contract import MAX_PAGE
from accord.store.open import open_store
from bench import bare, hub, hub_mail, mail_send, place, sender, servers
from bench.bare import APPEND, INBOX, PUT, XADD
from bench.processes import ENVIRONMENT, run_together
from bench.rounds import interleave, ratios
from bench.row import COUNT, MILLISECONDS, RATE, ROUND_TRIPS, TIMES_AS_FAST, TIMES_AS_LONG, Row
from bench.sender import Sent
from bench.sizes import Sizes
from tests.servers.firebase import FirebaseServer

SEND = "a send"
CLIENTS = 8
COUNTED = 20  # sends

_NO_LIMIT = 1 << 60
_places = count()


@dataclass(frozen=True)
class Server:
    name: str
    url: Callable[[str], str]  # of the place of that name
    trips: Callable[[Callable[[], object]], int]  # how many there were while that was done
    bare: str  # a write without accord
    most: float  # times of that, that a send takes
    least: float | None  # of the rate of many who do that, when many append


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    if servers.has_redis():
        with servers.redis_on_disk() as redis:
            rows += _rows(Server("redis", redis.url, partial(servers.commands_of, redis), XADD, 5, None), rounds, sizes)
    if servers.has_etcd():
        with servers.etcd_on_disk() as etcd:
            rows += _rows(Server("etcd", etcd.url, partial(servers.calls_of, etcd), PUT, 3, 0.1), rounds, sizes)
    with FirebaseServer() as firebase:
        runs = [_run(SEND, firebase.url, 1, sizes.race_sends) for _ in range(rounds)]
        rows.append(Row("firebase: sends of one process", RATE, [run.rate for run in runs]))
    return [*rows, *_commands(rounds * 5, sizes)]


@dataclass(frozen=True)
class Run:
    sent: list[Sent]
    wrong: int  # what was lost or is out of order

    @property
    def rate(self) -> float:
        return sender.rate(self.sent)


def _run(way: str, url_of: Callable[[str], str], processes: int, calls: int, seconds: float = 3600.0) -> Run:
    """In a place of its own."""
    url = url_of(f"bench{next(_places)}")
    if way == SEND:
        mail_send.create(url)
    commands = [["bench.sender", way, url, str(calls), str(seconds), f"p{n}"] for n in range(processes)]
    sent = [Sent(*reply) for reply in run_together(commands, {})]
    messages = sum(one.messages for one in sent)
    if way == SEND:
        return Run(sent, abs(messages - mail_send.count(url)))
    return Run(sent, _faults(url, [one.messages for one in sent]) if way == APPEND else 0)


def _faults(url: str, appended: list[int]) -> int:
    """How many are missing in the inbox, or stand where they should not: each process's own are in order, from 0 on."""
    found: dict[str, list[int]] = {f"p{n}": [] for n in range(len(appended))}
    ids: list[int] = []
    store = open_store(url)
    with store.snapshot() as snapshot:
        after = ""
        while page := snapshot.list(INBOX, after, MAX_PAGE):
            after = page[-1].id
            for item in page:
                process, _, number = item.value.decode().partition(" ")
                found[process].append(int(number))
                ids.append(int(item.id))
    store.close()
    wrong = sum(numbers != list(range(most)) for numbers, most in zip(found.values(), appended, strict=True))
    return wrong + (ids != list(range(1, sum(appended) + 1)))


def _rows(server: Server, rounds: int, sizes: Sizes) -> list[Row]:
    plain = server.bare
    turns = [_in_turns(server, sizes.race_sends * 3) for _ in range(rounds)]
    ways = (SEND, APPEND, plain)
    seconds = sizes.crowd_s / 2
    crowds = interleave(rounds, {way: partial(_run, way, server.url, CLIENTS, _NO_LIMIT, seconds) for way in ways})
    rates = {way: [run.rate for run in runs] for way, runs in crowds.items()}
    faults = [run.wrong for runs in crowds.values() for run in runs]
    sent, written = zip(*turns, strict=True)
    note = f"{median(sent):.2f} ms against {median(written):.2f} ms"
    return [
        Row(f"{server.name}: a send", ROUND_TRIPS, [_trips_of_a_send(server)], 2),
        Row(
            f"{server.name}: a send, against {plain}",
            TIMES_AS_LONG,
            ratios(sent, written),
            server.most,
            note=note,
        ),
        *[
            Row(
                f"{server.name}: {CLIENTS} processes, {way} to one inbox, against {plain}",
                TIMES_AS_FAST,
                ratios(rates[way], rates[plain]),
                target,
                note=f"{median(rates[way]):,.0f}/s against {median(rates[plain]):,.0f}/s",
            )
            for way, target in ((APPEND, server.least), (SEND, None))
        ],
        Row(f"{server.name}: messages lost or out of order", COUNT, faults, 0, always=True),
    ]


def _in_turns(server: Server, calls: int) -> tuple[float, float]:
    """The milliseconds of a send and of a bare write, which one process makes by turns: medians."""
    url = server.url(f"bench{next(_places)}")
    both = [mail_send.open_sender(url, "p0"), bare.WAYS[server.bare](url, "p0")]
    times: list[list[float]] = [[], []]
    for n in range(calls):
        for act, took in zip(both, times, strict=True):
            start = time.perf_counter()
            act(n)
            took.append((time.perf_counter() - start) * 1000)
    sends, writes = times
    return median(sends), median(writes)


def _trips_of_a_send(server: Server) -> float:
    send = mail_send.open_sender(server.url("counted"), "p0")
    send(0)  # which learns what stays known

    def some() -> None:
        for n in range(1, COUNTED + 1):
            send(n)

    return server.trips(some) / COUNTED


def _commands(rounds: int, sizes: Sizes) -> list[Row]:
    """`accord send` through a hub, on each engine."""
    with ExitStack() as stack:
        urls = {"sqlite": ""}
        if servers.has_redis():
            urls["redis"] = stack.enter_context(servers.redis_on_disk()).url("hub")
        if servers.has_etcd():
            urls["etcd"] = stack.enter_context(servers.etcd_on_disk()).url("hub")
        homes = {name: _home(stack, url) for name, url in urls.items()}
        send = [hub.ACCORD, "send", "--from", "alice", "--to", "bob", "--message", "x" * 300]
        runs = {name: partial(hub.run_ms, send, {**ENVIRONMENT, "ACCORD_HOME": home}) for name, home in homes.items()}
        runs["pass"] = partial(hub.run_ms, [hub.PYTHON, "-c", "pass"], ENVIRONMENT)
        interleave(2, runs)  # the first ones read the disk
        found = interleave(rounds, runs)
        sends = interleave(3, {name: partial(_hubs_ms, home, sizes.reads) for name, home in homes.items()})
    floor = found.pop("pass")
    rows = []
    for name, times in found.items():
        what = f"accord send through the hub on {name} ({median(times):.1f} ms), against `python -c pass`"
        rows.append(Row(what, TIMES_AS_LONG, ratios(times, floor)))
    for name in ("redis", "etcd"):
        more = [mine - others for mine, others in zip(found.get(name, []), found["sqlite"], strict=name in found)]
        own = median(sends[name]) - median(sends["sqlite"]) if name in sends else 0.0
        note = f"of which the hub's own send takes {own:.1f} ms" if name in sends else "not on this machine"
        rows.append(Row(f"what it takes more on {name} than on sqlite", MILLISECONDS, more, note=note))
    return rows


def _home(stack: ExitStack, url: str) -> str:
    """A home with a hub, whose store is there."""
    home = f"{stack.enter_context(place.folder())}/home"
    Path(home).mkdir(mode=0o700)
    if url:
        Path(home, "accord.yml").write_text(f"engine: {url}\n")
    hub_mail.start(home, {})
    stack.callback(hub_mail.stop, home)
    return home


def _hubs_ms(home: str, calls: int) -> float:
    """Of one send that the hub makes, for one connection."""
    send = hub_mail.open_sender(home)
    send(0)
    start = time.perf_counter()
    for n in range(calls):
        send(n)
    return (time.perf_counter() - start) / calls * 1000
