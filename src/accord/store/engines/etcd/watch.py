"""The changes of `log`, from a stream that is opened anew, at another member too, wherever it broke."""

from _thread import allocate_lock
from time import monotonic

from accord import errors, jsontext
from accord.store.contract import LOCK_WAIT_S, Change
from accord.store.engines.etcd import requests
from accord.store.engines.etcd.snapshot import Snapshot
from accord.store.remote.http import NoAnswer, NotSent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.engines.etcd import Etcd
    from accord.store.engines.etcd.requests import Message
    from accord.store.remote.http import Stream

_LOOK_S = 5.0  # a member may have been cut off and not know it
_LATE_S = 2.0  # after which a change that is known elsewhere is fetched there
_OPEN_S = 5.0
_LOOKING_S = 2.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class Watch:
    """One thread asks for the next change, and any may close it."""

    def __init__(self, store: "Etcd", prefixes: tuple[str, ...], since: int, epoch: str) -> None:
        self.revision = since
        self._store = store
        self._prefixes = prefixes
        self._closed = False
        self._stream: Stream | None = None
        self._seen = 0  # the revision of etcd up to which nothing was missed
        self._waiting: list[Message] = []  # events that came and were not given out yet
        self._lost_at: float | None = None  # since when nobody answers
        self._pauses = 0
        self._refused = False
        self._bell = allocate_lock()
        self._bell.acquire()
        with Snapshot(store) as now:
            self._home = now.home
            if (epoch and epoch != self._home.epoch) or not self._home.floor <= since <= now.revision:
                raise self._gone(self._home.floor)
            if since < now.revision:
                self._begin()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def next(self, timeout_s: float) -> Change | None:
        self._store.check_process()
        deadline = monotonic() + timeout_s
        while not self._closed:
            change = self._given()
            if change is not None:
                return change
            left_s = deadline - monotonic()
            try:
                if self._receive(max(0.0, min(left_s, _LOOK_S))):
                    continue
                newest = self._look()
                if newest <= self.revision and left_s <= 0:
                    return None
                if newest > self.revision and not self._receive(_LATE_S):
                    raise NoAnswer("a member does not send what others have")
            except (NotSent, NoAnswer, errors.EngineUnreachable) as error:
                self._drop()
                if self._closed or left_s <= 0:
                    return None
                self._bear(error, left_s)
        return None

    def close(self) -> None:
        self._closed = True
        stream = self._stream
        if stream is not None and not self._store.is_inherited():
            stream.close()
        if self._bell.locked():
            self._bell.release()

    def _begin(self) -> None:
        """There are changes already: if they are no longer kept, that is said now."""
        deadline = monotonic() + LOCK_WAIT_S
        while not self._waiting:
            try:
                self._receive(max(0.1, deadline - monotonic()))
            except (NotSent, NoAnswer) as error:
                self._drop()
                self._bear(error, deadline - monotonic())
                if monotonic() > deadline:
                    raise self._store.gateway.unreachable(str(error)) from None
            except BaseException:
                self.close()
                raise

    def _given(self) -> Change | None:
        """The next change of those that came."""
        while self._waiting:
            event = self._waiting.pop(0)
            keys: Any = jsontext.loads_own(requests.value_of(event["kv"])) if event.get("type") != "DELETE" else []
            if not keys:
                self._look_at_home()  # it was loaded, or begins anew
                continue
            self.revision = max(self.revision, self._home.revision(requests.mod_of(event["kv"])))
            wanted = tuple([(name, id) for name, id in keys if name.startswith(self._prefixes)])
            if wanted:
                return Change(self.revision, wanted)
        return None

    def _receive(self, timeout_s: float) -> bool:
        """Whether something came; whatever it was, somebody answers."""
        if self._stream is None:
            asked = {"key": requests.encoded(self._store.keys.log), "start_revision": self._next_mod()}
            self._stream = self._store.gateway.watch(asked, _OPEN_S)
            if self._closed:
                self._stream.close()
        line = self._stream.line(timeout_s)
        if line is None:
            return False
        found: Any = jsontext.loads_quickly(line)
        if "result" not in found:
            raise NoAnswer(str(found.get("error", {}).get("message", "the stream ends")))
        result = found["result"]
        if result.get("canceled"):
            self._read_cancelled(result)
        self._lost_at = None
        self._pauses = 0
        if result.get("events"):
            self._refused = False
            self._waiting += result["events"]
        return True

    def _read_cancelled(self, result: "Message") -> None:
        if "compact_revision" in result:
            # Others who share the cluster move its revision on, where nobody changes this store.
            if self._waiting or self._look() > self.revision:
                raise self._gone(max(0, self._home.revision(int(result["compact_revision"])) - 1))
            raise NoAnswer("what comes next is not kept any more")
        reason = str(result.get("cancel_reason", "the stream ends"))
        if "ermission" in reason:
            if self._refused:
                raise errors.EngineRefused(path=self._store.path, reason=reason)
            self._refused = True  # or the token is over
            self._store.gateway.forget_token()
        raise NoAnswer(reason)

    def _next_mod(self) -> int:
        return max(self._home.mod_of(self.revision), self._seen) + 1

    def _look(self) -> int:
        """The newest revision, as a majority knows it."""
        log = requests.range_of(self._store.keys.log, keys_only=True)
        answer = self._store.gateway.txn([self._home.is_same], [log], [], _LOOKING_S)
        if not answer.get("succeeded") or answer["header"]["cluster_id"] != self._home.cluster:
            self._look_at_home()
            return self.revision
        self._lost_at = None
        found = requests.found_in(answer["responses"][0])
        newest = self._home.revision(requests.mod_of(found[0])) if found else 0
        if newest <= self.revision:
            self._seen = int(answer["header"]["revision"])
        return newest

    def _look_at_home(self) -> None:
        home = self._store.learn_home()
        if home.epoch != self._home.epoch or home.floor > self.revision:
            raise self._gone(home.floor)
        if home.mod != self._home.mod and self.revision:
            raise self._gone(home.floor)
        self._home = home

    def _gone(self, oldest: int) -> errors.HistoryGone:
        return errors.HistoryGone(since=self.revision, oldest=oldest)

    def _drop(self) -> None:
        """What was received stays; the next stream begins after it."""
        stream, self._stream = self._stream, None
        if stream is not None:
            self._store.gateway.leave(stream)

    def _bear(self, error: Exception, left_s: float) -> None:
        """Wait a little, unless nobody has answered for so long that it must be said."""
        now = monotonic()
        self._lost_at = self._lost_at or now
        if now - self._lost_at > LOCK_WAIT_S:
            self._lost_at = None
            if isinstance(error, errors.EngineUnreachable):
                raise error
            raise self._store.gateway.unreachable(str(error)) from None
        pause_s = min(_FIRST_PAUSE_S * (1 << min(self._pauses, 10)), _LONGEST_PAUSE_S)
        self._pauses += 1
        if self._bell.acquire(True, max(0.0, min(pause_s, left_s))):
            self._bell.release()
