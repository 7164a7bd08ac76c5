"""The default engine and the plain loop under the same load, with the flushes of this disk and with slow ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench import preload
from bench.rounds import interleave
from bench.sender import PLAIN, SQLITE, Run


@dataclass(frozen=True)
class Rivals:
    label: str  # "" or ", slow flushes"
    accord: list[Run]  # one per round; none where slow flushes cannot be had
    plain: list[Run]


def compare(rounds: int, run: Callable[[str, str], Run]) -> tuple[Rivals, Rivals]:
    """Call `run(way, flush)` for both ways and both kinds of flushes, in each round."""
    labels = {"": "", preload.SLOW: ", slow flushes"}
    runs = {way + labels[""]: partial(run, way, "") for way in (SQLITE, PLAIN)}
    if preload.can_build():
        runs |= {way + labels[preload.SLOW]: partial(run, way, preload.SLOW) for way in (SQLITE, PLAIN)}
    found = interleave(rounds, runs)
    fast, slow = (
        Rivals(label, found.get(SQLITE + label, []), found.get(PLAIN + label, [])) for label in labels.values()
    )
    return fast, slow
