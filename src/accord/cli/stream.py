"""A command that stays connected to the hub and takes what it pushes, until it is told to stop.

A connection that breaks is made anew, later each time; what is missed meanwhile comes then. Only the first may start
a hub.
"""

import math
import os
import select
import signal
import time

from accord import errors, jsontext, place, proof
from accord.client import Connection
from accord.errors.table import from_json
from accord.model import HUMAN
from accord.services import hub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from accord.cli.run import Line

ANSWER_S = 10.0
SILENCE_S = 45.0  # three heartbeats of the hub
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0


class Stop(Exception):
    """A signal said that it is enough."""


class Stream:
    def __init__(self, line: "Line", subscribe: "Callable[[Connection], None]") -> None:
        self._line = line
        self._subscribe = subscribe  # what to ask for on each new connection
        self._home = line.context.home.path
        self._signals: list[int] = []
        self._asking = False
        self._woken, self._wake = os.pipe()
        self._heard_at = 0.0
        self._was_answered = False
        self._is_silent = False  # and it was said
        self.due_at = math.inf  # when the verb is to be asked, though nothing came
        self.counts = {"connections": 0, "received": 0}

    def follow(self, take: "Callable[[Connection, list[dict[str, Any]]], None]") -> int:
        """Give what comes to `take`, several at once where there are; 0 when a signal ends it.

        Nothing is given when it is only that something is due.
        """
        ensure_hub(self._line)
        self._hear_signals()
        try:
            while True:
                try:
                    self.obey()
                    connection = self._connected()
                except ConnectionResetError:
                    continue  # asked to connect anew, which it does anyway
                try:
                    self._ask(connection)
                    self._take_all(connection, take)
                except TimeoutError:
                    self._complain_of_silence()
                except OSError:
                    pass  # the hub is gone, and may come back
                finally:
                    connection.close()
        except Stop:
            return 0

    def _take_all(self, connection: Connection, take: "Callable[[Connection, list[dict[str, Any]]], None]") -> None:
        self._heard_at = time.monotonic()
        while True:
            messages, connection.unheard = connection.unheard, []
            while connection.has_more or (not messages and self._wait(connection)):
                message = connection.receive(SILENCE_S)
                if message is None:
                    return
                self._heard_at = time.monotonic()
                self._is_silent = False
                messages.append(message)
            self.counts["received"] += len(messages)
            take(connection, [message for message in messages if self._concerns(message)])

    def _ask(self, connection: Connection) -> None:
        """What is to be pushed. A hub that does not answer shall not keep a signal waiting."""
        self._asking = True
        try:
            self._subscribe(connection)
            self._was_answered = True
        finally:
            self._asking = False

    def _complain_of_silence(self) -> None:
        """Once; a hub that has never answered is not waited for."""
        error = errors.HubSilent(pid=hub.status(self._home)["pid"], timeout_seconds=ANSWER_S)
        if not self._was_answered:
            raise error
        if not self._is_silent:
            self._line.io.err(f"accord: waiting: {error} [{error.code}]\n")
        self._is_silent = True

    def _concerns(self, message: "dict[str, Any]") -> bool:
        """Whether it is for the verb."""
        method = message.get("method", "")
        if method == "listen.ended":
            raise from_json(message["params"])
        if method == "listen.waiting":
            self._line.io.err(f"accord: waiting: {message['params']['message']}\n")
        return method not in ("hub.alive", "hub.stopping", "listen.waiting")

    def _wait(self, connection: Connection) -> bool:
        """Until something comes, or is due; whether it came. Silence for too long means that the hub is gone."""
        silent_at = self._heard_at + SILENCE_S
        left_s = max(0.0, min(silent_at, self.due_at) - time.monotonic())
        readable = select.select([connection.fileno(), self._woken], [], [], left_s)[0]
        self.obey()
        if not readable and time.monotonic() >= silent_at:
            raise TimeoutError("nothing from the hub")
        return connection.fileno() in readable

    def pause(self, seconds: float) -> None:
        """Wait so long, or until a signal."""
        select.select([self._woken], [], [], seconds)
        self.obey()

    def _connected(self) -> Connection:
        pause_s = 0.0
        while True:
            try:
                connection = Connection(place.socket_path(self._home), ANSWER_S)
                self.counts["connections"] += 1
                return connection
            except OSError:
                # Between none and all of it, so that many do not come back at once.
                if not pause_s and self.counts["connections"]:
                    self._line.io.err("accord: the hub is gone; this goes on when it is back (accord hub start)\n")
                pause_s = min(max(2 * pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
                self.pause(pause_s * (0.5 + os.urandom(1)[0] / 512))

    def _hear_signals(self) -> None:
        """They only leave a note, and whoever waits acts on it."""
        os.set_blocking(self._wake, False)

        def note(number: int, frame: object) -> None:
            if self._asking and number in (signal.SIGTERM, signal.SIGINT):
                raise Stop
            self._signals.append(number)
            os.write(self._wake, b".")

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, note)

    def obey(self) -> None:
        """Act on the signals that came."""
        while self._signals:
            os.read(self._woken, 1)
            number = self._signals.pop(0)
            if number == signal.SIGUSR1:
                record = {"timestamp": self._line.context.now(), "level": "info", "event": "statistics", **self.counts}
                self._line.io.err(jsontext.dumps(record) + "\n")
            elif number == signal.SIGHUP:
                raise ConnectionResetError("asked to connect anew")
            else:
                raise Stop


def ensure_hub(line: "Line") -> None:
    """Start a hub if none runs, unless that is not wanted."""
    home = line.context.home.path
    found = hub.status_when_ready(home)
    if found["running"] and not found.get("stopping"):
        return
    if "--no-start" in line.words.globals or not line.context.settings["autostart"]:
        raise errors.HubNotRunning(home=home, there="", command="start")
    port = line.hub_port
    line.context.home.make()
    hub.start(home, {"port": port} if port else {})


def introduce(line: "Line", connection: Connection, identity: str = "") -> None:
    """Show the hub which store is meant, and what it takes to listen for somebody; whoever sits there may not be it."""
    from accord.operations.context import engine_of
    from accord.services.agents import hash_token

    context = line.context
    shown = {"engine": hash_token(engine_of(context.home, context.settings))}
    if identity == HUMAN:
        shown["purpose"] = f"listen:{HUMAN}"
        shown["operator"] = proof.make(context.home.operator_token(), f"session.open {shown['purpose']}")
    elif identity:
        shown |= {"agent": context.agent, "token": context.caller.token_of(identity)}
    connection.call("session.open", shown, ANSWER_S)
