"""Errors. `table.py` has all of them; it is loaded when one is named, since a command that goes well needs none."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.errors.table import *  # noqa: F403


class AccordError(Exception):
    """Base of every error accord reports; `details` holds the names and figures behind the text."""

    code: str = "INTERNAL"
    rpc: int = -32603
    exit: int = 70
    http: int = 500
    text: str = "accord failed in a way it does not know. Run again with -v and report what it shows."

    def __init__(self, **details: object) -> None:
        self.details = details
        super().__init__(self.text.format(**details))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.details)


def _rebuild(kind: type[AccordError], details: dict[str, object]) -> AccordError:
    """An error that came from another process."""
    return kind(**details)


def __getattr__(name: str) -> type[AccordError]:
    if name.startswith("_") or name == "table":
        raise AttributeError(name)  # asked by those who import or copy modules
    __import__("accord.errors.table")
    found: type[AccordError] = getattr(sys.modules["accord.errors.table"], name)
    return found
