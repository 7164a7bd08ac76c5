"""For information: one process that sends to the other engines, or many messages in one durable commit.

`memory` flushes nothing. A hundred works under `exclusive()` become one commit; that is what a hub does.
"""

from functools import partial
from statistics import median

from bench import sender
from bench.mail_send import BATCH
from bench.rounds import interleave, ratios
from bench.row import TIMES_AS_FAST, Row
from bench.sender import FILES, MEMORY, PLAIN, SQLITE_BATCHES
from bench.sizes import Sizes


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    calls = {PLAIN: sizes.sends, MEMORY: sizes.sends, FILES: sizes.sends, SQLITE_BATCHES: max(1, sizes.sends // BATCH)}
    found = interleave(rounds, {way: partial(sender.run_one, way, calls[way]) for way in calls})
    rates = {way: [sender.rate([sent]) for sent in found[way]] for way in calls}
    return [
        Row(
            f"sends, against the plain loop: {way}",
            TIMES_AS_FAST,
            ratios(rates[way], rates[PLAIN]),
            note=f"{median(rates[way]):,.0f}/s against {median(rates[PLAIN]):,.0f}/s",
        )
        for way in (MEMORY, FILES, SQLITE_BATCHES)
    ]
