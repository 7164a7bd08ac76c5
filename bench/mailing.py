"""Ten processes send a hundred real messages each, through `accord.open()`, to one recipient.

The race above has transactions of the size of a send; this is the send itself, with its checks of names, tokens, HALT
and the inbox's limit.
"""

from functools import partial
from statistics import median

from bench import sender
from bench.rounds import interleave, ratios
from bench.row import COUNT, SHARE, TIMES_AS_FAST, Row
from bench.sender import MAIL, PLAIN
from bench.sizes import Sizes


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    runs = {way: partial(sender.run, way, sizes.racers, sizes.race_sends) for way in (MAIL, PLAIN)}
    found = interleave(rounds, runs)
    rates = {way: [sender.rate(run.sent) for run in found[way]] for way in runs}
    note = f"{median(rates[MAIL]):,.0f}/s against {median(rates[PLAIN]):,.0f}/s"
    evenness = [min(one.took_s for one in run.sent) / max(one.took_s for one in run.sent) for run in found[MAIL]]
    return [
        Row("sends, against the plain loop", TIMES_AS_FAST, ratios(rates[MAIL], rates[PLAIN]), 1.3, note=note),
        Row("the slowest process against the fastest", SHARE, evenness, 0.5),
        Row("messages lost", COUNT, [run.lost for run in found[MAIL]], 0, always=True),
    ]
