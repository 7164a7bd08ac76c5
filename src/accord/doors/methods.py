"""What a caller may ask for over any door: every operation, and what belongs to its connection."""

import time
from collections.abc import Callable
from typing import Any

from accord import errors, operations
from accord.cli.words import near
from accord.doors.rpc import Call, Peer
from accord.hub.core import REQUEST_S, Hub, Request
from accord.hub.feeds import PASSING, EventFeed, Feed, MailFeed
from accord.hub.session import Session
from accord.model import read_identity
from accord.operations.context import Context
from accord.operations.kinds import READERS
from accord.services import events
from accord.services.agents import hash_token

MOST_FEEDS = 100  # of one connection


class Connection:
    """One caller, connected by whatever door."""

    def __init__(
        self,
        hub: Hub,
        send_text: Callable[[str], None],
        answered: Callable[[], None],
        session: Session | None = None,
    ) -> None:
        self.hub = hub
        self.session = session or hub.session()
        self.peer = Peer(self._serve, send_text, lambda call: answered(), hub.failed)
        self.own: dict[str, Callable[[Call, dict[str, Any]], None]] = {
            "session.open": self._open,
            "mail.listen": self._listen,
            "events.listen": self._listen_to_events,
            "listen.stop": self._stop_listening,
            "hub.listeners": lambda call, params: call.answer(hub.listeners()),
            "hub.statistics": lambda call, params: call.answer(hub.statistics()),
            "hub.ping": lambda call, params: call.answer({}),
        }
        self.not_here: dict[str, str] = {}  # methods of other doors, with what to say of them
        self.feeds: list[Feed] = []
        self.at_end: list[Callable[[], object]] = []  # what is to be done when the caller is gone
        self.reading = 0  # calls that only read, and whose answers may be large
        self.can_take: Callable[[], bool] = lambda: True  # whether what is pushed goes out, or piles up
        self._enter()

    def close(self) -> None:
        self.session.end()
        self._end_feeds()
        for end in self.at_end:
            end()
        self.peer.gone()

    def unblock(self) -> None:
        """What was pushed has gone out."""
        for feed in self.feeds:
            self.hub.feeds.unblock(feed)

    def _enter(self) -> None:
        self._reading = self.hub.context(self.session, writing=False)
        self._writing = self.hub.context(self.session, writing=True)

    def _serve(self, call: Call) -> None:
        if self.hub.stopping.is_set():
            return  # it is not accepted any more, and the connection will be closed
        self.hub.count("requests")
        own = self.own.get(call.method)
        if own is not None:
            own(call, _named(call, ()))
            return
        group, _, word = call.method.partition(".")
        if word not in operations.NAMES.get(group, ()):
            raise errors.MethodNotFound(
                method=call.method[:100], near=self.not_here.get(call.method) or self._near(call)
            )
        function: Any = operations.find(call.method)
        if function.here:
            raise errors.MethodNotFound(method=call.method, near=" in a hub: only a process of one's own can do that")
        params = _named(call, tuple(operations.parameters(function)))
        wait_s = wait_of(function, params)
        call.limit(REQUEST_S + wait_s, time.monotonic())
        context = self._context(function.changes and not function.beyond and not wait_s, call.request)
        reads = not function.changes and not wait_s
        self.reading += reads
        self.hub.call(Request(context, call.method, params, call, self._have_read if reads else _answer), wait_s > 0)

    def _near(self, call: Call) -> str:
        there = [f"{group}.{word}" for group, words in operations.NAMES.items() for word in words]
        return near(call.method[:100], [*there, *self.own])

    def _have_read(self, request: Request) -> None:
        self.reading -= 1
        _answer(request)

    def _context(self, writing: bool, request: str) -> Context:
        if request:
            context = self.hub.context(self.session.renewed(request), writing)
            context.is_gone = self._reading.is_gone
            return context
        context = self._writing if writing else self._reading
        context.settings = self.hub.settings  # which may have been reloaded
        return context

    def _open(self, call: Call, params: dict[str, Any]) -> None:
        """Show who it is."""
        engine = _text(call, params, "engine")
        if engine and engine != hash_token(self.hub.engine):
            raise errors.GoLocal(reason="it serves another store")
        shown = {name: _text(call, params, name) for name in ("agent", "token", "operator", "purpose")}
        session = self.session.anew()
        session.open(**shown)
        before, self.session = self.session, session  # already for what follows on this connection
        self._enter()
        context = self._reading
        opened = {"agent": session.agent, "right": context.right}
        if not shown["agent"] or not shown["token"]:
            call.answer(opened)
            return

        def refused() -> None:
            if self.session is session:
                self.session = before
                self._enter()

        self._check(call, context, session.agent, lambda: call.answer(opened), refused)

    def _listen(self, call: Call, params: dict[str, Any]) -> None:
        """Push somebody's unread mail, now and from now on."""
        identity = read_identity(_text(call, params, "identity"))
        after = params.get("after") or 0
        if not isinstance(after, int):
            raise errors.Usage(reason="after is no number", see=_page(call))
        context = self.hub.context(self.session, writing=False)
        feed = MailFeed(context, identity, after, self._push, self.session.pid)
        self._keep(feed)

        def allowed() -> None:
            self._begin(feed)
            call.answer({"identity": identity})

        self._check(call, context, identity, allowed, lambda: self.hub.feeds.remove(feed))

    def _listen_to_events(self, call: Call, params: dict[str, Any]) -> None:
        """Push what happens, from a revision on or from now on."""
        try:
            kinds = events.read_kinds(params.get("kinds") or [])
        except ValueError as error:
            raise errors.Usage(reason=f"kinds {error}", see=_page(call)) from None
        feed = EventFeed(
            self.hub.store, _text(call, params, "since"), kinds, self._push, still_there(self.hub, self.session)
        )
        self._keep(feed)
        self._begin(feed)
        call.answer({"since": feed.since_revision})

    def _stop_listening(self, call: Call, params: dict[str, Any]) -> None:
        self._end_feeds()
        call.answer({})

    def _check(
        self, call: Call, context: Context, name: str, good: Callable[[], None], bad: Callable[[], None]
    ) -> None:
        """Whether the caller may act as somebody, in a thread; what keeps that from being known passes."""

        def done(result: None, error: BaseException | None) -> None:
            try:
                told = None if error is None else self.hub.told(call.method, error)
                if told is not None and not isinstance(told, PASSING):
                    raise told
                good()
            except errors.AccordError as failure:
                bad()
                call.fail(failure)

        self.hub.run_in_thread(lambda: context.check_reader(name, peek=True), done)

    def _keep(self, feed: Feed) -> None:
        self.feeds = [there for there in self.feeds if not there.ended]
        if len(self.feeds) >= MOST_FEEDS:
            raise errors.TooBusy(most=MOST_FEEDS, what="listeners on one connection")
        self.feeds.append(feed)

    def _begin(self, feed: Feed) -> None:
        if not feed.ended:  # the caller may have gone, or changed its mind
            self.hub.feeds.add(feed)

    def _end_feeds(self) -> None:
        for feed in self.feeds:
            self.hub.feeds.remove(feed)
        self.feeds.clear()

    def _push(self, method: str, params: dict[str, Any]) -> bool:
        self.peer.notify(method, params)
        return self.can_take()


def still_there(hub: Hub, session: Session) -> Callable[[], None]:
    """A check that an agent's token is still good; whoever showed none is not asked for one."""
    agent = session.agent
    if not agent or not session.token_of(agent):
        return lambda: None
    context = hub.context(session, writing=False)
    return lambda: context.check_reader(agent, peek=True)


def _answer(request: Request) -> None:
    if request.error is None:
        request.asked.answer(request.result)
    else:
        request.asked.fail(request.error)


def _named(call: Call, names: tuple[str, ...]) -> dict[str, Any]:
    """The parameters by name; those in a list are in the order of the operation's."""
    if isinstance(call.params, dict):
        return call.params
    if len(call.params) > len(names):
        raise errors.Usage(reason=f"{call.method} takes at most {len(names)} parameters in a list", see=_page(call))
    return dict(zip(names, call.params, strict=False))


def _page(call: Call) -> str:
    return f"{call.method} in docs/rpc.md"


def wait_of(function: Any, params: dict[str, Any]) -> float:
    """How long it waits, if it does; what is no time is left to the operation to refuse."""
    usual_s = (function.__kwdefaults__ or {}).get("wait", 0)
    given = params.get("wait")
    try:
        return float(READERS["Seconds"](usual_s if given is None else given))  # type: ignore[arg-type]
    except ValueError:
        return 0.0


def _text(call: Call, params: dict[str, Any], name: str) -> str:
    value = params.get(name) or ""
    if not isinstance(value, str):
        raise errors.Usage(reason=f"{name} is no text", see=_page(call))
    return value
