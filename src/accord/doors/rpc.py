"""JSON-RPC 2.0 with one caller, whatever carries it: messages in, messages out.

Both sides may ask. Their ids are spaces of their own.
"""

from collections.abc import Callable
from typing import Any

from accord import errors, jsontext
from accord.errors.table import to_json

MOST_BYTES = 8 << 20  # of one message: a text of 1 MiB, all of it escaped
MOST_TOGETHER = 100  # requests in one batch


class Call:
    """A request of the caller, until it is answered. One without an id never is."""

    __slots__ = ("_batch", "_peer", "answered", "deadline", "id", "method", "params", "request", "within_s")

    def __init__(
        self,
        peer: "Peer",
        batch: "_Batch | None",
        id: object,
        method: str,
        params: dict[str, Any] | list[Any],
        request: str,
    ) -> None:
        self._peer = peer
        self._batch = batch
        self.id = id  # as JSON; None for a notification
        self.method = method
        self.params = params
        self.request = request  # the caller's own name for it, by which it is done once; "": none
        self.answered = False
        self.deadline = 0.0  # when the caller is told that it took too long; 0: never
        self.within_s = 0.0  # how long it had

    def limit(self, within_s: float, now: float) -> None:
        """Let it take so long, and no longer."""
        self.within_s, self.deadline = within_s, now + within_s

    def answer(self, result: object) -> None:
        self._end(result)

    def fail(self, error: errors.AccordError) -> None:
        self._end(error)

    def _end(self, said: object) -> None:
        if self.answered:
            return
        self.answered = True
        peer = self._peer
        peer.open_calls.discard(self)
        text = "" if self.id is None else self._text(said)
        if self._batch is not None:
            self._batch.add(text)
        elif text:
            peer.send_text(text)
        peer.answered(self)

    def _text(self, said: object) -> str:
        if isinstance(said, errors.AccordError):
            return _failure(self.id, said)
        try:
            return f'{{"jsonrpc":"2.0","id":{self.id},"result":{jsontext.dumps(said)}}}'
        except errors.InvalidJson as error:
            self._peer.failed(self.method, error)
            return _failure(self.id, errors.AccordError())


class _Batch:
    """The answers of several calls, sent together when the last is there."""

    def __init__(self, peer: "Peer", size: int) -> None:
        self._peer = peer
        self._left = size
        self._answers: list[str] = []

    def add(self, answer: str) -> None:
        self._left -= 1
        if answer:
            self._answers.append(answer)
        if not self._left and self._answers:
            self._peer.send_text(f"[{','.join(self._answers)}]")


class Peer:
    def __init__(
        self,
        serve: Callable[[Call], None],
        send_text: Callable[[str], None],
        answered: Callable[[Call], None] = lambda call: None,
        failed: Callable[[str, BaseException], None] = lambda where, error: None,
    ) -> None:
        self._serve = serve
        self.send_text = send_text
        self.answered = answered
        self.failed = failed  # told of what should never happen
        self.open_calls: set[Call] = set()
        self.malformed = 0  # messages that were no JSON-RPC
        self._asked: dict[int, Callable[[Any, dict[str, Any] | None], None]] = {}
        self._last_id = 0

    def receive(self, data: bytes) -> None:
        """Take in one message."""
        try:
            message = jsontext.loads(data, MOST_BYTES)
        except errors.InvalidJson as error:
            self.refuse(errors.ParseError(reason=error.details["reason"]))
            return
        if isinstance(message, list):
            self._several(message)
        else:
            self._one(message, None)

    def refuse(self, error: errors.AccordError) -> None:
        """Answer what cannot even be read."""
        self.malformed += 1
        self.send_text(_failure("null", error))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.send_text(f'{{"jsonrpc":"2.0","method":"{method}","params":{jsontext.dumps(params)}}}')

    def ask(self, method: str, params: dict[str, Any], done: Callable[[Any, dict[str, Any] | None], None]) -> None:
        """Ask the caller for something; `done` gets the result, or the error as JSON has it."""
        self._last_id += 1
        self._asked[self._last_id] = done
        text = f'{{"jsonrpc":"2.0","id":{self._last_id},"method":"{method}","params":{jsontext.dumps(params)}}}'
        self.send_text(text)

    def gone(self) -> None:
        """The caller will neither ask nor answer any more."""
        asked, self._asked = self._asked, {}
        for done in asked.values():
            done(None, {"message": "the caller is gone"})
        self.open_calls.clear()
        self.send_text = _to_nobody  # what is still being done will be answered, and its door is closed

    def sweep(self, now: float) -> None:
        """Tell the caller of what took too long."""
        for call in [call for call in self.open_calls if call.deadline and call.deadline < now]:
            call.fail(errors.RequestTimeout(method=call.method, timeout_seconds=call.within_s))

    def _several(self, messages: list[Any]) -> None:
        if not messages or len(messages) > MOST_TOGETHER:
            self.refuse(errors.InvalidRequest(reason=f"a batch of {len(messages)}, not of 1 to {MOST_TOGETHER}"))
            return
        batch = _Batch(self, len(messages))
        for message in messages:
            self._one(message, batch)

    def _one(self, message: object, batch: _Batch | None) -> None:
        if isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message):
            self._answer_of_caller(message)
            if batch is not None:
                batch.add("")
            return
        reason = _fault(message)
        if reason or not isinstance(message, dict):
            self.malformed += 1
            answer = _failure(_id_of(message), errors.InvalidRequest(reason=reason))
            batch.add(answer) if batch is not None else self.send_text(answer)
            return
        id = _id_of(message) if "id" in message else None
        call = Call(self, batch, id, message["method"], message.get("params") or {}, message.get("request") or "")
        self.open_calls.add(call)
        try:
            self._serve(call)
        except errors.AccordError as error:
            call.fail(error)
        except Exception as error:
            self.failed(call.method, error)
            call.fail(errors.AccordError())

    def _answer_of_caller(self, message: dict[str, Any]) -> None:
        id = message.get("id")
        done = self._asked.pop(id, None) if type(id) is int else None
        if done is not None:
            error = message.get("error")
            done(message.get("result"), error if isinstance(error, dict) else None)


def _to_nobody(text: str) -> None:
    pass


def _fault(message: object) -> str:
    """What keeps a value from being a request; "" when nothing does."""
    if not isinstance(message, dict):
        return "it is no object"
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc is not "2.0"'
    if not isinstance(message.get("method"), str):
        return "the method is no text"
    if not isinstance(message.get("params", {}), dict | list):
        return "the params are neither an object nor a list"
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | float | None):
        return "the id is neither text nor a number"
    request = message.get("request", "")
    if not isinstance(request, str) or len(request) > 200:
        return "the request is no short text"
    return ""


def _id_of(message: object) -> str:
    """The id, as JSON; null where it cannot be known."""
    id = message.get("id") if isinstance(message, dict) else None
    if isinstance(id, bool) or not isinstance(id, str | int | float):
        return "null"
    return jsontext.dumps(id)


def _failure(id: object, error: errors.AccordError) -> str:
    return f'{{"jsonrpc":"2.0","id":{id},"error":{jsontext.dumps(to_json(error))}}}'
