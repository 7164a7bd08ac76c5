"""One process, one send after another, each durable before the next.

A send is three reads and four writes; the plain loop makes one insert. CPU is that of the process, with the
flush left out, since what the kernel spends on it is not accord's.
"""

from functools import partial
from statistics import median

from bench import sender
from bench.rounds import interleave, ratios
from bench.row import MICROSECONDS, TIMES_AS_FAST, Row
from bench.sender import PLAIN, SQLITE, SQLITE_UNFLUSHED
from bench.sizes import Sizes


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    ways = (PLAIN, SQLITE, SQLITE_UNFLUSHED)
    found = interleave(rounds, {way: partial(sender.run_one, way, sizes.sends) for way in ways})
    rates = {way: [sender.rate([sent]) for sent in found[way]] for way in ways}
    cpu_us = [sent.cpu_s / sent.messages * 1e6 for sent in found[SQLITE_UNFLUSHED]]
    note = f"{median(rates[SQLITE]):,.0f}/s against {median(rates[PLAIN]):,.0f}/s"
    return [
        Row("sends, against the plain loop", TIMES_AS_FAST, ratios(rates[SQLITE], rates[PLAIN]), 0.7, note=note),
        Row("CPU of a send, without the flush", MICROSECONDS, cpu_us, 80),
    ]
