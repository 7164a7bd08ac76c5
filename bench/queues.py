"""Eight processes push to one queue and pop from it for three seconds, through `accord.open()`.

Each push and each pop is an operation, and durable when it returns; so is each message of the plain loop. All processes
want the same entry, the first one.
"""

from functools import partial
from statistics import mean, median

from bench import sender
from bench.crowd import NO_LIMIT
from bench.rounds import interleave, ratios
from bench.row import COUNT, MILLISECONDS, SHARE, TIMES_AS_FAST, Row
from bench.sender import PLAIN, QUEUE, QUEUE_WHOLE, Run
from bench.sizes import Sizes


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    ways = (QUEUE, QUEUE_WHOLE, PLAIN)
    runs = {way: partial(sender.run, way, sizes.crowd, NO_LIMIT, sizes.crowd_s) for way in ways}
    found = interleave(rounds, runs)
    rates = {way: [sender.rate(run.sent) for run in found[way]] for way in ways}
    rows = []
    for way, target in ((QUEUE, 0.3), (QUEUE_WHOLE, None)):
        note = f"{median(rates[way]):,.0f}/s against {median(rates[PLAIN]):,.0f}/s"
        against = ratios(rates[way], rates[PLAIN])
        rows.append(Row(f"{way}: operations, against the plain loop", TIMES_AS_FAST, against, target, note=note))
    lost = [run.lost for way in (QUEUE, QUEUE_WHOLE) for run in found[way]]
    return [
        *rows,
        Row("the least that a process did, against the mean", SHARE, [_least(run) for run in found[QUEUE]]),
        Row("worst wait for a push and a pop", MILLISECONDS, [_worst_wait_ms(run) for run in found[QUEUE]]),
        Row("operations lost", COUNT, lost, 0, always=True),
    ]


def _least(run: Run) -> float:
    counts = [sent.messages for sent in run.sent]
    return min(counts) / mean(counts)


def _worst_wait_ms(run: Run) -> float:
    return max(sent.worst_wait_s for sent in run.sent) * 1000
