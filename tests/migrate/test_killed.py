"""A migration killed at any of its writes leaves nothing that looks whole and is not, and done again it is done."""

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from accord import errors
from accord.home import Home
from accord.operations.context import open_in
from accord.settings import Settings
from accord.store.open import is_there, open_store
from accord.testing.conformance.tools import revision_of
from tests.conformance.engines import ENGINES, Engine
from tests.migrate.held import few, held, held_at
from tests.often import some_of
from tests.robustness import strace

pytestmark = pytest.mark.covers("S11")

ACCORD = [sys.executable, "-S", "-c", "from accord.cli.main import main; main()"]
LASTING = [engine for engine in ENGINES if engine.shared]
LEGS = [
    pytest.param(source, target, id=f"{source.name}-{target.name}", marks=[] if at < 1 else [pytest.mark.more])
    for at, (source, target) in enumerate(zip(LASTING, [*LASTING[1:], LASTING[0]], strict=True))
]

# What goes to a server. (Our own log of the command, its home, is the other thing that it changes.)
SENT = re.compile(r"(?P<name>sendto|sendmsg|write|writev)\(\d+<(UNIX|TCP|socket|TCPv6)")


@dataclass(frozen=True)
class Leg:
    source: Engine
    target: Engine
    prepared: Path

    def urls(self, home: Path) -> tuple[str, str]:
        """A server's source is the same for all; nobody writes to it."""
        source = self.source.url(self.prepared / "a") if self.source.server else self.source.url(home / "a")
        return source, self.target.url(home / "b")

    def start(self, home: Path) -> list[str]:
        shutil.copytree(self.prepared, home)
        source, target = self.urls(home)
        return ["--home", str(home), "migrate", "--from", source, "--to", target]


@pytest.mark.parametrize(("source", "target"), LEGS)
def test_killed_at_any_write(source: Engine, target: Engine, quick_path: Path) -> None:
    leg = Leg(source, target, quick_path / "prepared")
    prepare(leg)
    points = points_of(leg, quick_path / "whole")
    assert len(points) > 5
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda at: killed(leg, points[at], quick_path / f"k{at}"), some_of(len(points))))


def prepare(leg: Leg) -> None:
    leg.prepared.mkdir(mode=0o700)
    with closing(open_store(leg.urls(leg.prepared)[0])) as store:
        few(store)
    (leg.prepared / "audit").mkdir(mode=0o700)


def points_of(leg: Leg, home: Path) -> list[strace.Call]:
    """The calls of a migration that nobody disturbs."""
    whole = strace.run(leg.start(home), home.with_suffix(".log"), command=ACCORD)
    assert (whole.status, whole.complaints) == (0, "")
    assert held_at(leg.urls(home)[1]) == held_at(leg.urls(home)[0])
    return writes(home, whole.log)


def writes(home: Path, log: str) -> list[strace.Call]:
    """What the main thread changes in the home, and what it sends; calls are counted for each thread by itself."""
    main = log.partition(" ")[0]
    own = "\n".join(line for line in log.splitlines() if line.startswith(f"{main} "))
    return [*strace.calls_on(home, own), *_sent(own)]


def _sent(log: str) -> list[strace.Call]:
    counts: dict[str, int] = {}
    found = []
    for line in log.splitlines():
        name = line.partition(" ")[2].strip().partition("(")[0]
        counts[name] = counts.get(name, 0) + 1
        if SENT.search(line):
            found.append(strace.Call(name, counts[name], line))
    return found


def killed(leg: Leg, call: strace.Call, home: Path) -> None:
    """Kill a migration at the call, and look at what it leaves; then do it again."""
    words = leg.start(home)
    options = ("-e", f"trace={call.name}", "-e", f"inject={call.name}:signal=SIGKILL:when={call.number}")
    run = strace.run(words, home.with_suffix(".log"), *options, command=ACCORD)
    assert run.status == -9, f"not killed at {call}"
    source, target = leg.urls(home)
    with closing(open_store(source)) as store:
        wanted, revision = held(store), revision_of(store)
    seen = look(home, target)
    assert seen in ("nothing", "unfinished") or seen == wanted, call
    again = strace.run(words, home.with_suffix(".log"), "-e", "trace=none", command=ACCORD)
    assert (again.status, again.complaints) == (0, ""), call
    assert look(home, target) == wanted, call
    with closing(open_store(source)) as store:
        assert (held(store), revision_of(store)) == (wanted, revision), call
    shutil.rmtree(home)


def look(home: Path, url: str) -> object:
    """What commands see of a copy."""
    if not is_there(url):
        return "nothing"
    try:
        with closing(open_in(Home(str(home)), Settings(str(home), "", {}, {"engine": url}))) as store:
            return held(store) or "nothing"
    except errors.MigrationUnfinished:
        return "unfinished"
