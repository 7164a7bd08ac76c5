"""The line on the terminal that says what is being measured."""

import sys


def show(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text[:100]}")
        sys.stderr.flush()


def clear() -> None:
    show("")
