"""One process, one send after another, each durable before the next.

A send is three reads and four writes; the plain loop makes one insert. CPU is that of the process when nothing is
flushed (bench/no_flush.c), since what the kernel spends on flushes is not accord's.
"""

from functools import partial
from statistics import median

from bench import preload, sender
from bench.rounds import interleave, ratios
from bench.row import MICROSECONDS, TIMES_AS_FAST, Row
from bench.sender import PLAIN, SQLITE, Sent
from bench.sizes import Sizes


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    def run(way: str, flush: str) -> Sent:
        return sender.run_one(way, sizes.sends, flush)

    flushes = ("", preload.NONE) if preload.can_build() else ("",)
    found = interleave(rounds, {way + flush: partial(run, way, flush) for flush in flushes for way in (SQLITE, PLAIN)})
    rates = {way: [sender.rate([sent]) for sent in found[way]] for way in (SQLITE, PLAIN)}
    note = f"{median(rates[SQLITE]):,.0f}/s against {median(rates[PLAIN]):,.0f}/s"
    return [
        Row("sends, against the plain loop", TIMES_AS_FAST, ratios(rates[SQLITE], rates[PLAIN]), 0.7, note=note),
        Row("CPU of a send, without flushes", MICROSECONDS, _cpu_us(found.get(SQLITE + preload.NONE, [])), 80),
        Row("CPU of the plain loop, without flushes", MICROSECONDS, _cpu_us(found.get(PLAIN + preload.NONE, []))),
    ]


def _cpu_us(runs: list[Sent]) -> list[float]:
    return [sent.cpu_s / sent.messages * 1e6 for sent in runs]
