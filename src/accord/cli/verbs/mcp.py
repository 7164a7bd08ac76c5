"""mcp: a pipe between an MCP client, at standard input and output, and the hub, where everything is answered.

The hub may go away and come back: the pipe says again to the next one what the client had said at its start and what it
has subscribed to. Requests that were open fail, since nobody can know whether they were done.
"""

import os
import select
import time

from accord import errors, jsontext, place
from accord.cli.stream import ANSWER_S, ensure_hub
from accord.cli.words import Verb
from accord.client import Connection
from accord.errors.table import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

    Message = dict[str, Any]

MOST_BYTES = 8 << 20  # of one message: as the hub takes it
FINISH_S = 5.0  # for what is open when the client has closed its end

_PIECE = 65536
_ENOUGH = 1 << 20  # bytes for the hub that wait; the client waits too
_PAUSES_S = (0.05, 5.0)  # between two looks whether there is a hub again: the first one, and the longest
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_OURS = "accord:"  # how ids of the pipe's own requests start


def mcp(line: "Line", words: "dict[str, Any]") -> int:
    return _Pipe(line, str(line.io.env.get("ACCORD_AGENT", ""))).run()


class _Pipe:
    def __init__(self, line: "Line", agent: str) -> None:
        self._line = line
        self._agent = agent
        self._home = line.context.home.path
        self._hub: Connection | None = None
        self._to_hub = bytearray()
        self._start = b""  # of a line of the client whose end has not come yet
        self._skipping = False  # the rest of a line that is too long
        self._said = _Said()
        self._open: dict[object, Message] = {}  # requests of the client, by id
        self._registering: dict[object, str] = {}  # names that they may get for it
        self._pause_s = 0.0
        self._look_at = 0.0  # when to look again for a hub

    def run(self) -> int:
        """Until the client closes its end."""
        try:
            while self._step():
                pass
            self._finish()
        except errors.OutputClosed:
            pass  # the client is gone
        return 0

    def _step(self) -> bool:
        """Wait for something, and act on it; whether the client is still there."""
        for fd, events in self._wait(listen=len(self._to_hub) < _ENOUGH):
            if fd == 0:
                data = os.read(0, _PIECE)
                if not data:
                    return False
                self._from_client(data)
            else:
                self._serve_hub(events)
        if self._hub is None and self._said.listens() and time.monotonic() >= self._look_at:
            self._look_for_hub()
        return True

    def _wait(self, listen: bool, timeout_s: float | None = None) -> "list[tuple[int, int]]":
        poll = select.poll()
        if self._hub is not None:  # looked at first: one that is gone shall not be given what the client asks next
            poll.register(self._hub.fileno(), select.POLLIN | (select.POLLOUT if self._to_hub else 0))
        elif self._said.listens() and timeout_s is None:
            timeout_s = max(0.0, self._look_at - time.monotonic())
        if listen:
            poll.register(0, select.POLLIN)
        return poll.poll(None if timeout_s is None else timeout_s * 1000)

    def _finish(self) -> None:
        """Give out what is still answered."""
        deadline = time.monotonic() + FINISH_S
        while self._hub is not None and any(not _stays_open(one) for one in self._open.values()):
            left_s = deadline - time.monotonic()
            found = self._wait(listen=False, timeout_s=left_s) if left_s > 0 else []
            if not found:
                return
            self._serve_hub(found[0][1])

    # What the client says.

    def _from_client(self, data: bytes) -> None:
        *lines, self._start = (self._start + data).split(b"\n")
        for text in lines:
            if self._skipping:
                self._skipping = False
            elif text.strip():
                self._take(text)
        if len(self._start) > MOST_BYTES:
            if not self._skipping:
                self._answer(None, errors.ParseError(reason=f"a line of more than {MOST_BYTES} bytes"))
            self._start, self._skipping = b"", True

    def _take(self, text: bytes) -> None:
        try:
            message = jsontext.loads(text, MOST_BYTES)
        except errors.InvalidJson as error:
            self._answer(None, errors.ParseError(reason=error.details["reason"]))
            return
        if not isinstance(message, dict):
            self._answer(None, errors.InvalidRequest(reason="it is no object"))
            return
        id, asks = message.get("id"), _asks(message)
        try:
            if self._hub is None:
                self._connect(starts=True)
        except (OSError, errors.AccordError) as error:
            if asks:
                self._answer(
                    id, error if isinstance(error, errors.AccordError) else errors.HubFailed(reason=str(error))
                )
            return
        if asks:
            self._open[id] = message
        self._said.note(message)
        self._pass_on(message)

    def _pass_on(self, message: "Message") -> None:
        self._send({"jsonrpc": "2.0", "method": "mcp.message", "params": message})

    def _send(self, message: "Message") -> None:
        self._to_hub += jsontext.dumps(message).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        """As much as the hub takes: waiting for it here, while it waits for us, would never end."""
        if self._hub is None or not self._to_hub:
            return
        self._hub.raw.settimeout(0)
        try:
            del self._to_hub[: self._hub.raw.send(self._to_hub)]
        except BlockingIOError:
            pass
        except OSError:
            pass  # which reading will tell, after what it still says

    # What the hub says.

    def _serve_hub(self, events: int) -> None:
        if events & select.POLLOUT:
            self._flush()
        if not events & ~select.POLLOUT or self._hub is None:
            return
        try:
            message = self._hub.receive(ANSWER_S)
            while message is not None:
                self._from_hub(message)
                if not self._hub.has_more:
                    return
                message = self._hub.receive(ANSWER_S)
        except OSError:
            pass
        self._lost()

    def _from_hub(self, said: "Message") -> None:
        if said.get("method") != "mcp.message":
            if "error" in said:
                self._line.io.err(f"accord: {said['error'].get('message')}\n")
            return
        message: Message = said["params"]
        id = message.get("id")
        if "method" not in message and isinstance(id, str) and id.startswith(_OURS):
            self._tell(self._said.heard_again(id))
        elif "method" not in message:
            self._answered(id, message)
            self._out(message)
        elif self._said.is_known(message):
            self._tell(self._said.missed(_subscription_of(message)))
        else:
            self._out(message)

    def _tell(self, messages: "list[Message]") -> None:
        for message in messages:
            self._out(message)

    def _answered(self, id: object, message: "Message") -> None:
        asked = self._open.pop(id, None)
        if asked is None:
            return
        result = message.get("result")
        self._said.ended(asked, result is not None)
        name = _name_to_register(asked)
        if name and isinstance(result, dict) and not result.get("isError"):
            self._agent = name  # from here on it acts under the name that it got
            self._introduce(self._shown())

    def _out(self, message: "Message") -> None:
        self._line.io.out(jsontext.dumps(message) + "\n")

    def _answer(self, id: object, error: errors.AccordError) -> None:
        self._out({"jsonrpc": "2.0", "id": id, "error": to_json(error)})

    # The hub: finding it, losing it, and finding it again.

    def _connect(self, starts: bool) -> None:
        if starts:
            ensure_hub(self._line)
        shown = self._shown()  # before there is a hub that would wait for it
        self._hub = Connection(place.socket_path(self._home), ANSWER_S)
        self._pause_s = 0.0
        self._to_hub.clear()
        self._introduce(shown)
        self._send({"jsonrpc": "2.0", "id": 2, "method": "mcp.open"})
        for message in self._said.again():
            self._pass_on(message)

    def _introduce(self, shown: "dict[str, str]") -> None:
        self._send({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": shown})

    def _shown(self) -> "dict[str, str]":
        """Who this is: an agent by its token, or nobody in particular. Never the operator."""
        from accord.operations.context import engine_of
        from accord.services.agents import hash_token

        context = self._line.context
        shown = {"engine": hash_token(engine_of(context.home, context.settings))}
        if self._agent:
            shown |= {"agent": self._agent, "token": context.caller.token_of(self._agent)}
        return shown

    def _lost(self) -> None:
        """Tell the client what nobody will answer any more. What only listens goes on with the next hub."""
        if self._hub is not None:
            self._hub.close()
        self._hub = None
        self._to_hub.clear()
        self._look_at = time.monotonic()
        lost = {id: asked for id, asked in self._open.items() if not _stays_open(asked)}
        for id, asked in lost.items():
            del self._open[id]
            self._said.ended(asked, False)
            reason = f"{asked['method']} was open, and may have been done or not"
            self._answer(id, errors.HubLost(reason=reason))

    def _look_for_hub(self) -> None:
        """For the sake of those who listen; a hub is only started for a request."""
        try:
            self._connect(starts=False)
        except (OSError, errors.AccordError):
            first, longest = _PAUSES_S
            self._pause_s = min(max(2 * self._pause_s, first), longest)
            # Between half and all of it, so that many do not come back at once.
            self._look_at = time.monotonic() + self._pause_s * (0.5 + os.urandom(1)[0] / 512)


class _Said:
    """What a client has said that the next hub must know: how it began, and what it listens to."""

    def __init__(self) -> None:
        self._begun: dict[str, Message] = {}  # `initialize` and what else is said once, by method
        self._subscribed: dict[str, Message] = {}  # by URI
        self._listening: dict[object, Message] = {}  # requests that stay open, by id
        self._acknowledged: set[object] = set()  # those of them that the client knows to be heard
        self._repeated: dict[str, Message] = {}  # requests that the hub was asked again, by the id of that
        self._before = False  # whether there was a hub before

    def note(self, message: "Message") -> None:
        method = message.get("method")
        if method in ("initialize", "notifications/initialized", "logging/setLevel"):
            self._begun[method] = message
        elif method == "resources/subscribe" and _asks(message):
            self._subscribed[_uri_of(message)] = message
        elif method == "resources/unsubscribe":
            self._subscribed.pop(_uri_of(message), None)
        elif method == "notifications/cancelled":
            self._cancelled(_object(message.get("params")).get("requestId"))
        elif _stays_open(message):
            self._listening[message["id"]] = message

    def _cancelled(self, id: object) -> None:
        if isinstance(id, str | int):
            self._listening.pop(id, None)

    def ended(self, asked: "Message", went_well: bool) -> None:
        """A request was answered, or never will be."""
        self._listening.pop(asked["id"], None)
        self._acknowledged.discard(asked["id"])
        if not went_well and asked["method"] == "resources/subscribe":
            self._subscribed.pop(_uri_of(asked), None)
        elif not went_well and self._begun.get(asked["method"]) is asked:
            del self._begun[asked["method"]]

    def listens(self) -> bool:
        return bool(self._subscribed or self._listening)

    def is_known(self, message: "Message") -> bool:
        """Whether it tells the client what it was told before: that it is heard."""
        if message["method"] != "notifications/subscriptions/acknowledged":
            return False
        id = _subscription_of(message)
        known = id in self._acknowledged
        self._acknowledged.add(id)
        return known

    def again(self) -> "list[Message]":
        """What to say to a hub that has not heard it, under ids of the pipe's own where the client has its answer."""
        if not self._before:
            self._before = True
            return []
        said = [*self._begun.values(), *self._subscribed.values()]
        ours = [{**one, "id": f"{_OURS}{number}"} if "id" in one else one for number, one in enumerate(said)]
        self._repeated = {one["id"]: one for one in ours if "id" in one}
        return [*ours, *self._listening.values()]

    def heard_again(self, id: str) -> "list[Message]":
        """What to tell when the next hub has answered one of the pipe's own requests."""
        asked = self._repeated.pop(id, {})
        if asked.get("method") == "resources/subscribe":
            return [_updated({"uri": _uri_of(asked)})]
        is_told = asked.get("method") == "initialize" and "notifications/initialized" in self._begun
        return [_list_changed()] if is_told else []

    def missed(self, id: object) -> "list[Message]":
        """What may have changed for one who listens while there was no hub."""
        asked = _object(self._listening[id].get("params")) if id in self._listening else {}
        wanted, meta = _object(asked.get("notifications")), {"_meta": {_SUBSCRIPTION: id}}
        uris = wanted.get("resourceSubscriptions")
        told = [_updated({"uri": uri, **meta}) for uri in uris] if isinstance(uris, list) else []
        return [*told, _list_changed(params=meta)] if wanted.get("resourcesListChanged") is True else told


def _list_changed(**more: "Message") -> "Message":
    return {"jsonrpc": "2.0", "method": "notifications/resources/list_changed", **more}


def _updated(params: "Message") -> "Message":
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}


def _subscription_of(message: "Message") -> object:
    return _object(_object(message.get("params")).get("_meta")).get(_SUBSCRIPTION)


def _uri_of(message: "Message") -> str:
    """What a client subscribes to."""
    return str(_object(message.get("params")).get("uri"))


def _object(value: object) -> "Message":
    """What a client has sent where an object belongs; anything else says nothing, and the hub refuses it."""
    return value if isinstance(value, dict) else {}


def _asks(message: "Message") -> bool:
    """Whether it is a request, to which there is an answer."""
    id = message.get("id")
    return isinstance(message.get("method"), str) and isinstance(id, str | int) and not isinstance(id, bool)


def _stays_open(message: "Message") -> bool:
    """Whether it is a request that is there to be told of changes."""
    return message.get("method") == "subscriptions/listen" and _asks(message)


def _name_to_register(asked: "Message") -> str:
    """The name that a call asks for; "" where it asks for something else."""
    params = _object(asked.get("params"))
    arguments = _object(params.get("arguments"))
    if asked["method"] != "tools/call" or params.get("name") != "call":
        return ""
    given = _object(arguments.get("params"))
    return str(given.get("identity", "")).lower() if arguments.get("operation") == "agent.register" else ""


VERBS = {
    "mcp": Verb(
        mcp,
        help="Speak MCP on standard input and output, for $ACCORD_AGENT, or for the session that started it.",
    ),
}
