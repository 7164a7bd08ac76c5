"""How often a test does what is left to chance."""

import os


def often(times: int) -> int:
    """So many times in `make test-more`; a quarter of them in `make test`."""
    return times if os.environ.get("ACCORD_MORE") == "1" else times // 4
