"""Measures everything, shows it, and writes docs/benchmarks.md: `make bench`."""

import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType

# Started as a file, Python looks for modules in bench/ alone.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import (
    agents,
    commands,
    crowd,
    elsewhere,
    floor,
    hub,
    locks,
    machine,
    mailing,
    opening,
    other_ways,
    paging,
    place,
    progress,
    queues,
    race,
    single,
    stages,
    tasks,
    watching,
)
from bench.row import COUNT, Row
from bench.sizes import FULL

LIMIT_S = 1_800  # a run that takes so long is given up
REPORT = place.CHECKOUT / "docs" / "benchmarks.md"

METHOD = """\
Written by `make bench`. Absolute figures say more about a machine than about accord, so most are ratios, and what
is compared ran in the same minutes: in rounds, one after the other, in an order that changes. Median, best and
worst are over the rounds; a target holds for the median, or, where it says *always*, for each round. Each process
is a fresh one, all are started and have opened the store before they get a common signal.

The *plain loop* (bench/plain_loop.py) is what one would write without accord: for each message of 300 bytes a
`BEGIN IMMEDIATE`, an insert and a commit at `synchronous=FULL`, in WAL mode with a busy timeout of 60 s. A *send*
(bench/mail_send.py) does the work of sending a mail through `transact`: three reads and four writes, a body of
300 bytes among them. Both are durable when they return.
"""

FAILED = "an error ended this benchmark"
COLUMNS = ["", "median", "best", "worst", "target", ""]


@dataclass(frozen=True)
class Benchmark:
    title: str
    module: ModuleType  # its docstring says in the report what is measured
    rounds: int


BENCHMARKS = [
    Benchmark("The floor, before", floor, 20),
    Benchmark("One process", single, 7),
    Benchmark("A race of ten processes", race, 5),
    Benchmark("A crowd of eight processes", crowd, 3),
    Benchmark("Watching", watching, 1),
    Benchmark("Commands", commands, 25),
    Benchmark("A race of real mail", mailing, 5),
    Benchmark("Queues", queues, 5),
    Benchmark("The hub", hub, 5),
    Benchmark("Stores on servers", elsewhere, 5),
    Benchmark("Agents", agents, 25),
    Benchmark("Locks", locks, 5),
    Benchmark("Where the microseconds go", stages, 50),
    Benchmark("Other ways to send", other_ways, 3),
    Benchmark("Large collections", paging, 7),
    Benchmark("The task board", tasks, 5),
    Benchmark("Opening a store", opening, 11),
    Benchmark("The floor, after", floor, 20),
]

Results = list[tuple[Benchmark, list[Row]]]


def main() -> None:
    for signum in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(signum, _give_up)
    signal.alarm(LIMIT_S)
    start = time.monotonic()
    try:
        results = _measure_all()
        minutes = (time.monotonic() - start) / 60
        REPORT.write_text(render(results, machine.describe(REPORT.parent), minutes))
        print(f"\n{summary(results)}\n\nwritten to docs/benchmarks.md; removing the large stores takes a while")
    finally:
        signal.alarm(0)
        place.remove_kept()
    if any(row.what == FAILED for _, rows in results for row in rows):
        raise SystemExit(1)


def _measure_all() -> Results:
    results = []
    for number, benchmark in enumerate(BENCHMARKS, 1):
        print(f"\n[{number}/{len(BENCHMARKS)}] {benchmark.title}", flush=True)
        rows = _measure(benchmark)
        progress.clear()
        for row in rows:
            what, median, best, _, target, verdict = row.cells()
            print(f"  {verdict:12} {median:>12}  {what}; best {best}{target and f'; {target}'}", flush=True)
        results.append((benchmark, rows))
    return results


def _measure(benchmark: Benchmark) -> list[Row]:
    """Its rows; an error is shown, and costs this one benchmark."""
    try:
        rows: list[Row] = benchmark.module.measure(benchmark.rounds, FULL)
    except Exception:
        traceback.print_exc()
        return [Row(FAILED, COUNT, [])]
    return rows


def render(results: Results, machine: str, minutes: float) -> str:
    """The report, as Markdown."""
    parts = [
        "# Benchmarks",
        summary(results),
        METHOD.strip(),
        f"Machine: {machine}. The run took {minutes:.0f} minutes.",
    ]
    for benchmark, rows in results:
        parts += [f"## {benchmark.title}", (benchmark.module.__doc__ or "").strip(), _table(rows)]
    return "\n\n".join(parts) + "\n"


def summary(results: Results) -> str:
    """How many targets were met, and which were not; first of all, whether the run counts."""
    rows = [(benchmark, row) for benchmark, rows in results for row in rows]
    judged = [row for _, row in rows if row.target is not None]
    lines = [f"{sum(row.verdict == 'met' for row in judged)} of {len(judged)} targets are met.", ""]
    if any(row.verdict == "VOID" for row in judged):
        lines = ["**VOID: the machine was busy, and no figure below means anything.**", "", *lines]
    for benchmark, row in rows:
        what, median, _, _, target, verdict = row.cells()
        if verdict not in ("", "met"):
            lines.append(f"- {verdict}: {benchmark.title}: {what}: {median}{target and f', target {target}'}")
    return "\n".join(lines).rstrip()


def _table(rows: list[Row]) -> str:
    lines = [COLUMNS, ["---", "---:", "---:", "---:", "---", "---"]]
    for row in rows:
        *cells, verdict = row.cells()
        lines.append([*cells, verdict if verdict in ("", "met") else f"**{verdict}**"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _give_up(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(f"given up: {signal.Signals(signum).name}")


if __name__ == "__main__":
    main()
