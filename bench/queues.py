"""Eight processes push to one queue and pop from it, through `accord.open()`; all want the same entry, the first.

Each push and each pop is an operation, and durable when it returns; so is each message of the plain loop, which eight
processes run as well. First each process has so much to do, and the time is that of the last. Then all go on for three
seconds, in which the plain loop is fast since it lets most of its processes starve.
"""

from functools import partial
from statistics import mean, median

from bench import sender
from bench.crowd import NO_LIMIT
from bench.rounds import interleave, ratios
from bench.row import COUNT, MILLISECONDS, SHARE, TIMES_AS_FAST, Row
from bench.sender import PLAIN, QUEUE, QUEUE_WHOLE, Run
from bench.sizes import Sizes

WAYS = (QUEUE, QUEUE_WHOLE, PLAIN)
TARGETS = {QUEUE: 0.3, QUEUE_WHOLE: None}


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    race = {way: partial(sender.run, way, sizes.crowd, sizes.race_sends) for way in WAYS}
    crowd = {way: partial(sender.run, way, sizes.crowd, NO_LIMIT, sizes.crowd_s) for way in WAYS}
    raced, crowded = interleave(rounds, race), interleave(rounds, crowd)
    mine = [run for found in (raced, crowded) for way in TARGETS for run in found[way]]
    return [
        *_rates("so much each", raced),
        *_rates("three seconds", crowded),
        Row("the least that a process did, against the mean", SHARE, [_least(run) for run in crowded[QUEUE]]),
        Row("the least in the plain loop", SHARE, [_least(run) for run in crowded[PLAIN]]),
        Row("worst wait for a push and a pop", MILLISECONDS, [_worst_wait_ms(run) for run in crowded[QUEUE]]),
        Row("operations lost", COUNT, [run.lost for run in mine], 0, always=True),
    ]


def _rates(label: str, found: dict[str, list[Run]]) -> list[Row]:
    rates = {way: [sender.rate(run.sent) for run in found[way]] for way in WAYS}
    rows = []
    for way, target in TARGETS.items():
        against = ratios(rates[way], rates[PLAIN])
        note = f"{median(rates[way]):,.0f}/s against {median(rates[PLAIN]):,.0f}/s"
        rows.append(Row(f"{way}, {label}, against the plain loop", TIMES_AS_FAST, against, target, note=note))
    return rows


def _least(run: Run) -> float:
    counts = [sent.messages for sent in run.sent]
    return min(counts) / mean(counts)


def _worst_wait_ms(run: Run) -> float:
    return max(sent.worst_wait_s for sent in run.sent) * 1000
