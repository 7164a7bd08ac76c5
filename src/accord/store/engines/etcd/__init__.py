"""etcd, 3.4 and later, by its JSON gateway: `etcd://HOST,HOST,HOST/PREFIX`, the engine for several machines.

A commit is one txn: it compares what was read, and writes all or nothing. Whatever is read is linearizable, so a member
without a majority answers nothing.
"""

import time

from accord.store.contract import LOCK_WAIT_S, Instant, Opened, check_commit
from accord.store.engines.etcd import home, loading
from accord.store.engines.etcd.commits import Commit
from accord.store.engines.etcd.gateway import Gateway
from accord.store.engines.etcd.requests import Keys
from accord.store.engines.etcd.snapshot import Snapshot
from accord.store.engines.etcd.watch import Watch
from accord.store.remote.place import Place, with_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store import protocols
    from accord.store.contract import Check, Committed, Content, Write
    from accord.store.engines.etcd.home import Home

_OPTIONS = {"ca": "", "cert": "", "key": "", "tls": "", "clock_skew_s": "1"}
_PREFIX = "accord"
_MOST_LASTS = 10_000  # last numbers that are remembered


def open_store(place: str) -> "protocols.Store":
    return Etcd(Place("etcd", place, _OPTIONS))


def beside(place: str, name: str) -> str:
    """Below this one's prefix, where a user's rights end, and where nothing of a store is."""
    return with_path(place, f"{Place('etcd', place, _OPTIONS).path or _PREFIX}/{name}")


def remove(place: str) -> None:
    store = Etcd(Place("etcd", place, _OPTIONS))
    try:
        loading.remove(store)
    finally:
        store.close()


class Etcd:
    """Optimistic: snapshots hold no lock, and `exclusive` does not exist. Nothing is asked before it is needed."""

    durability = "power"  # etcd flushes its log before it answers
    patience_s = LOCK_WAIT_S

    def __init__(self, place: Place) -> None:
        self.path = place.shown
        self.keys = Keys(place.path or _PREFIX)
        self.gateway = Gateway(place)
        self.known_home: Home | None = None
        self._skew_s = _seconds(place, "clock_skew_s")
        self._lasts: dict[str, int] = {}
        self._rivals: dict[str, int] = {}
        self._opened = Opened(place.shown)

    def snapshot(self) -> "protocols.Snapshot":
        self._opened.check()
        return Snapshot(self)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "protocols.Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        check_commit(checks, writes)
        self._opened.check()
        ours = snapshot if isinstance(snapshot, Snapshot) else None
        return Commit(self, checks, writes, ours, timeout_s).run()

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> "protocols.Watch":
        self._opened.check()
        return Watch(self, tuple(prefixes), since, epoch)

    @property
    def server(self) -> str:
        status, _ = self.gateway.status()
        return f"etcd {status['version']}, whose database has {int(status['dbSize']) / 1e6:.1f} MB"

    def server_clock_s(self) -> float:
        return self.gateway.status()[1]

    def now(self) -> Instant:
        self._opened.check()
        return self.now_in(self.home().epoch)

    def now_in(self, epoch: str) -> Instant:
        """By the clock of this machine, which may differ from those of others who share the store."""
        return Instant(epoch, time.time(), self._skew_s)

    def sync(self) -> None:
        """Whatever can be read is in the logs of a majority."""
        self._opened.check()

    def load(self, contents: "Iterable[Content]") -> None:
        self._opened.check()
        loading.load(self, contents)

    def clear(self, begun: "Home") -> None:
        loading.clear(self, begun)

    def close(self) -> None:
        self._opened.closed = True
        self.gateway.close()

    # For the parts of this engine.

    def check_process(self) -> None:
        self._opened.check_process()

    def is_inherited(self) -> bool:
        return self._opened.is_inherited()

    def home(self) -> "Home":
        return self.known_home or self.learn_home()

    def learn_home(self) -> "Home":
        found = home.learn(self.gateway, self.keys)
        known = self.known_home
        if known is None or (known.guard, known.cluster) != (found.guard, found.cluster):
            self._lasts = {}  # of another history
        self.known_home = found
        return found

    def forget_home(self) -> None:
        self.known_home = None
        self._lasts = {}

    def likely_last(self, collection: str) -> int | None:
        """The last number that was seen, which others may have passed."""
        return self._lasts.get(collection)

    def remember_last(self, collection: str, last: int) -> None:
        if len(self._lasts) >= _MOST_LASTS:
            self._lasts = {}
        self._lasts[collection] = max(last, self._lasts.get(collection, 0))

    def rivals(self, collection: str) -> int:
        """How many appends of others came in between lately."""
        return self._rivals.get(collection, 0)

    def remember_rivals(self, collection: str, count: int) -> None:
        count = max(count, self._rivals.pop(collection, 0) // 2)
        if count and len(self._rivals) < _MOST_LASTS:
            self._rivals[collection] = count


def _seconds(place: Place, option: str) -> float:
    try:
        seconds = float(place.options[option])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 3600:
        raise place.wrong(f"{option} is a number of seconds")
    return seconds
