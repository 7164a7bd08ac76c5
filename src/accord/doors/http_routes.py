"""What the HTTP door answers, and whom.

POST /rpc       JSON-RPC 2.0: the operations
GET /events     what happens, or with ?identity=NAME an agent's mail, as it comes (http_events.py)
GET /healthz    whether the hub works
GET /metrics    figures for Prometheus, where the settings want them (metrics.py)
/mcp            MCP over streamable HTTP, for agents (mcp/)

Any page in a browser can send requests to this machine. So whatever the route, what names another host, or comes from
a page of another origin, is refused before anything else is looked at; a token is needed besides, in a header that no
page can set without asking first.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from accord import __version__, errors, jsontext
from accord.doors import metrics
from accord.doors.http_events import Stream, feed_for
from accord.doors.mcp import door as mcp
from accord.doors.methods import Connection
from accord.doors.rpc import MOST_BYTES
from accord.errors.table import to_json
from accord.hub.core import Hub
from accord.hub.session import Session
from accord.services import agents

MOST_STREAMS = 200  # fewer than connections, so that there is always room to ask
MOST_MCP = 200  # requests of MCP, of which many are streams
HEALTH_WITHIN_S = 5.0

# What belongs to a connection that lasts.
_NOT_HERE = {
    "session.open": " over HTTP: each request shows its token in a header",
    "mail.listen": " over HTTP: ask for GET /events?identity=NAME, or connect by the unix socket or ZeroMQ",
    "events.listen": " over HTTP: ask for GET /events, or connect by the unix socket or ZeroMQ",
    "listen.stop": " over HTTP, where closing GET /events does that",
}


class Routes:
    def __init__(self, hub: Hub, port: int) -> None:
        self.refused = 0  # requests, since the last sweep
        self.malformed = 0  # messages that were no JSON-RPC, since then
        self._hub = hub
        self._port = port
        self._calls: set[Connection] = set()
        self._streams: set[Stream] = set()
        self._health = Health(hub)

    def application(self) -> Starlette:
        app = Starlette(
            routes=[
                Route("/rpc", self._rpc, methods=["POST"]),
                Route("/events", self._events, methods=["GET"]),
                Route("/healthz", self._healthz, methods=["GET"]),
                Route("/metrics", self._metrics, methods=["GET"]),
                Route("/mcp", _Mcp(self._hub), methods=["GET", "POST", "DELETE"]),
            ],
            middleware=[Middleware(Guard, routes=self, hub=self._hub, port=self._port)],
            exception_handlers={
                errors.AccordError: _refused,
                HTTPException: _not_there,
                Exception: self._failed,
            },
        )
        app.router.redirect_slashes = False
        return app

    def sweep(self, now: float) -> None:
        for connection in list(self._calls):
            connection.peer.sweep(now)

    async def _rpc(self, request: Request) -> Response:
        if not _is_json(request):
            return refusal(errors.InvalidRequest(reason="the Content-Type is not application/json"), 415)
        try:
            body = await _read(request)
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads
        if body is None:
            return refusal(errors.InvalidRequest(reason=f"a body of more than {MOST_BYTES} bytes"), 413)
        exchange = Exchange(self._hub, request.scope["session"])
        self._calls.add(exchange.connection)
        try:
            text = await exchange.answer(body, request.receive)
        finally:
            self._calls.discard(exchange.connection)
            exchange.connection.close()
            self.malformed += exchange.connection.peer.malformed
        return _json(text) if text else Response(status_code=204)

    async def _events(self, request: Request) -> Response:
        if request.method != "GET":
            raise HTTPException(405)
        if len(self._streams) >= MOST_STREAMS:
            raise errors.TooBusy(most=MOST_STREAMS, what="streams of events")
        stream = Stream(self._hub, self._streams.discard)
        self._streams.add(stream)
        session = request.scope["session"]
        last_id = request.headers.get("last-event-id", "")
        try:
            stream.feed = await in_thread(
                self._hub, lambda: feed_for(self._hub, session, request.query_params, last_id, stream.push)
            )
        except BaseException:
            self._streams.discard(stream)
            raise
        return stream

    async def _healthz(self, request: Request) -> Response:
        """Whether the store can be read; more is only for those with a token."""
        up = await self._health.is_up()
        shown: dict[str, Any] = {"status": "up" if up else "down"}
        if request.scope["session"] is not None:
            statistics = self._hub.statistics()
            shown |= {"version": __version__, "uptime_s": statistics.pop("uptime_s"), "counts": statistics}
        return _json(jsontext.dumps(shown), 200 if up else 503)

    async def _metrics(self, request: Request) -> Response:
        if not self._hub.settings["metrics"]:
            off = " unless the setting metrics is true (accord.yml, then accord hub restart)"
            return refusal(errors.MethodNotFound(method="/metrics", near=off), 404)
        statistics = self._hub.statistics()
        text = await in_thread(self._hub, lambda: metrics.exposition(statistics))
        return Response(text, media_type=metrics.CONTENT_TYPE)

    async def _failed(self, request: Request, error: Exception) -> Response:
        self._hub.failed("http", error)
        return refusal(errors.AccordError())


class Guard:
    """Lets in who asks for this host, from no page of another, and shows a token. `/healthz` needs none."""

    def __init__(self, app: ASGIApp, routes: Routes, hub: Hub, port: int) -> None:
        self._app = app
        self._routes = routes
        self._hub = hub
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        self._hub.count("http_requests")
        response = self._foreign(request)
        if response is None:
            try:
                scope["session"] = await self._session(request)
            except errors.AccordError as error:
                response = refusal(error)
        if response is None:
            await self._app(scope, receive, send)
        else:
            self._routes.refused += 1
            await response(scope, receive, send)

    def _foreign(self, request: Request) -> Response | None:
        """The answer to what a browser sends for a page of another origin, or under a name that was pointed here."""
        header = request.headers.getlist
        host = header("host")
        if len(host) != 1 or host[0].lower() not in self._hosts:
            return refusal(errors.AccessDenied(reason="another host is meant"), 421)
        if not self._origins.issuperset(header("origin")):
            return refusal(errors.AccessDenied(reason="a page of another origin asks"))
        if not {"same-origin", "none"}.issuperset(header("sec-fetch-site")):
            return refusal(errors.AccessDenied(reason="a page of another site asks"))
        return None

    async def _session(self, request: Request) -> Session | None:
        shown = request.headers.getlist("authorization")
        if not shown and request.scope["path"] == "/healthz":
            return None
        scheme, _, token = (shown[0] if len(shown) == 1 else "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise errors.NotAuthenticated()
        agent = request.headers.get("accord-agent", "")
        session = self._hub.session()
        await in_thread(self._hub, lambda: _show(self._hub, session, agent, token.strip()))
        return session


class _Mcp:
    """What answers /mcp, as it likes: with one answer or a stream of them."""

    def __init__(self, hub: Hub) -> None:
        self._mcp = mcp.of(hub)
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._open >= MOST_MCP:
            raise errors.TooBusy(most=MOST_MCP, what="requests of MCP")
        self._open += 1
        try:
            await self._mcp.http(scope, receive, send)
        finally:
            self._open -= 1


class Exchange:
    """One POST: a message, and the answer to it."""

    def __init__(self, hub: Hub, session: Session) -> None:
        self.connection = Connection(hub, self._send, self._answered, session=session)
        for method in _NOT_HERE:
            del self.connection.own[method]
        self.connection.not_here = _NOT_HERE
        self._text: asyncio.Future[str] = hub.loop.create_future()
        self._is_taken = False

    async def answer(self, body: bytes, receive: Receive) -> str:
        """The answer; "" when all were notifications, which are done, or when the caller is gone."""
        self.connection.peer.receive(body)
        self._is_taken = True
        self._answered()
        waiting = asyncio.ensure_future(_disconnect(receive))
        waiting.add_done_callback(lambda done: self._send(""))
        try:
            return await self._text
        finally:
            waiting.cancel()

    def _send(self, text: str) -> None:
        if not self._text.done():
            self._text.set_result(text)

    def _answered(self) -> None:
        # Before the message is taken whole there may be no open call, and still more to come.
        if self._is_taken and not self.connection.peer.open_calls:
            self._send("")


class Health:
    """Whether the store can be read. Of any number who ask at once only one looks, since anybody may ask."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._looking: asyncio.Future[bool] | None = None

    async def is_up(self) -> bool:
        if self._looking is None or self._looking.done():
            self._looking = in_thread(self._hub, self._look)
        done, _ = await asyncio.wait([self._looking], timeout=HEALTH_WITHIN_S)
        return bool(done) and self._looking.result()

    def _look(self) -> bool:
        try:
            with self._hub.store.snapshot() as snapshot:
                snapshot.list(agents.AGENTS, "", 1)
                return True
        except Exception as error:
            self._hub.log.error("unhealthy", kind=type(error).__name__)
            return False


def in_thread(hub: Hub, work: Callable[[], Any]) -> "asyncio.Future[Any]":
    """What some work that may block returns."""
    future: asyncio.Future[Any] = hub.loop.create_future()

    def done(result: Any, error: BaseException | None) -> None:
        if future.done():
            return  # nobody waits any more
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    hub.run_in_thread(work, done)
    return future


def refusal(error: errors.AccordError, status: int = 0) -> Response:
    """An error, as the command line shows it to programs."""
    found: Any = to_json(error)
    code, details = found["data"].values()
    shown = {"status": "error", "error_code": code, "error_message": found["message"], "details": details}
    response = _json(jsontext.dumps(shown), status or error.http)
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _json(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="application/json")


async def _refused(request: Request, error: Any) -> Response:
    return refusal(error)


async def _not_there(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        response = refusal(errors.InvalidRequest(reason="this path has another HTTP method"), 405)
    else:
        response = refusal(errors.MethodNotFound(method=request.scope["path"][:100], near=""), error.status_code)
    response.headers.update(error.headers or {})
    return response


def _is_json(request: Request) -> bool:
    kinds = request.headers.getlist("content-type")
    return [kind.partition(";")[0].strip().lower() for kind in kinds] == ["application/json"]


async def _read(request: Request) -> bytes | None:
    """The body; None as soon as it is too long."""
    if int(request.headers.get("content-length", "0")) > MOST_BYTES:
        return None
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)


async def _disconnect(receive: Receive) -> None:
    """Wait until the caller is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _show(hub: Hub, session: Session, agent: str, token: str) -> None:
    """Let the session be whose token this is; in a thread, since the token is looked up."""
    try:
        if not agent:
            session.open(operator=token)
            return
        session.open(agent=agent, token=token)
        is_known = agents.holds(hub.store, agents.Actor(session.agent, agents.hash_token(token)))
    except (errors.NotPermitted, errors.InvalidIdentity):
        is_known = False
    if not is_known and agent:
        raise errors.AccessDenied(reason=f"this is not the token of {agent[:100]}")
    if not is_known:
        name = "with an agent's goes its name, as `Accord-Agent: NAME`"
        raise errors.AccessDenied(reason=f"this is not the operator's token, and {name}")
