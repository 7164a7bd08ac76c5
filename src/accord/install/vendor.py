"""What installing for every vendor has in common."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TIMEOUT_S = 10  # seconds that a vendor gives a hook; accord's own deadline is far below
STOP_S = 3610  # at the end of a turn it may wait for mail (`stop_wait_s`)


def setting(path: str, parse: "Callable[[str], Any]", *keys: str) -> "Any":
    """What a settings file says; None where it says nothing, or cannot be read."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            found = parse(file.read())
    except (OSError, ValueError):
        return None
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def off(program: str, paths: "list[str]", parse: "Callable[[str], Any]", *keys: str, when: bool) -> list[str]:
    """A note for each file in which a person has turned all hooks off: nothing else would tell them."""
    return [
        f"{program} runs no hooks, and so none of accord's, while {'.'.join(keys)} is {str(when).lower()} in {path}."
        for path in paths
        if setting(path, parse, *keys) is when
    ]


def data(name: str) -> str:
    """A file that comes with accord, to be written elsewhere."""
    with open(f"{os.path.dirname(__file__)}/data/{name}", encoding="utf-8") as file:
        return file.read()
