"""Eight processes send for three seconds, to one recipient: does each get its share, and how long may one wait?

The plain loop does the same, to compare. Slow flushes are as in the race.
"""

from statistics import mean, median

from bench import sender
from bench.rivals import Rivals, compare
from bench.rounds import ratios
from bench.row import COUNT, MEBIBYTES, MILLISECONDS, SHARE, TIMES_AS_FAST, Row
from bench.sender import Run
from bench.sizes import Sizes

NO_LIMIT = 1 << 60


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    def run(way: str, flush: str) -> Run:
        return sender.run(way, sizes.crowd, NO_LIMIT, sizes.crowd_s, flush)

    return [row for rivals in compare(rounds, run) for row in _rows(rivals)]


def _rows(rivals: Rivals) -> list[Row]:
    label = rivals.label
    accord, plain = rivals.accord, rivals.plain
    rates = [sender.rate(run.sent) for run in accord]
    plain_rates = [sender.rate(run.sent) for run in plain]
    note = f"{median(rates):,.0f}/s against {median(plain_rates):,.0f}/s" if rates else ""
    return [
        Row(f"the least that a process sent, against the mean{label}", SHARE, [_least(run) for run in accord], 0.5),
        Row(f"the least in the plain loop{label}", SHARE, [_least(run) for run in plain]),
        Row(f"worst wait of one send{label}", MILLISECONDS, [_worst_wait_ms(run) for run in accord], 300),
        Row(f"worst wait in the plain loop{label}", MILLISECONDS, [_worst_wait_ms(run) for run in plain]),
        Row(f"sends, against the plain loop{label}", TIMES_AS_FAST, ratios(rates, plain_rates), note=note),
        Row(f"size of the WAL at the end{label}", MEBIBYTES, [run.wal_bytes / (1 << 20) for run in accord]),
        Row(f"messages lost{label}", COUNT, [run.lost for run in accord], 0, always=True),
    ]


def _least(run: Run) -> float:
    counts = [sent.messages for sent in run.sent]
    return min(counts) / mean(counts)


def _worst_wait_ms(run: Run) -> float:
    return max(sent.worst_wait_s for sent in run.sent) * 1000
