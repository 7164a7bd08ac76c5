"""Through a hub: durable sends over its socket and as commands, push, and many who only listen.

The plain loop is the same as above: eight processes against eight, and one process against a hundred messages in
flight on one connection. CPU is that of the hub's process, flushes of the kernel included.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from accord.client import Connection
from bench import hub_mail, mail_api, place, preload, sender
from bench.processes import ENVIRONMENT
from bench.rounds import interleave, ratios
from bench.row import COUNT, MEBIBYTES, MICROSECONDS, MILLISECONDS, PERCENT, SHARE, TIMES_AS_FAST, TIMES_AS_LONG, Row
from bench.sender import HUB, HUB_FLIGHT, PLAIN, Run
from bench.sizes import Sizes

PYTHON = sys.executable
ACCORD = str(Path(PYTHON).parent / "accord")
CLIENTS = 8


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    flushes = ("", preload.SLOW) if preload.can_build() else ("",)
    rows = _commands(rounds * 5)
    for flush in flushes:
        rows += _one_at_a_time(rounds, sizes, flush)
        rows += _in_flight(rounds, sizes, flush)
    return [*rows, *_push(sizes), *_idle(sizes)]


def _commands(rounds: int) -> list[Row]:
    with place.folder() as folder:
        home = f"{folder}/home"
        hub_mail.start(home, {})
        try:
            commands = {
                "pass": [sys.executable, "-c", "pass"],
                "accord send": [ACCORD, "send", "--from", "alice", "--to", "bob", "--message", "x" * 300],
                "accord check, one message": [ACCORD, "check", "bob", "--limit", "1"],
            }
            environment = {**ENVIRONMENT, "ACCORD_HOME": home}
            runs = {name: partial(run_ms, command, environment) for name, command in commands.items()}
            interleave(2, runs)  # the first ones read the disk
            found = interleave(rounds, runs)
        finally:
            hub_mail.stop(home)
    floor = found.pop("pass")
    return [
        Row(f"{name} ({median(times):.1f} ms), against `python -c pass`", TIMES_AS_LONG, ratios(times, floor), 1.25)
        for name, times in found.items()
    ]


def _one_at_a_time(rounds: int, sizes: Sizes, flush: str) -> list[Row]:
    runs = {way: partial(sender.run, way, CLIENTS, sizes.race_sends * 5, flush=flush) for way in (HUB, PLAIN)}
    found = interleave(rounds, runs)
    label = " (slow flushes)" if flush else ""
    rows = [_ratio(f"eight processes, one message at a time{label}", found[HUB], found[PLAIN], 2.5 if flush else 0.6)]
    if not flush:
        evenness = [min(one.took_s for one in run.sent) / max(one.took_s for one in run.sent) for run in found[HUB]]
        rows += [
            Row("CPU of the hub for one message of eight processes", MICROSECONDS, _cpu_us(found[HUB]), 200),
            Row("the slowest process against the fastest", SHARE, evenness, 0.8),
            Row("messages of eight processes lost", COUNT, [run.lost for run in found[HUB]], 0, always=True),
        ]
    return rows


def _in_flight(rounds: int, sizes: Sizes, flush: str) -> list[Row]:
    calls = {HUB_FLIGHT: max(1, sizes.sends // 400), PLAIN: sizes.sends}
    found = interleave(rounds, {way: partial(sender.run, way, 1, calls[way], flush=flush) for way in calls})
    label = " (slow flushes)" if flush else ""
    rows = [_ratio(f"a hundred in flight{label}", found[HUB_FLIGHT], found[PLAIN], 15 if flush else 1.5)]
    if not flush:
        together = [run.sent[0].messages / max(1, run.commits) for run in found[HUB_FLIGHT]]
        rows += [
            Row("CPU of the hub for one message of a hundred in flight", MICROSECONDS, _cpu_us(found[HUB_FLIGHT]), 100),
            Row("messages in one commit", TIMES_AS_FAST, together, 20),
            Row("messages of a hundred in flight lost", COUNT, [run.lost for run in found[HUB_FLIGHT]], 0, always=True),
        ]
    return rows


def _push(sizes: Sizes) -> list[Row]:
    """From a send's acknowledgement until a listener has the message."""
    with place.folder() as folder:
        home = f"{folder}/home"
        hub_mail.start(home, {})
        try:
            listener, send = hub_mail.connect(home), hub_mail.open_sender(home)
            listener.call("mail.listen", {"identity": mail_api.RECIPIENT}, 10.0)
            times = [_push_ms(listener, send) for _ in range(sizes.reads)]
        finally:
            hub_mail.stop(home)
    return [Row("from a send's acknowledgement to its listener", MILLISECONDS, times, 2)]


def _push_ms(listener: Connection, send: Callable[[int], None]) -> float:
    send(1)
    acknowledged = time.perf_counter()
    while (listener.receive(10.0) or {}).get("method") != "mail.message":
        pass
    return max(0.0, time.perf_counter() - acknowledged) * 1000


def _idle(sizes: Sizes) -> list[Row]:
    with place.folder() as folder:
        home = f"{folder}/home"
        pid = hub_mail.start(home, {})
        connections: list[Connection] = []
        try:
            for _ in range(sizes.listeners):
                connections.append(hub_mail.connect(home))
                connections[-1].call("mail.listen", {"identity": mail_api.RECIPIENT}, 10.0)
            before_s, start = hub_mail.cpu_s(pid), time.monotonic()
            time.sleep(sizes.idle_s)
            percent = (hub_mail.cpu_s(pid) - before_s) / (time.monotonic() - start) * 100
            memory = _resident_mib(pid)
        finally:
            for connection in connections:
                connection.close()
            hub_mail.stop(home)
    return [
        Row(f"memory with {sizes.listeners:,} idle listeners", MEBIBYTES, [memory], 150),
        Row(f"CPU with {sizes.listeners:,} idle listeners", PERCENT, [percent], 2),
    ]


def _ratio(what: str, ours: list[Run], theirs: list[Run], target: float) -> Row:
    rates = [sender.rate(run.sent) for run in ours]
    plain_rates = [sender.rate(run.sent) for run in theirs]
    note = f"{median(rates):,.0f}/s against {median(plain_rates):,.0f}/s"
    return Row(f"{what}, against the plain loop", TIMES_AS_FAST, ratios(rates, plain_rates), target, note=note)


def _cpu_us(runs: list[Run]) -> list[float]:
    return [run.hub_cpu_s / sum(one.messages for one in run.sent) * 1e6 for run in runs]


def _resident_mib(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096 / (1 << 20)


def run_ms(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000
