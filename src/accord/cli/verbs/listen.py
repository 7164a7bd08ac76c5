"""listen, events."""

import math
import time

from accord import errors, jsontext
from accord.cli.programs import feed, program
from accord.cli.run import as_json
from accord.cli.show import messages, one_line
from accord.cli.stream import ANSWER_S, Stream, introduce
from accord.cli.verbs.mail import myself
from accord.cli.words import Verb
from accord.model import read_identity
from accord.services import hub
from accord.services.events import KINDS, read_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line
    from accord.client import Connection

# What may keep the hub from noting something, and passes.
PASSING = (
    errors.StorageFull, errors.StorageFailing, errors.LockTimeout, errors.TooBusy, errors.TooManyFiles,
    errors.EngineUnreachable, errors.OutcomeUnknown,
    errors.RequestTimeout,
)  # fmt: skip

_FIRST_PAUSE_S = 1.0  # before a command that failed is run again
_LONGEST_PAUSE_S = 60.0
_HALTED_S = 0.5


def listen(line: "Line", words: "dict[str, Any]") -> int:
    identity = read_identity(words["identity"] if "identity" in words else myself(line, "--identity"))
    line.context.actor(identity)  # who may not act as somebody may not listen for them either
    if not hub.status(line.context.home.path)["running"]:
        line.context.check_reader(identity, peek=True)  # else one would be started for nothing
    command, no_ack = program(line, words), bool(words.get("no_ack"))
    return (_Runner(line, identity, no_ack, command) if command else _Listener(line, identity, no_ack)).run()


class _Listener:
    """Prints what comes."""

    def __init__(self, line: "Line", identity: str, no_ack: bool) -> None:
        self._line = line
        self._identity = identity
        self._no_ack = no_ack
        self._stream = Stream(line, self._subscribe)
        self._last = 0  # the number, in the inbox, of the last message that was taken
        self._done: set[str] = set()  # taken, and not known to be acknowledged

    def run(self) -> int:
        return self._stream.follow(self._take)

    def _subscribe(self, connection: "Connection") -> None:
        introduce(self._line, connection, self._identity)
        self._listen(connection)

    def _listen(self, connection: "Connection") -> None:
        # What was taken and not acknowledged comes again, unless it is never to be.
        after = self._after() if self._no_ack else 0
        connection.call("mail.listen", {"identity": self._identity, "after": after}, ANSWER_S)

    def _after(self) -> int:
        """The number in the inbox up to which nothing more is wanted."""
        return self._last

    def _take(self, connection: "Connection", pushed: "list[dict[str, Any]]") -> None:
        new = _mail(pushed)
        if not new:
            return
        ids = [one["message"]["message_id"] for one in new]
        if self._no_ack:
            self._tell(connection, "mail.hand_over", ids)
        for id, one in zip(ids, new, strict=True):
            if id not in self._done:
                self._print(one["message"])
        self._last = new[-1]["number"]
        if not self._no_ack:
            self._acknowledge(connection, ids)

    def _print(self, message: "dict[str, Any]") -> None:
        self._line.io.out(as_json(message) if self._line.json else messages(self._line, [message]))

    def _acknowledge(self, connection: "Connection", ids: list[str]) -> None:
        self._done.update(ids)
        self._tell(connection, "mail.ack", ids)
        self._done.difference_update(ids)

    def _tell(self, connection: "Connection", method: str, ids: list[str]) -> None:
        """Note something of messages; what keeps that from being done for now, as a full disk, is waited for."""
        pause_s = 0.0
        while True:
            try:
                connection.call(method, {"identity": self._identity, "ids": ids}, ANSWER_S)
                return
            except PASSING as error:
                if not pause_s:
                    self._line.io.err(f"accord: waiting: {one_line(error)}\n")
                pause_s = min(2 * pause_s or _FIRST_PAUSE_S / 4, _LONGEST_PAUSE_S / 4)
                self._stream.pause(pause_s)


class _Failed:
    """A message whose command failed."""

    def __init__(self, number: int, pause_s: float) -> None:
        self.number = number  # in the inbox
        self.pause_s = pause_s  # until it is tried again
        self.due_at = time.monotonic() + pause_s


class _Runner(_Listener):
    """Runs a command for each message; one at a time, so that a signal or a HALT stops it after the one that runs.

    What failed is tried again by asking the hub for it: it may have been acknowledged by hand meanwhile.
    """

    def __init__(self, line: "Line", identity: str, no_ack: bool, command: list[str]) -> None:
        super().__init__(line, identity, no_ack)
        self._command = command
        self._failed: dict[str, _Failed] = {}  # that wait until they are due
        self._again: dict[str, _Failed] = {}  # that were due, and the hub was asked for

    def _after(self) -> int:
        return min([one.number - 1 for one in (*self._failed.values(), *self._again.values())] + [self._last])

    def _take(self, connection: "Connection", pushed: "list[dict[str, Any]]") -> None:
        for one in _mail(pushed):
            self._stream.obey()
            if self._line.context.halt.reason() is not None:
                self._stop(connection)
                # Then the hub is asked anew: it tells why nothing comes, and waits until this agent is engaged.
                self._stream.due_at = time.monotonic() + _HALTED_S
                return
            self._run(connection, one)
        if self._stream.due_at <= time.monotonic():
            self._ask_again(connection)

    def _run(self, connection: "Connection", one: "dict[str, Any]") -> None:
        """Give a message to the command, unless that was done before, or is to be done later."""
        id, number = one["message"]["message_id"], one["number"]
        if id in self._failed:
            return
        failed = self._again.get(id)
        self._last = max(self._last, number)
        # They come in order: of those before this one somebody else took care.
        self._again = {id: other for id, other in self._again.items() if other.number > number}
        if id not in self._done:
            if failed is None:
                self._tell(connection, "mail.hand_over", [id])
            if not self._execute(one["message"]):
                self._try_later(id, number, failed)
                return
        if not self._no_ack:
            self._acknowledge(connection, [id])
        elif self._failed or self._again:
            self._done.add(id)  # it will come again, with what failed
        else:
            self._done.clear()

    def _try_later(self, id: str, number: int, failed: "_Failed | None") -> None:
        pause_s = min(2 * failed.pause_s, _LONGEST_PAUSE_S) if failed else _FIRST_PAUSE_S
        self._failed[id] = _Failed(number, pause_s)
        self._stream.due_at = min(self._stream.due_at, self._failed[id].due_at)

    def _execute(self, message: "dict[str, Any]") -> bool:
        code = feed(self._command, jsontext.dumps(message).encode() + b"\n")
        if code:
            again = "it stays unread, and is tried again"
            self._line.io.err(f"accord: the command ended with {code} for {message['message_id']}; {again}\n")
        return not code

    def _ask_again(self, connection: "Connection") -> None:
        """Have what is unread pushed again, for the sake of what is due; the rest is known, and left out."""
        self._stop(connection)
        now = time.monotonic()
        self._again |= {id: one for id, one in self._failed.items() if one.due_at <= now}
        self._failed = {id: one for id, one in self._failed.items() if one.due_at > now}
        self._listen(connection)
        self._stream.due_at = min([one.due_at for one in self._failed.values()], default=math.inf)

    def _stop(self, connection: "Connection") -> None:
        connection.call("listen.stop", {}, ANSWER_S)
        connection.unheard = [one for one in connection.unheard if one.get("method") != "mail.message"]


def _mail(pushed: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    return [one["params"] for one in pushed if one.get("method") == "mail.message"]


def events(line: "Line", words: "dict[str, Any]") -> int:
    try:
        kinds = read_kinds(words.get("kind") or [])
    except ValueError as error:
        raise line.words.wrong(f"--kind {error}") from None
    return _Events(line, words.get("since", ""), kinds).run()


class _Events:
    def __init__(self, line: "Line", since: str, kinds: list[str]) -> None:
        self._line = line
        self._kinds = kinds
        self._done = since  # the last revision of which all was printed
        self._now = ""  # the one of which something was ...
        self._printed = 0  # ... and how many events that are; they come again on a new connection
        self._skip = 0

    def run(self) -> int:
        return Stream(self._line, self._subscribe).follow(self._take)

    def _subscribe(self, connection: "Connection") -> None:
        introduce(self._line, connection)
        self._skip = self._printed
        found = connection.call("events.listen", {"since": self._done, "kinds": self._kinds}, ANSWER_S)
        self._done = self._done or found["since"]

    def _take(self, connection: "Connection", pushed: "list[dict[str, Any]]") -> None:
        for event in [one["params"] for one in pushed if one.get("method") == "events.event"]:
            if event["revision"] != self._now:
                self._done = self._now or self._done
                self._now, self._printed, self._skip = event["revision"], 0, 0
            if self._skip:
                self._skip -= 1
                continue
            self._printed += 1
            self._line.io.out(as_json(event) if self._line.json else f"{_sentence(event)}\n")


def _sentence(event: "dict[str, Any]") -> str:
    fields = [f"{name}={_word(value)}" for name, value in event.items() if name not in ("event", "revision") and value]
    return one_line(f"{event['event']}  {'  '.join(fields)}")


def _word(value: object) -> str:
    return ",".join(str(one) for one in value) if isinstance(value, list) else str(value)


VERBS = {
    "listen": Verb(
        listen,
        positional=("identity",),
        extra={"identity": "Identity", "exec": "Command", "no_ack": "Flag"},
        notes={
            "exec": "a command that gets each message on its standard input, as JSON; 0 acknowledges it",
            "no_ack": "never acknowledge",
        },
        help="Receive messages as they come, each acknowledged once it is printed.",
    ),
    "events": Verb(
        events,
        extra={"since": "Text", "kind": "Words"},
        notes={
            "since": "start after this revision, as EPOCH.REVISION, instead of now",
            "kind": f"only these: {', '.join(KINDS)}",
        },
        help="Show what happens, as it happens.",
    ),
}
