"""`head` and a page of ten in a large collection, against the same in one of a thousand, in stores of their own.

Everything is read again and again, so from memory. `numbered` items were appended, `named` ones have ids of their
own. In brackets stands the time that one read took in the large collection.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

from accord.store.open import open_store
from accord.store.protocols import Snapshot
from bench import large
from bench.large import item_id
from bench.rounds import interleave, ratios
from bench.row import MICROSECONDS, SECONDS, TIMES_AS_LONG, Row
from bench.sizes import Sizes

PAGE = 10
MOST = 1.5
KINDS = {large.NUMBERED: "numbered", large.NAMED: "named"}


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    return [row for engine in large.ENGINES for row in _measure_engine(engine, rounds, sizes)]


def _measure_engine(engine: str, rounds: int, sizes: Sizes) -> list[Row]:
    big, little = large.large(engine, sizes), large.small(engine, sizes)
    sizes_text = " and ".join(f"{count:,} {KINDS[collection]}" for collection, count in big.counts.items())
    rows = [Row(f"{engine}: making {sizes_text} items with `load`", SECONDS, [big.built_s])]
    stores = open_store(big.url), open_store(little.url)
    with stores[0].snapshot() as in_big, stores[1].snapshot() as in_little:
        for collection, kind in KINDS.items():
            reads = _reads(in_big, collection, big.counts[collection])
            same_in_little = _reads(in_little, collection, little.counts[collection])
            label = f"{engine}, {big.counts[collection]:,} {kind}"
            rows += [
                _row(f"{label}: {what}", rounds, sizes.reads, read, same_in_little[what])
                for what, read in reads.items()
            ]
    for store in stores:
        store.close()
    return rows


def _row(what: str, rounds: int, times: int, in_big: Callable[[], object], in_little: Callable[[], object]) -> Row:
    runs = {f"{what}, large": partial(_time_us, in_big, times), f"{what}, small": partial(_time_us, in_little, times)}
    big_us, little_us = interleave(rounds, runs).values()
    return Row(what, TIMES_AS_LONG, ratios(big_us, little_us), MOST, note=MICROSECONDS.text(median(big_us)))


def _reads(snapshot: Snapshot, collection: str, count: int) -> dict[str, Callable[[], object]]:
    """What is timed, each looked at once: a wrong answer is fast too."""
    assert snapshot.head(collection).last == (count if collection == large.NUMBERED else 0)
    pages = {
        "first page": (partial(snapshot.list, collection, "", PAGE), range(1, PAGE + 1)),
        "page in the middle": (
            partial(snapshot.list, collection, item_id(collection, count // 2), PAGE),
            range(count // 2 + 1, count // 2 + PAGE + 1),
        ),
        "last page, reversed": (partial(snapshot.list, collection, "", PAGE, True), range(count, count - PAGE, -1)),
    }
    for page, numbers in pages.values():
        assert [item.id for item in page()] == [item_id(collection, number) for number in numbers]
    return {"head": partial(snapshot.head, collection), **{what: page for what, (page, _) in pages.items()}}


def _time_us(read: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        read()
    return (time.perf_counter() - start) / times * 1e6
