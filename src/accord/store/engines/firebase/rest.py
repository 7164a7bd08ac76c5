"""Requests to the database: asked again where that is safe, and told whether they may have been done."""

import os
import time
from time import monotonic
from urllib.parse import quote

from accord import errors, jsontext
from accord.store.remote.http import Client, Endpoint, NoAnswer, NotSent, NotTrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from accord.store.engines.firebase.place import Where
    from accord.store.remote.http import Answer, Stream

NULL_ETAG = "null_etag"  # of what is not there

PATIENCE_S = 30.0
_REACH_S = 5.0  # for so long it is tried whether somebody answers at all
_ATTEMPT_S = 20.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 3.0


class Ask:
    """A GET, or what is to be put there; both only under an ETag where that is given."""

    __slots__ = ("body", "etag", "method", "path", "query")

    def __init__(self, path: str, body: "bytes | None" = None, etag: str = "", query: str = "") -> None:
        self.path = path
        self.body = body
        self.etag = etag  # of a GET: what is known already, or "?" to be told it
        self.query = query
        self.method = "GET" if body is None else "PUT"


class Reply:
    __slots__ = ("etag", "is_lost", "status", "text")

    def __init__(self, status: int, text: bytes = b"", etag: str = "") -> None:
        self.status = status
        self.text = text
        self.etag = etag
        self.is_lost = not status  # it may have been done, now or later

    @property
    def is_done(self) -> bool:
        return self.status in (200, 204)

    @property
    def value(self) -> "Any":
        return jsontext.loads_quickly(self.text.strip())


class Rest:
    """Threads may share it."""

    def __init__(self, where: "Where") -> None:
        self.shown = where.shown
        self._where = where
        self._home = where.endpoint
        self._client = Client([where.endpoint])
        self._is_home = True
        self.heard_date: Callable[[str], None] = lambda text: None

    def get(self, path: str, etag: str = "", query: str = "", deadline: float | None = None) -> Reply:
        return self.ask([Ask(path, None, etag, query)], deadline)[0]

    def put(self, path: str, value: object, etag: str, deadline: float | None = None) -> Reply:
        return self.ask([Ask(path, json_bytes(value), etag)], deadline)[0]

    def ask(self, asks: "Sequence[Ask]", deadline: float | None = None) -> "list[Reply]":
        """The reply to each. What was not sent, or not taken, is asked again; reads also when nobody answered."""
        trial = _Trial(self, deadline if deadline is not None else monotonic() + PATIENCE_S)
        replies: list[Reply | None] = [None] * len(asks)
        waiting = [*range(len(asks))]
        while True:
            headers = self._headers(trial.takes_fresh_token())
            requests = [self._request(asks[place], headers) for place in waiting]
            answers = self._client.several(requests, max(0.05, min(_ATTEMPT_S, trial.left_s)))
            for place, answer in zip(waiting, answers, strict=True):
                replies[place] = trial.judge(asks[place], answer)
            waiting = [place for place in waiting if replies[place] is None]
            if not waiting:
                return [reply for reply in replies if reply is not None]
            trial.pause()

    def patch(self, path: str, text: bytes, deadline: float) -> bool:
        """Whether it was done; if not, it may be, now or later."""
        trial = _Trial(self, deadline)
        while True:
            target = self._target(path, "print=silent")
            request = ("PATCH", target, text, self._headers(trial.takes_fresh_token()))
            ask = Ask(path, text)
            reply = trial.judge(ask, self._client.several([request], max(0.05, min(_ATTEMPT_S, trial.left_s)))[0])
            if reply is not None:
                return reply.is_done
            trial.pause()

    def stream(self, path: str, timeout_s: float) -> "Stream":
        """Events of a place; raises `NotSent` or `NoAnswer`, and an error when it is refused."""
        trial = _Trial(self, monotonic() + timeout_s)
        while True:
            headers = {**self._headers(trial.takes_fresh_token()), "Accept": "text/event-stream"}
            stream = self._client.stream("GET", self._target(path), b"", headers, max(0.05, trial.left_s))
            if stream.status == 200:
                return stream
            text = b"" if stream.status == 307 else stream.rest(2.0)
            stream.close()
            reply = trial.judge_status(stream.status, stream.headers, text)
            if reply is not None:
                raise NoAnswer(f"it answers {stream.status}")
            trial.pause()

    def close(self) -> None:
        self._client.close()
        self._where.account.close()

    def can_refresh(self) -> bool:
        return self._where.account.can_refresh

    def redirect(self, location: str) -> None:
        """Ask another host of the same service from now on."""
        scheme, _, rest = location.partition("://")
        host = rest.partition("/")[0]
        name, colon, port = host.partition(":")
        secure = scheme == "https"
        known = self._home.host
        is_same = name == known or name.split(".")[-2:] == known.split(".")[-2:] != []
        if not name or (colon and not port.isdecimal()) or not is_same or (self._home.secure and not secure):
            raise errors.EngineRefused(path=self.shown, reason=f"it sends us elsewhere, to {host}")
        self._switch(Endpoint(name, int(port) if colon else 443 if secure else 80, secure))
        self._is_home = False

    def back_home(self) -> None:
        """Where we were sent, nobody answers."""
        if not self._is_home:
            self._switch(self._home)
            self._is_home = True

    def _switch(self, endpoint: Endpoint) -> None:
        """What is under way with the old client ends its connections with it."""
        client, self._client = self._client, Client([endpoint])
        client.close()

    def _request(self, ask: Ask, headers: "dict[str, str]") -> "tuple[str, str, bytes, dict[str, str]]":
        if ask.method == "GET":
            if ask.etag:
                headers = {**headers, "X-Firebase-ETag": "true"}
                if ask.etag != "?":
                    headers["If-None-Match"] = ask.etag
            return "GET", self._target(ask.path, ask.query), b"", headers
        if ask.etag:
            headers = {**headers, "if-match": ask.etag}
        return "PUT", self._target(ask.path, "print=silent"), ask.body or b"null", headers

    def _headers(self, fresh_token: bool) -> "dict[str, str]":
        token = self._where.account.token(fresh_token)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _target(self, path: str, query: str = "") -> str:
        options = [query] if query else []
        if self._where.namespace:
            options.append(f"ns={self._where.namespace}")
        if self._where.uid:
            options.append("auth_variable_override=" + quote(jsontext.dumps({"uid": self._where.uid})))
        return f"/{self._where.path}/{path}.json" + ("?" + "&".join(options) if options else "")


class _Trial:
    """What one request, or several together, may still try."""

    def __init__(self, rest: Rest, deadline: float) -> None:
        self._rest = rest
        self._began = monotonic()
        self._deadline = deadline
        self._tries = 0
        self._redirects = 0
        self._reason = ""
        self._is_reached = False
        self._is_pressing = False  # what was wrong is mended: ask again at once
        self._wait_s = 0.0
        self._wants_token = False
        self._had_token = False

    def takes_fresh_token(self) -> bool:
        wants, self._wants_token = self._wants_token, False
        return wants

    @property
    def left_s(self) -> float:
        return self._deadline - monotonic()

    def judge(self, ask: Ask, answer: "Answer | NotSent | NoAnswer") -> "Reply | None":
        """The reply, or None if it is to be asked again."""
        if isinstance(answer, NotTrusted):
            raise errors.EngineRefused(path=self._rest.shown, reason=str(answer))
        if isinstance(answer, NotSent | NoAnswer):
            self._reason = str(answer)
            self._is_reached |= isinstance(answer, NoAnswer)
            return None if isinstance(answer, NotSent) or ask.method == "GET" else Reply(0)
        if "date" in answer.headers:
            self._rest.heard_date(answer.headers["date"])
        if answer.status in (200, 204, 304, 412):
            return Reply(answer.status, answer.body, answer.headers.get("etag", ""))
        reply = self.judge_status(answer.status, answer.headers, answer.body)
        return None if reply is not None and ask.method == "GET" else reply

    def judge_status(self, status: int, headers: "dict[str, str]", body: bytes) -> "Reply | None":
        """Of an answer that is no success: None if nothing was done and it is to be asked again."""
        self._is_reached = True
        self._reason = f"{status} {_message(body)}"
        shown = self._rest.shown
        if status == 307 and self._redirects < 5:
            self._redirects += 1
            self._rest.redirect(headers.get("location", ""))
            self._is_pressing = True
            return None
        if status in (401, 403):
            if self._wants_token:
                return None  # so it is with all that were asked together
            if not self._had_token and self._rest.can_refresh():
                self._wants_token = self._had_token = self._is_pressing = True
                return None
            raise errors.EngineRefused(path=shown, reason=self._reason)
        if status in (429, 503):
            after = headers.get("retry-after", "")
            self._wait_s = min(float(after) if after.isdecimal() else 0.0, 10.0)
            return None
        if status in (402, 507):
            raise errors.StorageFull(path=shown)
        if status >= 500:
            return Reply(0)
        raise errors.EngineRefused(path=shown, reason=self._reason)

    def pause(self) -> None:
        """Wait before it is asked again, twice as long each time; raises when there was enough of that."""
        patience_s = PATIENCE_S if self._is_reached else _REACH_S
        if self.left_s <= 0 or monotonic() - self._began > patience_s:
            raise errors.EngineUnreachable(path=self._rest.shown, reason=self._reason)
        if self._is_pressing:
            self._is_pressing = False
            return
        if not self._is_reached:
            self._rest.back_home()
        longest = min(_FIRST_PAUSE_S * (1 << min(self._tries, 10)), _LONGEST_PAUSE_S)
        pause_s = max(self._wait_s, longest * (0.5 + int.from_bytes(os.urandom(2)) / 131070))
        time.sleep(max(0.0, min(pause_s, self.left_s)))
        self._tries += 1


def json_bytes(value: object) -> bytes:
    return jsontext.dumps(value).encode()


def _message(body: bytes) -> str:
    """What the database says, in one short line."""
    try:
        found: Any = jsontext.loads(body[:2000])
        text = str(found["error"])
    except (errors.InvalidJson, KeyError, TypeError):
        text = body[:200].decode(errors="replace")
    return " ".join(text.split())[:200]
