"""A command of the command line, run inside the hub: its caller prints, reads files and shows tokens."""

import os
from binascii import a2b_base64
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

from accord import __version__, errors, place, proof
from accord.cli.forward import is_here
from accord.cli.run import GROUPS, VERBS, run
from accord.cli.words import Words
from accord.doors.methods import Connection
from accord.doors.rpc import Call
from accord.errors.table import from_json
from accord.hub.core import Hub
from accord.operations.context import Context, agent_of, engine_of
from accord.services.halt import Halt
from accord.settings import Settings
from accord.store.protocols import Store

MOST_COMMANDS = 200  # at once, each in a thread of its own; the rest do it themselves

_MOST_BUFFERED = 1 << 16
_SHAPE = {
    "argv": list, "env": dict, "cwd": str, "request": str, "project": list, "terminal": list, "width": int, "key": str,
    "tokens": dict,
}  # fmt: skip


class Elsewhere(BaseException):
    """This is no command for this hub. No verb shall take it for an error of its own."""


def start(connection: Connection, call: Call, params: dict[str, Any]) -> None:
    """Run a command in a thread; the answer holds what is left to print, and the exit code."""
    if params.get("version") != __version__:
        raise errors.GoLocal(reason=f"the hub is accord {__version__}")
    if connection.session.uid != os.geteuid():
        raise errors.GoLocal(reason="it is run by another user, who has other files and another HALT")
    _check(params)
    if is_here(_verb(params["argv"])):
        raise errors.GoLocal(reason="this needs its own process")
    hub = connection.hub
    if hub.commands >= MOST_COMMANDS:
        raise errors.GoLocal(reason=f"it runs {MOST_COMMANDS} already")
    hub.commands += 1
    io = CommandIo(connection, params)

    def done(code: Any, error: BaseException | None) -> None:
        hub.commands -= 1
        if isinstance(error, Elsewhere):
            call.fail(errors.GoLocal(reason=str(error)))
        elif error is not None:
            hub.failed("command", error)
            call.fail(errors.AccordError())
        else:
            hub.count("commands_done")
            call.answer({"exit": code, "write": io.rest()})

    hub.run_in_thread(lambda: run(params["argv"], io), done)


def _check(params: dict[str, Any]) -> None:
    """Refuse what a command cannot have sent."""
    wrong = [name for name, kind in _SHAPE.items() if not isinstance(params.get(name), kind)]
    if not wrong:
        texts = [*params["argv"], *params["env"].values(), *params["project"]]
        wrong = [] if all(isinstance(text, str) for text in texts) else ["argv, env or project"]
    if not wrong and params["request"] and not _is_request(params["request"]):
        wrong = ["request"]
    if wrong or len(params["project"]) != 2 or len(params["terminal"]) != 3:
        raise errors.Usage(reason=f"no command has such {', '.join(wrong) or 'lists'}", see="cli.run")


def _is_request(text: str) -> bool:
    """Whether it is a name of a request, as commands make them; ids of messages are made of it."""
    return len(text) == 32 and not text.strip("0123456789abcdef")


def _verb(argv: list[str]) -> list[str]:
    """The verb, read as it will be when it is run."""
    words = Words(argv)
    try:
        words.take_verb(VERBS, GROUPS)
    except errors.Usage:
        pass  # which the command will say itself
    return words.verb.split(" ")


class CommandIo:
    """The world outside of a command, as its caller tells of it."""

    def __init__(self, connection: Connection, params: dict[str, Any]) -> None:
        self.env: Mapping[str, str] = params["env"]
        self.cwd: str = params["cwd"]
        self.agent = agent_of(self.env)
        self.request: str = params["request"]
        self.uid = connection.session.uid
        self.pid = connection.session.pid
        self._terminal: list[bool] = params["terminal"]
        self._width: int = params["width"]
        self._key: str = params["key"]
        self._project = (params["project"][0], params["project"][1].encode())
        self._argv: list[str] = params["argv"]
        self._tokens: dict[str, Any] = params["tokens"]  # that it has shown without being asked, by their files
        self._given = params.get("given")  # of a hook
        self._operator: bool | None = None  # whether the caller is, once it was asked
        self._connection = connection
        self._pieces: list[tuple[int, str]] = []
        self._size = 0

    # What a verb asks.

    def context(self, given: Mapping[str, str]) -> Context:
        hub = self._connection.hub
        if os.path.abspath(place.home_path(given.get("--home", ""), self.cwd, self.env)) != hub.home.path:
            raise Elsewhere("it serves another home")
        if Halt(place.user_home(self.env)).path != hub.halt.path:
            raise Elsewhere("it obeys another HALT")
        flags = {"engine": given["--engine"]} if "--engine" in given else {}
        settings = Settings(hub.home.path, self.cwd, self.env, flags, self._project)
        try:
            engine = engine_of(hub.home, settings)
        except (errors.InvalidConfig, errors.NotTrusted, errors.UnknownEngine):
            raise Elsewhere("the settings cannot be read, of which `config` can still show a part") from None
        if engine != hub.engine:
            raise Elsewhere("it serves another store")
        if self._key not in ("", hub.key_name) or (not self._key and settings.key_place() not in ("", hub.key_place)):
            raise Elsewhere("it has another key, or none")
        context = Context(hub.home, hub.halt, settings, self, lambda: _store(hub, settings))
        context.hub = hub
        context.is_gone = self._is_gone
        return context

    def check_output(self) -> None:
        """The caller looked before it asked."""

    def out(self, text: str) -> None:
        self._put(1, text)

    def err(self, text: str) -> None:
        self._put(2, text)
        if self._terminal[2]:
            self._send()

    def confirm(self) -> None:
        if self._pieces:
            pieces, self._pieces, self._size = self._pieces, [], 0
            self._ask("cli.write", {"write": pieces})

    def is_terminal(self, fd: int) -> bool:
        return self._terminal[fd]

    def width(self) -> int:
        return self._width

    def read_input(self, most: int) -> bytes:
        return self._data("cli.read_input", {"most": most})

    def read_file(self, path: str, most: int) -> bytes:
        return self._data("cli.read_file", {"path": path, "most": most})

    def read_given(self) -> dict[str, object]:
        found = self._given or self._ask("cli.read_given", {}).get("given")
        if not isinstance(found, dict):
            raise errors.Usage(reason="the answer to cli.read_given has no object", see="docs/design/hub.md")
        return found

    def may_take(self, seconds: float) -> None:
        hub = self._connection.hub
        hub.loop.call_soon_threadsafe(self._connection.peer.notify, "cli.may_take", {"seconds": seconds})

    def rest(self) -> list[tuple[int, str]]:
        """What was not printed yet."""
        return self._pieces

    # As the caller of operations.

    def is_operator(self, what: str = "") -> bool:
        """Only some commands want to know, so only those ask. No answer is good for another question."""
        if self._operator is None:
            nonce = os.urandom(16).hex()
            token = "" if self.agent else self._connection.hub.home.operator_token()
            shown = self._ask_for("proof", "cli.proof", {"nonce": nonce}) if token else ""
            self._operator = proof.holds(shown, token, proof.of_command(nonce, self._argv))
        return self._operator

    def token_of(self, name: str) -> str:
        path = self._connection.hub.tokens.path_of(name)
        token = self.env.get("ACCORD_TOKEN", "") or str(self._tokens.get(path, ""))
        return token or self._ask_for("token", "cli.token", {"path": path})

    def _is_gone(self) -> bool:
        """Asked by what waits. It goes on waiting elsewhere when the hub stops."""
        if self._connection.hub.stopping.is_set() and not self._pieces:
            raise Elsewhere("it stops")
        return self._connection.session.gone

    def _data(self, method: str, params: dict[str, Any]) -> bytes:
        try:
            return a2b_base64(self._ask_for("data", method, params))
        except ValueError as error:
            raise errors.Usage(
                reason=f"the answer to {method} is no base64 ({error})", see="docs/design/hub.md"
            ) from None

    def _put(self, fd: int, text: str) -> None:
        self._pieces.append((fd, text.encode("utf-8", "backslashreplace").decode()))
        self._size += len(text)
        if self._size > _MOST_BUFFERED:
            self.confirm()

    def _send(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        hub = self._connection.hub
        hub.loop.call_soon_threadsafe(self._connection.peer.notify, "cli.write", {"write": pieces})

    def _ask_for(self, what: str, method: str, params: dict[str, Any]) -> str:
        """A text that the caller gives."""
        given = self._ask(method, params).get(what)
        if not isinstance(given, str):
            raise errors.Usage(reason=f"the answer to {method} has no {what}", see="docs/design/hub.md")
        return given

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the caller, and wait for its answer."""
        answers: SimpleQueue[tuple[Any, dict[str, Any] | None]] = SimpleQueue()
        hub = self._connection.hub
        hub.loop.call_soon_threadsafe(self._ask_in_loop, method, params, answers)
        result, error = answers.get()
        if error is not None:
            raise from_json(error)
        if not isinstance(result, dict):
            raise errors.OutputClosed(reason="the caller answers strangely")
        return result

    def _ask_in_loop(self, method: str, params: dict[str, Any], answers: "SimpleQueue[Any]") -> None:
        if self._connection.session.gone:
            answers.put((None, {"message": "the caller is gone"}))
        else:
            self._connection.peer.ask(method, params, lambda result, error: answers.put((result, error)))


def _store(hub: Hub, settings: Settings) -> Store:
    if settings["lock_timeout_s"] != hub.store.patience_s:
        raise Elsewhere("it waits for locks as long as it was told, and not as this command was")
    return hub.store
