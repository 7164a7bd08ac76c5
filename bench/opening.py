"""Opening a store that is there, until the first snapshot, each time in a fresh process that has imported the driver.

The WAL was left just short of the length at which SQLite empties it, by a process that did not close it: whoever
opens it next must read all of it. A journal of 999 commits is the longest there is.
"""

import os
from functools import partial

from accord.store.open import open_store
from bench import large, place
from bench.processes import run_alone
from bench.rounds import interleave
from bench.row import MILLISECONDS, Row
from bench.sizes import Sizes

MOST_MS = 2.0


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    with place.folder() as folder:
        urls = _urls(folder, sizes)
        for engine in large.ENGINES:
            _open_ms(urls[f"{engine}, empty"])  # the first one compiles the modules
        journal = f"{folder}/journal"
        restarted = f"files, {sizes.commits_before_opening} commits in the journal, first after the machine restarted"
        runs = {what: partial(_open_ms, url) for what, url in urls.items()}
        found = interleave(rounds, {**runs, restarted: partial(_open_restarted_ms, journal)})
    rows = [Row(what, MILLISECONDS, [took for took, _ in found[what]], MOST_MS) for what in urls]
    rows.append(Row(restarted, MILLISECONDS, [took for took, _ in found[restarted]]))
    for engine in large.ENGINES:
        imports = [imported for what in urls if what.startswith(engine) for _, imported in found[what]]
        rows.append(Row(f"of these, importing the modules of accord: {engine}", MILLISECONDS, imports))
    return rows


def _urls(folder: str, sizes: Sizes) -> dict[str, str]:
    urls = {}
    for engine in large.ENGINES:
        urls[f"{engine}, empty"] = f"{engine}:{folder}/empty-{engine}"
        open_store(f"{engine}:{folder}/empty-{engine}").close()
        big = large.large(engine, sizes)
        urls[f"{engine}, {sum(big.counts.values()):,} items, as `load` left it"] = big.url
    pages = _leave_behind(f"sqlite:{folder}/wal")
    urls[f"sqlite, {pages} pages in the WAL"] = f"sqlite:{folder}/wal"
    commits = _leave_behind(f"files:{folder}/journal", str(sizes.commits_before_opening))
    urls[f"files, {commits} commits in the journal"] = f"files:{folder}/journal"
    return urls


def _leave_behind(url: str, *more: str) -> int:
    return int(run_alone(["-m", "bench.leave_behind", url, *more]))


def _open_ms(url: str) -> tuple[float, float]:
    """Milliseconds until the first snapshot, and those of importing among them."""
    took, imports = run_alone(["bench/open_once.py", url]).split()
    return float(took), float(imports)


def _open_restarted_ms(path: str) -> tuple[float, float]:
    """Without the note of how far the journal is laid out, which counts for one start of the machine only."""
    os.unlink(f"{path}/state")
    return _open_ms(f"files:{path}")
