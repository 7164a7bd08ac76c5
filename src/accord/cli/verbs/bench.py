"""bench."""

import os

from accord import errors, place
from accord.cli.show import table
from accord.cli.words import Verb
from accord.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

_OPERATIONS = 1000
_FIGURES = ("per_second", "p50_ms", "p95_ms", "p99_ms", "worst_ms", "fairness")


def bench(line: "Line", words: "dict[str, Any]") -> int:
    from accord.measure import measure

    duration_s = line.value(words, "duration", "Seconds", 0)
    is_timed = duration_s and "operations" not in words
    operations = 0 if is_timed else line.value(words, "operations", "Count", _OPERATIONS)
    found = measure(_engines(line), operations, duration_s, line.progress, _folder(line))
    lost = sum(row.get("lost", 0) for row in found)
    line.answer({"results": found, "lost": lost}, lambda: _text(line, found, lost), styled=True)
    if "plot" in words:
        _plot(line, words["plot"], found)
    return 1 if lost else 0


def _folder(line: "Line") -> str:
    """The home, since its disk is what counts: the folder of temporary files often lies in memory."""
    home = Home(place.home_path(line.words.globals.get("--home", ""), line.io.cwd, line.io.env))
    home.make()
    return home.path


def _engines(line: "Line") -> list[str]:
    from accord.measure import ENGINES

    named = line.words.globals.get("--engine", "")
    engines = named.split(",") if named else list(ENGINES)
    strange = [name for name in engines if name not in ENGINES]
    if strange:
        raise line.words.wrong(f"{strange[0][:50]!r} cannot be measured; there are {', '.join(ENGINES)}")
    return engines


def _text(line: "Line", found: "list[dict[str, Any]]", lost: int) -> str:
    rows = [(row["engine"], row["workload"], *[row[figure] for figure in _FIGURES]) for row in found]
    head = ("engine", "workload", "a second", "p50 ms", "p95 ms", "p99 ms", "worst ms", "fairness")
    verdict = f"LOST UPDATES: {lost}" if lost else f"no update was lost in the race of {_racers(found)}"
    return f"{table(line, head, rows)}\n{verdict}\n"


def _racers(found: "list[dict[str, Any]]") -> str:
    from accord.measure import IN_THREADS, RACERS, ROUNDS

    kinds = dict.fromkeys("threads" if row["engine"] in IN_THREADS else "processes" for row in found)
    return f"{RACERS} {' or '.join(kinds)} with {ROUNDS} updates each"


def _plot(line: "Line", path: str, found: "list[dict[str, Any]]") -> None:
    from accord.measure.report import svg

    try:
        with open(os.path.join(line.io.cwd, path), "w", encoding="utf-8") as file:
            file.write(svg(found))
    except OSError as error:
        raise errors.FileUnreadable(path=path, reason=error.strerror) from None


VERBS = {
    "bench": Verb(
        bench,
        extra={"operations": "Count", "duration": "Seconds", "plot": "Path"},
        notes={
            "operations": "how many of each kind; 1,000 when neither this nor a duration is given",
            "duration": "at most so many seconds for each kind",
            "plot": "a file for a picture of it, as SVG",
        },
        help="Measure the engines on the disk of the home, or those named with --engine, and race ten workers on each.",
    ),
}
