"""Stores with large and with small collections, made once in a run."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.store.contract import Item, number_id
from accord.store.open import open_store
from bench import place, progress
from bench.sizes import Sizes

if TYPE_CHECKING:
    from accord.store.contract import Content

ENGINES = ("sqlite", "files")
NUMBERED = "mail/bob"  # appended items
NAMED = "messages"  # items with ids of their own
_BODY = b"x" * 300

_built_s: dict[str, float] = {}


@dataclass(frozen=True)
class Large:
    url: str
    counts: dict[str, int]  # items of each collection
    built_s: float


def large(engine: str, sizes: Sizes) -> Large:
    named = sizes.named_in_files if engine == "files" else sizes.named
    return _store(engine, {NUMBERED: sizes.numbered, NAMED: named})


def small(engine: str, sizes: Sizes) -> Large:
    return _store(engine, {NUMBERED: sizes.small, NAMED: sizes.small})


def item_id(collection: str, number: int) -> str:
    """The id of the n-th item, counted from 1."""
    return number_id(number) if collection == NUMBERED else f"m0193{number:012d}"


def _store(engine: str, counts: dict[str, int]) -> Large:
    name = f"{engine} {counts}"
    url = f"{engine}:{place.kept(name)}/store"
    if name not in _built_s:
        progress.show(f"{engine}: making {sum(counts.values()):,} items")
        start = time.monotonic()
        store = open_store(url)
        store.load(_contents(counts))
        store.close()
        _built_s[name] = time.monotonic() - start
    return Large(url, counts, _built_s[name])


def _contents(counts: dict[str, int]) -> "Iterator[Content]":
    for collection, count in counts.items():
        items = (Item(item_id(collection, number), _BODY, 0) for number in range(1, count + 1))
        yield collection, count if collection == NUMBERED else 0, items
