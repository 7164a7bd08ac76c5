"""bench."""

import os
from urllib.parse import unquote

from accord import errors, place
from accord.cli.show import table
from accord.cli.terminal import safe
from accord.cli.words import Verb
from accord.home import Home
from accord.settings import Settings
from accord.store.open import ALIASES, can_be_beside, engines
from accord.store.remote import login

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line
    from accord.measure.places import Engine

_FIGURES = ("per_second", "p50_ms", "p95_ms", "p99_ms", "worst_ms", "fairness")


def bench(line: "Line", words: "dict[str, Any]") -> int:
    from accord.measure import measure

    duration_s = line.value(words, "duration", "Seconds", 0)
    operations = line.value(words, "operations", "Count", 1) if "operations" in words else None
    home = Home(place.home_path(line.words.globals.get("--home", ""), line.io.cwd, line.io.env))
    engines = _engines(line, home)
    home.make()
    # The home's disk is what counts: the folder of temporary files often lies in memory.
    found, failed = measure(engines, operations, duration_s, line.progress, home.path)
    if not found:
        raise failed[0][1]
    lost = sum(row.get("lost", 0) for row in found)
    shown = [{"engine": engine, "error_code": error.code, "error_message": str(error)} for engine, error in failed]
    line.answer({"results": found, "lost": lost, "failed": shown}, lambda: _text(line, found, lost, shown), styled=True)
    if "plot" in words:
        _plot(line, words["plot"], found)
    return 1 if lost else failed[0][1].exit if failed else 0


def _engines(line: "Line", home: Home) -> "list[Engine]":
    """Those that are named; else all on this machine, and the home's own if that is elsewhere."""
    from accord.measure.places import LOCAL

    named = line.words.globals.get("--engine", "")
    if named:
        return [_engine(line, home, name) for name in dict.fromkeys(_split(named))]
    own = Settings(home.path, line.io.cwd, line.io.env, {})
    url = own["engine"]
    return [_engine(line, home, name) for name in (*LOCAL, *([] if login.is_local(url) or not url else [""]))]


def _split(text: str) -> list[str]:
    """Names and URLs with commas between them; what follows a URL and is neither is one more of its hosts."""
    from accord.measure.places import LOCAL

    found: list[str] = []
    for part in text.split(","):
        if found and "://" in found[-1] and "://" not in part and ALIASES.get(part, part) not in LOCAL:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def _engine(line: "Line", home: Home, name: str) -> "Engine":
    """By its name, or its URL; "": the home's own."""
    from accord.measure.places import LOCAL, Engine

    name = ALIASES.get(name, name)
    if name in LOCAL:
        return Engine(name)
    settings = Settings(home.path, line.io.cwd, line.io.env, {"engine": name} if "://" in name else {})
    url = settings["engine"]
    kind = url.partition(":")[0]
    if name not in ("", kind) and "://" not in name:
        own = f", and {name} is not what this home uses" if name in engines() else ""
        text = f"{login.shown(name)[:50]!r} cannot be measured; there are {', '.join(LOCAL)}, and URLs such as redis://HOST"
        raise line.words.wrong(f"{text}{own}")
    if not can_be_beside(url):
        raise line.words.wrong(f"{kind!r} cannot be measured: it has no places beside each other")
    password = login.split(settings.complete(url))[1]
    return Engine(url, unquote(password or ""))


def _text(line: "Line", found: "list[dict[str, Any]]", lost: int, failed: "list[dict[str, Any]]") -> str:
    rows = [(row["engine"], row["workload"], *[row[figure] for figure in _FIGURES]) for row in found]
    head = ("engine", "workload", "a second", "p50 ms", "p95 ms", "p99 ms", "worst ms", "fairness")
    verdict = f"LOST UPDATES: {lost}" if lost else f"no update was lost in the race of {_racers(found)}"
    lines = [verdict, *_cut_short(found), *[f"NOT MEASURED: {one['engine']}: {one['error_message']}" for one in failed]]
    return f"{table(line, head, rows)}\n" + "".join(f"{safe(text)}\n" for text in lines)


def _racers(found: "list[dict[str, Any]]") -> str:
    from accord.measure import IN_THREADS, RACERS, ROUNDS

    kinds = dict.fromkeys("threads" if row["engine"] in IN_THREADS else "processes" for row in found)
    return f"{RACERS} {' or '.join(kinds)} with {ROUNDS} updates each"


def _cut_short(found: "list[dict[str, Any]]") -> list[str]:
    """The races that did not come to their end in time."""
    from accord.measure import RACERS, ROUNDS

    whole = RACERS * ROUNDS
    races = [row for row in found if "lost" in row and row["operations"] < whole]
    return [f"on {row['engine']} time was over after {row['operations']:,} of {whole:,} updates" for row in races]


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
            "operations": "how many of each kind; when neither this nor a duration is given, 1,000, or as many of them "
            "as a server does in 10 s",
            "duration": "at most so many seconds for each kind",
            "plot": "a file for a picture of it, as SVG",
        },
        help="Measure engines, and race ten workers on each to see that no update is lost.\n\nThe engines are sqlite, "
        "files and memory, on the disk of the home, and the home's own engine if it is elsewhere; or those that "
        "--engine names, with commas between them, as in sqlite,redis://HOST. On a server all is written to new places "
        "beside the home's, called bench-..., which are removed in the end. The race has 1,000 updates; on a server it "
        "ends after a minute, or after --duration, in any case. An engine that fails is told at the end, and the "
        "others are measured.",
    ),
}
