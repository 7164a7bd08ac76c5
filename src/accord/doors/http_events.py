"""Server-sent events: what is pushed to those who listen over HTTP.

Each has an `id:`, which is a place in what happens, or in the inbox. Who comes back with it, as `Last-Event-ID` or
`?since=`, goes on after it, with nothing missed and nothing twice.
"""

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from accord import errors, jsontext
from accord.doors.methods import still_there
from accord.hub.core import Hub
from accord.hub.feeds import EventFeed, Feed, MailFeed
from accord.hub.session import Session
from accord.model import read_identity
from accord.services import events
from accord.store.protocols import Store

_RETRY_MS = 1000  # after which a browser comes back
_LONGEST_NUMBER = 18
_SEE = "GET /events in docs/rpc.md"
_ENDS = ("listen.ended", "hub.stopping")

Push = Callable[[str, dict[str, Any]], bool]


class Events(EventFeed):
    """What happens. Where one commit made several events, `EPOCH.REVISION:N` is the place after the Nth of them."""

    def __init__(self, store: Store, since: str, kinds: list[str], push: Push, check: Callable[[], None]) -> None:
        before, self._within, self._had = _read_place(since) if since else ("", "", 0)
        super().__init__(store, before, kinds, push, check)
        self.place = since or self.since_revision  # after all that was read

    def read(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for revision, group in groupby(super().read(), lambda event: event["revision"]):
            told = list(group)
            ids = [f"{revision}:{number}" for number in range(1, len(told))] + [revision]
            had = self._had if revision == self._within else 0
            found += [{"id": id, "event": event} for id, event in zip(ids, told, strict=True)][had:]
        self.place = self._reader.since
        return found


class Stream(Response):
    """An answer that goes on until the caller is gone or the hub stops. Nothing is read for who does not take it."""

    feed: Feed

    def __init__(self, hub: Hub, closed: "Callable[[Stream], None]") -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self._hub = hub
        self._closed = closed
        self._waiting: list[bytes] = []
        self._woken = asyncio.Event()
        self._is_ending = False

    def push(self, method: str, params: dict[str, Any]) -> bool:
        """Take something to send. More is only wanted when it has gone out."""
        if method != "hub.alive":
            self._waiting.append(_block(method, params))
        elif not self._waiting:
            self._waiting.append(b": alive\n" + self._place())
        self._is_ending = self._is_ending or method in _ENDS
        self._woken.set()
        return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.ensure_future(self._watch(receive))
        first = f"retry: {_RETRY_MS}\n".encode() + self._place()
        try:
            self._hub.feeds.add(self.feed)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await _send_part(send, first)
            await self._send_all(send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            watching.cancel()
            self._hub.feeds.remove(self.feed)
            self._closed(self)

    async def _send_all(self, send: Send) -> None:
        while self._waiting or not self._is_ending:
            await self._woken.wait()
            self._woken.clear()
            waiting, self._waiting = self._waiting, []
            for part in waiting:
                await _send_part(send, part)  # which waits for a caller that is behind
            self._hub.feeds.unblock(self.feed)

    async def _watch(self, receive: Receive) -> None:
        """Wait until the caller is gone."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._is_ending = True
        self._waiting.clear()
        self._woken.set()

    def _place(self) -> bytes:
        """Where the caller is by now, though nothing came that it wanted; it keeps that without taking it for more."""
        is_known = isinstance(self.feed, Events) and not self.feed.reading
        return f"id: {self.feed.place}\n\n".encode() if is_known else b"\n"  # type: ignore[attr-defined]


def feed_for(hub: Hub, session: Session, asked: QueryParams, last_id: str, push: Push) -> Feed:
    """What a caller asks to be told; in a thread."""
    for name in asked.keys() - {"identity", "since", "kinds"}:
        raise errors.Usage(reason=f"There is no parameter {name[:100]!r}", see=_SEE)
    since = last_id or asked.get("since", "")
    if "identity" in asked:
        identity = read_identity(asked["identity"])
        context = hub.context(session, writing=False)
        context.check_reader(identity, peek=True)
        return MailFeed(context, identity, _number(since) if since else 0, push, session.pid)
    try:
        kinds = events.read_kinds(asked.getlist("kinds"))
    except ValueError as error:
        raise errors.Usage(reason=f"kinds {error}", see=_SEE) from None
    return Events(hub.store, since, kinds, push, still_there(hub, session))


async def _send_part(send: Send, part: bytes) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": True})


def _block(method: str, params: dict[str, Any]) -> bytes:
    """Something that is pushed, as a browser reads it."""
    id = params.get("number", "")
    if method == EventFeed.method:
        id, method, params = params["id"], params["event"]["event"], params["event"]
    lines = f"id: {id}\n" if id else ""
    return f"{lines}event: {method}\ndata: {jsontext.dumps(params)}\n\n".encode()


def _read_place(text: str) -> tuple[str, str, int]:
    """The revision to read on from; and, of which revision, how many events are known."""
    epoch, _, rest = text.rpartition(".")
    revision, several, had = rest.partition(":")
    number = _number(revision)
    if not 0 < len(epoch) <= 100 or not epoch.isascii():
        raise errors.Usage(reason=f"{text[:100]!r} is no place in what happens", see=_SEE)
    if not several:
        return text, "", 0
    return f"{epoch}.{max(number - 1, 0)}", f"{epoch}.{number}", _number(had)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > _LONGEST_NUMBER:
        raise errors.Usage(reason=f"{text[:100]!r} is no place to go on from", see=_SEE)
    return int(text)
