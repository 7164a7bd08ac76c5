"""Changes as they come: `head/s` as a stream of events, each of which holds one whole change.

What the stream did not tell, such as all before it began, is read from `changes`. Where there is no stream, `head/s` is
looked at now and then.
"""

import _thread
import os
from time import monotonic

from accord import errors, jsontext
from accord.store.contract import TRIM_EVERY, Change
from accord.store.engines.firebase import keys
from accord.store.engines.firebase.record import State, keys_in
from accord.store.remote.http import NoAnswer, NotSent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from accord.store.contract import Opened
    from accord.store.engines.firebase.rest import Rest
    from accord.store.remote.http import Stream

_SILENT_S = 75.0  # the database says that it is there every 30 seconds
_LOOK_S = 20.0  # to be sure, it is looked at so often though the stream tells nothing
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_PATIENCE_S = 30.0  # for so long nobody needs to know that the database does not answer
_MOST = TRIM_EVERY  # changes that are read at once


class Watch:
    def __init__(self, rest: "Rest", opened: "Opened", prefixes: "Sequence[str]", since: int, epoch: str) -> None:
        self.revision = since
        self._rest = rest
        self._opened = opened
        self._prefixes = tuple(prefixes)
        self._epoch = epoch
        self._position = since  # up to which changes were taken in
        self._ready: list[Change] = []  # newest first
        self._stream: Stream | None = None
        self._heard_at = 0.0
        self._looked_at = 0.0
        self._failures = 0
        self._failing_since: float | None = None
        self._in_use = _thread.allocate_lock()
        self._closing = _thread.allocate_lock()  # let go when the watch is closed
        self._closing.acquire()
        self._is_closed = False
        self._check(self._state())

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def next(self, timeout_s: float) -> Change | None:
        self._opened.check_process()
        deadline = monotonic() + timeout_s
        with self._in_use:
            is_looked = False
            while not self._is_closed:
                if self._ready:
                    change = self._ready.pop()
                    self.revision = change.revision if self._ready else self._position
                    return change
                left_s = deadline - monotonic()
                stream = self._stream
                if stream is not None and left_s > 0 and monotonic() - self._looked_at < _LOOK_S:
                    self._listen(stream, left_s)
                    is_looked = False
                elif is_looked and left_s <= 0:
                    return None
                else:
                    is_looked = self._look(left_s)
            return None

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._closing.release()
        stream = self._stream
        if stream is not None:
            stream.close()  # which wakes the one who listens

    # What the stream tells.

    def _listen(self, stream: "Stream", left_s: float) -> None:
        """One event, or a part of the time that is left."""
        try:
            line = stream.line(min(left_s, _LOOK_S))
            while line is not None:
                self._heard_at = monotonic()
                kind, _, text = line.partition(b": ")
                if kind == b"event" and text.strip() in (b"cancel", b"auth_revoked"):
                    raise NoAnswer("it ended the stream")
                if kind == b"data" and self._hear(text):
                    return
                line = stream.line(max(0.0, min(left_s, _LOOK_S)) if kind == b"event" else 0.0)
        except NoAnswer:
            self._end_stream()
        if monotonic() - self._heard_at > _SILENT_S:
            self._end_stream()

    def _hear(self, text: bytes) -> bool:
        """Take in what an event tells; whether there was something."""
        told: Any = jsontext.loads_quickly(text.strip())
        if not isinstance(told, dict):
            return False  # it says that it is there
        if told.get("path") == "/" and isinstance(told.get("data"), dict) and {"r", "k", "e"} <= told["data"].keys():
            self._take(State(told["data"]))
        else:
            self._take(self._state())
        return True

    def _open_stream(self) -> bool:
        try:
            stream = self._rest.stream("head/s", 5.0)
        except (NotSent, NoAnswer, errors.EngineUnreachable):
            return False
        self._stream = stream
        self._heard_at = monotonic()
        if self._is_closed:
            stream.close()
        return True

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    # What is looked up.

    def _look(self, left_s: float) -> bool:
        """Look at `head/s`, and begin to listen if there is time; False if it is to be looked at again."""
        try:
            self._take(self._state(max(0.5, min(left_s, 10.0))))
        except errors.EngineUnreachable:
            now = monotonic()
            self._failing_since = self._failing_since or now
            if now - self._failing_since > _PATIENCE_S or (left_s <= 0 and self._failing_since == now):
                raise
            self._pause(left_s)
            return True
        self._failing_since = None
        self._looked_at = monotonic()
        if left_s > 0 and not self._ready and self._stream is None and not self._is_closed:
            if self._open_stream():
                self._failures = 0
            else:
                self._pause(left_s)
        return True

    def _pause(self, left_s: float) -> None:
        self._failures += 1
        longest = min(_FIRST_PAUSE_S * (1 << min(self._failures, 10)), _LONGEST_PAUSE_S)
        pause_s = min(left_s, longest * (0.5 + int.from_bytes(os.urandom(2)) / 131070))
        if pause_s > 0 and self._closing.acquire(True, pause_s):
            self._closing.release()

    def _state(self, timeout_s: float = 30.0) -> State:
        node = self._rest.get("head/s", deadline=monotonic() + timeout_s).value
        return State(node)

    def _check(self, state: State) -> None:
        self._epoch = self._epoch or state.epoch
        if state.epoch != self._epoch or not state.floor <= self._position <= state.revision:
            raise errors.HistoryGone(since=self._position, oldest=state.floor)

    def _take(self, state: State) -> None:
        """Take in the changes up to this one, or as many as are needed until one is named."""
        if state.epoch == self._epoch and state.floor <= self._position and state.revision < self._position:
            return  # an event that came late
        self._check(state)
        while self._position < state.revision and not self._ready:
            self._take_page(state)

    def _take_page(self, state: State) -> None:
        found: list[tuple[int, tuple[tuple[str, str], ...]]] = []
        last = min(state.revision - 1, self._position + _MOST)
        if self._position < last:
            found = self._read(state, self._position + 1, last)
        if last == state.revision - 1:
            found.append((state.revision, state.keys))
        self._position = found[-1][0]
        for revision, touched in found:
            named = tuple([key for key in touched if key[0].startswith(self._prefixes)])
            if named:
                self._ready.append(Change(revision, named))
        self._ready.reverse()
        if not self._ready:
            self.revision = self._position

    def _read(self, state: State, first: int, last: int) -> "list[tuple[int, tuple[tuple[str, str], ...]]]":
        """All changes of these revisions, each of which is there unless it was forgotten just now."""
        found: dict[int, tuple[tuple[str, str], ...]] = {}
        at = first
        while at <= last:
            end = min(last, at - at % TRIM_EVERY + TRIM_EVERY - 1)
            bucket, _, low = keys.change_path(at).partition("/")
            high = keys.change_path(end).partition("/")[2]
            query = f"orderBy=%22%24key%22&startAt=%22{low}%22&endAt=%22{high}%22"
            nodes: Any = self._rest.get(f"data/{state.data}/changes/{bucket}", query=query).value or {}
            found |= {int(key[1:]): keys_in(node["k"]) for key, node in nodes.items()}
            at = end + 1
        if any(revision not in found for revision in range(first, last + 1)):
            self._check(self._state())
            raise errors.StoreDamaged(path=self._rest.shown, reason=f"changes from {first} to {last} are missing")
        return sorted(found.items())
