"""How often a test repeats itself."""

import os
import random


def often(times: int) -> int:
    """So many times in `make test-more`; a quarter of them in `make test`."""
    return times if os.environ.get("ACCORD_MORE") == "1" else times // 4


def some_of(count: int) -> list[int]:
    """Numbers below that: all in `make test-more`; a quarter of them, always the same, in `make test`."""
    return sorted(random.Random(1).sample(range(count), often(count)))
