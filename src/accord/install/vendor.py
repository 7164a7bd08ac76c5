"""What installing for every vendor has in common."""

import os

TIMEOUT_S = 10  # seconds that a vendor gives a hook; accord's own deadline is far below
STOP_S = 3610  # at the end of a turn it may wait for mail (`stop_wait_s`)


def data(name: str) -> str:
    """A file that comes with accord, to be written elsewhere."""
    with open(f"{os.path.dirname(__file__)}/data/{name}", encoding="utf-8") as file:
        return file.read()
