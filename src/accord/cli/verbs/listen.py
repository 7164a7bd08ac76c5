"""listen, events."""

from accord import jsontext
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


def listen(line: "Line", words: "dict[str, Any]") -> int:
    identity = read_identity(words["identity"] if "identity" in words else myself(line, "--identity"))
    line.context.actor(identity)  # who may not act as somebody may not listen for them either
    if not hub.status(line.context.home.path)["running"]:
        line.context.check_reader(identity, peek=True)  # else one would be started for nothing
    return _Listener(line, identity, program(line, words), bool(words.get("no_ack"))).run()


class _Listener:
    def __init__(self, line: "Line", identity: str, command: list[str], no_ack: bool) -> None:
        self._line = line
        self._identity = identity
        self._command = command  # what gets each message; nothing: it is printed
        self._no_ack = no_ack
        self._last = 0  # the number, in the inbox, of the last message that was taken
        self._done: set[str] = set()  # taken, and not known to be acknowledged

    def run(self) -> int:
        return Stream(self._line, self._subscribe).follow(self._take)

    def _subscribe(self, connection: "Connection") -> None:
        introduce(self._line, connection, self._identity)
        # What was taken and not acknowledged comes again, unless it is never to be.
        after = self._last if self._no_ack else 0
        connection.call("mail.listen", {"identity": self._identity, "after": after}, ANSWER_S)

    def _take(self, connection: "Connection", pushed: "list[dict[str, Any]]") -> None:
        new = [one["params"] for one in pushed if one.get("method") == "mail.message"]
        if not new:
            return
        ids = [one["message"]["message_id"] for one in new]
        if self._command or self._no_ack:
            self._tell(connection, "mail.hand_over", ids)
        taken = [id for id, one in zip(ids, new, strict=True) if id in self._done or self._give_out(one["message"])]
        self._last = max(self._last, new[-1]["number"])
        if not self._no_ack and taken:
            self._done.update(taken)
            self._tell(connection, "mail.ack", taken)
            self._done.difference_update(taken)

    def _tell(self, connection: "Connection", method: str, ids: list[str]) -> None:
        connection.call(method, {"identity": self._identity, "ids": ids}, ANSWER_S)

    def _give_out(self, message: "dict[str, Any]") -> bool:
        """Print a message, or give it to the command; whether it was taken."""
        if self._command:
            return self._execute(message)
        self._line.io.out(as_json(message) if self._line.json else messages(self._line, [message]))
        return True

    def _execute(self, message: "dict[str, Any]") -> bool:
        code = feed(self._command, jsontext.dumps(message).encode() + b"\n")
        if code:
            self._line.io.err(f"accord: the command ended with {code}; {message['message_id']} stays unread\n")
        return not code


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
