"""Rounds of things to compare, one after another in each round, so that a slow minute of the machine hits all."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from bench import progress

T = TypeVar("T")


def interleave(rounds: int, runs: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """What each run gave, round by round; the order within a round changes from one to the next."""
    shuffle = random.Random(1).shuffle
    results: dict[str, list[T]] = {name: [] for name in runs}
    for number in range(1, rounds + 1):
        names = list(runs)
        shuffle(names)
        for name in names:
            progress.show(f"round {number} of {rounds}: {name}")
            results[name].append(runs[name]())
    return results


def ratios(dividends: Sequence[float], divisors: Sequence[float]) -> list[float]:
    """Round by round."""
    return [dividend / divisor for dividend, divisor in zip(dividends, divisors, strict=True)]
