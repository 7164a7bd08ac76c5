"""Ten processes start together and send a hundred messages each, to one recipient.

The plain loop does the same. With slow flushes, each flush takes 2 ms more (bench/slow_flush.c): those of several
processes may overlap, as on a real disk, but none is short.
"""

from statistics import median

from bench import sender
from bench.rivals import Rivals, compare
from bench.rounds import ratios
from bench.row import COUNT, SHARE, TIMES_AS_FAST, Row
from bench.sender import Run
from bench.sizes import Sizes


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    def run(way: str, flush: str) -> Run:
        return sender.run(way, sizes.racers, sizes.race_sends, flush=flush)

    fast, slow = compare(rounds, run)
    return [*_rows(fast, target=1.3), *_rows(slow, target=4)]


def _rows(rivals: Rivals, target: float) -> list[Row]:
    label = rivals.label
    rates = [sender.rate(run.sent) for run in rivals.accord]
    plain_rates = [sender.rate(run.sent) for run in rivals.plain]
    note = f"{median(rates):,.0f}/s against {median(plain_rates):,.0f}/s" if rates else ""
    return [
        Row(f"sends, against the plain loop{label}", TIMES_AS_FAST, ratios(rates, plain_rates), target, note=note),
        Row(f"the slowest process against the fastest{label}", SHARE, [_evenness(run) for run in rivals.accord], 0.5),
        Row(
            f"the slowest against the fastest in the plain loop{label}", SHARE, [_evenness(run) for run in rivals.plain]
        ),
        Row(f"messages lost{label}", COUNT, [run.lost for run in rivals.accord], 0, always=True),
    ]


def _evenness(run: Run) -> float:
    """The time of the first to have sent all, in times of the last."""
    return min(sent.took_s for sent in run.sent) / max(sent.took_s for sent in run.sent)
