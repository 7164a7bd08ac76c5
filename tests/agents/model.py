"""A model that says what a test wants it to say: a server on loopback that real programs of agents take for their own.

It answers each main request, which is one that offers tools, with the next step of its script. Other requests, such as
those that make titles, are answered with something short, and are no step.
"""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

from tests.agents.wires import BESIDE, Body, Call, Wire, arguments, shown, wire_of

TIMEOUT_S = 120.0  # for a program to ask; a start of one can take a minute where the machine has much else to do

# Tools that run a command, by whatever name a program offers them.
SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command")

AFTER_THE_SCRIPT = "That is all."


Wanted = tuple[str, Mapping[str, Any]]  # a tool, and what it is given


class Step(NamedTuple):
    """One answer of the model."""

    text: str = ""
    calls: tuple[str | Wanted, ...] = ()  # of tools; a string is a command, for whichever tool runs such
    is_held: bool = False  # given only when the test lets it go


def say(text: str, held: bool = False) -> Step:
    return Step(text, (), held)


def run(*commands: str, held: bool = False) -> Step:
    return Step("", commands, held)


def call(tool: str, **given: Any) -> Step:
    return Step("", ((tool, given),))


class Request:
    """A main request, as it arrived."""

    def __init__(self, wire: Wire, body: Body) -> None:
        self.body = body
        self.at = time.monotonic()
        self.shown = shown(wire, body)
        self.tools = wire.tools(body)
        self._gone = threading.Event()

    def let_go(self) -> None:
        """Have it answered now."""
        self._gone.set()

    def wait(self) -> None:
        self._gone.wait()


class Model:
    """`with Model(run("make"), say("Done.")) as model:` serves at `model.url` meanwhile."""

    def __init__(self, *script: Step) -> None:
        self._script = list(script)
        self._requests: list[Request] = []
        self._beside: list[str] = []
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> Sequence[Request]:
        """The main ones so far."""
        with self._changed:
            return list(self._requests)

    @property
    def beside(self) -> Sequence[str]:
        """The paths of all others."""
        with self._changed:
            return list(self._beside)

    def request(self, number: int, timeout_s: float = TIMEOUT_S) -> Request:
        """The main request of that number, from 1, once it is there."""
        with self._changed:
            is_there = self._changed.wait_for(lambda: len(self._requests) >= number, timeout_s)
            assert is_there, f"{len(self._requests)} main requests in {timeout_s} s, and not {number}: {self._beside}"
            return self._requests[number - 1]

    def then(self, *steps: Step) -> None:
        """More of the script."""
        with self._changed:
            self._script += steps

    def __enter__(self) -> "Model":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for request in self.requests:
            request.let_go()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, wire: Wire, body: Body) -> bytes:
        """The answer to a request, once it may be given."""
        request = Request(wire, body)
        if not request.tools:
            with self._changed:
                self._beside.append(wire.path)
            return wire.answer(body, "beside", "A title", [])
        with self._changed:
            self._requests.append(request)
            number = len(self._requests)
            step = self._script[number - 1] if number <= len(self._script) else say(AFTER_THE_SCRIPT)
            self._changed.notify_all()
        if step.is_held:
            request.wait()
        calls = [_call(request, f"{number}x{place}", wanted) for place, wanted in enumerate(step.calls)]
        return wire.answer(body, str(number), step.text, calls)

    def take_beside(self, path: str) -> tuple[int, Any]:
        with self._changed:
            self._beside.append(path)
        return next(((200, answer) for end, answer in BESIDE.items() if path.endswith(end)), (404, {"error": {}}))


def _call(request: Request, id: str, wanted: str | Wanted) -> Call:
    if not isinstance(wanted, str):
        return Call(id, *wanted)
    tool = next((name for name in SHELLS if name in request.tools), None)
    assert tool, f"no tool runs a command: {sorted(request.tools)}"
    return Call(id, tool, arguments(request.tools[tool], wanted))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: Model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that was killed reads no answer; anything else shows as an answer that never came."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._answer_json(*self.server.model.take_beside(self._path()))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        wire = wire_of(self._path())
        if wire is None:
            self._answer_json(*self.server.model.take_beside(self._path()))
        else:
            self._answer(200, "text/event-stream", self.server.model.take(wire, body))

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _answer_json(self, status: int, value: Any) -> None:
        self._answer(status, "application/json", json.dumps(value).encode())

    def _answer(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
