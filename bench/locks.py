"""Acquiring and releasing a lock through `accord.open()`, on sqlite: two durable commits.

Alone it is compared with the plain loop, which makes one. Then eight processes want the same lock for three seconds:
all wait in the order in which they came, so that each waits about as long, and gets it about as often, as any other.
Slow flushes are as in the race.
"""

from functools import partial
from statistics import mean, median, quantiles

from bench import locker, preload, sender
from bench.locker import Run
from bench.rounds import interleave, ratios
from bench.row import COUNT, MILLISECONDS, RATE, SHARE, TIMES_AS_FAST, TIMES_AS_LONG, Row
from bench.sender import PLAIN
from bench.sizes import Sizes

NO_LIMIT = 1 << 60


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    return [*_alone(rounds, sizes), *_crowd(rounds, sizes)]


def _alone(rounds: int, sizes: Sizes) -> list[Row]:
    runs = {
        "lock": lambda: _rate(locker.run(1, sizes.sends // 2)),
        PLAIN: lambda: sender.rate([sender.run_one(PLAIN, sizes.sends)]),
    }
    found = interleave(rounds, runs)
    note = f"{median(found['lock']):,.0f}/s against {median(found[PLAIN]):,.0f}/s"
    return [
        Row(
            "acquire and release, against the plain loop",
            TIMES_AS_FAST,
            ratios(found["lock"], found[PLAIN]),
            0.25,
            note=note,
        )
    ]


def _crowd(rounds: int, sizes: Sizes) -> list[Row]:
    labels = {"": "", preload.SLOW: ", slow flushes"} if preload.can_build() else {"": ""}
    runs = {
        label: partial(locker.run, sizes.crowd, NO_LIMIT, sizes.crowd_s, flush=flush) for flush, label in labels.items()
    }
    return [row for label, found in interleave(rounds, runs).items() for row in _rows(found, label)]


def _rows(runs: list[Run], label: str) -> list[Row]:
    waits_ms = [[wait_s * 1000 for held in run.held for wait_s in held.waits_s] for run in runs]
    slow = [quantiles(waits, n=100)[98] / median(waits) for waits in waits_ms]
    return [
        Row(f"99 % of waits, against the median{label}", TIMES_AS_LONG, slow, 10),
        Row(f"the least that a process got it, against the mean{label}", SHARE, [_least(run) for run in runs], 0.5),
        Row(f"median wait{label}", MILLISECONDS, [median(waits) for waits in waits_ms]),
        Row(f"worst wait{label}", MILLISECONDS, [max(waits) for waits in waits_ms]),
        Row(f"acquire and release, all together{label}", RATE, [_rate(run) for run in runs]),
        Row(f"grants lost or doubled{label}", COUNT, [run.lost for run in runs], 0, always=True),
    ]


def _rate(run: Run) -> float:
    return sum(held.pairs for held in run.held) / max(held.took_s for held in run.held)


def _least(run: Run) -> float:
    counts = [held.pairs for held in run.held]
    return min(counts) / mean(counts)
