"""How often a test repeats itself."""

import os
import random

IS_MORE = os.environ.get("ACCORD_MORE") == "1"  # this is `make test-more`, as in CI


def often(times: int) -> int:
    """So many times in `make test-more`; a quarter of them in `make test`."""
    return times if IS_MORE else times // 4


def some_of(count: int) -> list[int]:
    """Numbers below that: all in `make test-more`; a quarter of them, always the same, in `make test`."""
    return sorted(random.Random(1).sample(range(count), often(count)))
