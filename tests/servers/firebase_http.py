"""A Realtime Database over HTTP, as strict as the real one where that is known, and stricter where it is not.

Run as a program it prints its port. Its data last as long as its journal. What is not known of the real
service is refused here, so that nobody relies on it: PATCH with if-match, the ETag of an answer to PUT.
"""

import argparse
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, unquote

from tests.servers import firebase_tree as tree
from tests.servers.firebase_auth import ADMIN, Accounts
from tests.servers.firebase_hooks import LONG_S, Hook, Hooks
from tests.servers.firebase_rules import Rules
from tests.servers.firebase_tree import Wrong

KNOWN = {
    "print", "shallow", "ns", "access_token", "auth_variable_override", "timeout", "writeSizeLimit", *tree.ORDER,
}  # fmt: skip
MOST_BODY_BYTES = 256 * 1024 * 1024
REASONS = {200: "OK", 204: "No Content", 304: "Not Modified", 307: "Temporary Redirect", 412: "Precondition Failed"}


class Ended(Exception):
    """The connection is to end without an answer."""


class Request:
    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        path, _, options = target.partition("?")
        self.method = method
        self.target = target
        self.path = unquote(path.strip("/").removesuffix(".json"))
        self.is_json = path.endswith(".json")
        self.options = dict(parse_qsl(options, keep_blank_values=True))
        self.headers = headers
        self.body = body
        self.namespace = self.options.get("ns", "")


class Answer:
    def __init__(self, status: int, value: Any = None, etag: str = "", **headers: str) -> None:
        self.status = status
        self.body = b"" if status in (204, 304) else json.dumps(value, ensure_ascii=False).encode()
        self.headers = {name.replace("_", "-"): text for name, text in headers.items()}
        if etag:
            self.headers["ETag"] = etag


class Listener:
    def __init__(self, path: tuple[str, ...], who: Any) -> None:
        self.path = path
        self.who = who
        self.events: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()


class Database:
    """All data, and who listens to them. One lock: what a request does happens at one moment."""

    def __init__(self, journal: Path | None) -> None:
        self.lock = threading.RLock()
        self.roots: dict[str, tree.Tree] = {}
        self.listeners: list[tuple[str, Listener]] = []
        self.rules: Rules | None = None
        self.clock_ahead_s = 0.0
        self._journal: BinaryIO | None = None
        if journal is not None:
            if journal.exists():
                for line in journal.read_bytes().splitlines(keepends=True):
                    if line.endswith(b"\n"):  # not one that a killed server left half written
                        namespace, path, stored = json.loads(line)
                        root = self.root(namespace)
                        root.root = tree.changed(root.root, tuple(path), stored)
            self._journal = journal.open("ab", buffering=0)

    def now(self) -> float:
        return time.time() + self.clock_ahead_s

    def root(self, namespace: str) -> tree.Tree:
        if namespace not in self.roots:
            self.roots[namespace] = tree.Tree()
            self.roots[namespace].now = self.now
        return self.roots[namespace]

    def write(self, namespace: str, changes: list[tuple[tuple[str, ...], Any]], who: Any, event: Any = None) -> None:
        """All of the changes or none: `event` is what a PATCH tells listeners, and where."""
        root = self.root(namespace)
        old = new = root.root
        for path, stored in changes:
            new = tree.changed(new, path, stored)
        for path, _ in changes:
            if self.rules and who != ADMIN and not self.rules.may_write(old, new, path, who, self.now()):
                raise Wrong("Permission denied", 401)
        root.root = new
        if self._journal is not None:
            lines = [json.dumps([namespace, path, stored]) + "\n" for path, stored in changes]
            self._journal.write("".join(lines).encode())
        for where, listener in self.listeners:
            if where == namespace:
                told = [event] if event else [("put", path, stored) for path, stored in changes]
                for kind, path, stored in told:
                    self._tell(root, listener, kind, path, stored)

    def _tell(self, root: tree.Tree, listener: Listener, kind: str, path: tuple[str, ...], stored: Any) -> None:
        depth = len(listener.path)
        if listener.path == path[:depth]:
            told = {"path": "/" + "/".join(path[depth:]), "data": tree.as_shown(stored)}
            listener.events.put((kind, told))
        elif listener.path[: len(path)] == path:
            listener.events.put(("put", {"path": "/", "data": tree.as_shown(root.get(listener.path))}))


class Server:
    def __init__(self, journal: Path | None, port: int) -> None:
        self.data = Database(journal)
        self.accounts = Accounts()
        self.hooks = Hooks()
        self.requests: list[tuple[str, str, bool]] = []  # method, path and whether it was conditional
        self.keep_alive_s = 30.0
        self.redirect_to = ""
        self._socket = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port = self._socket.getsockname()[1]

    def serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()

    def _serve_one(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while (request := _read(stream)) is not None:
                    self._answer(connection, request)
            except (OSError, Ended, ValueError):
                pass

    def _answer(self, connection: socket.socket, request: Request) -> None:
        try:
            if request.path == ".control":
                answer = Answer(200, self._control(json.loads(request.body)))
            elif request.path == "token":
                form = dict(parse_qsl(request.body.decode()))
                answer = Answer(200, self.accounts.token(form, f"http://127.0.0.1:{self.port}/token"))
            elif request.headers.get("accept", "") == "text/event-stream":
                return self._stream(connection, request)
            else:
                self.requests.append((request.method, request.path, "if-match" in request.headers))
                answer = self._hooked(connection, request)
        except Wrong as wrong:
            answer = Answer(wrong.status, {"error": str(wrong)})
        silent = request.options.get("print") == "silent" and answer.status == 200 and request.path != ".control"
        _send(connection, Answer(204, etag=answer.headers.get("ETag", "")) if silent else answer)

    # Misfortunes.

    def _hooked(self, connection: socket.socket, request: Request) -> Answer:
        hook = self.hooks.next_for(request.method, request.path, request.body)
        if hook is None:
            return self._do(request)
        hook.reached.set()
        if hook.kind == "fail":
            return Answer(hook.status, {"error": "as the test wants it"}, **hook.headers)
        if hook.kind == "late":
            threading.Thread(target=self._land, args=(hook, request), daemon=True).start()
        if hook.kind in ("late", "drop"):
            raise Ended
        if hook.kind == "hold":
            hook.released.wait(LONG_S)
            if _is_left(connection):
                raise Ended
        if hook.kind == "rival":
            for path, value in hook.writes:
                self._write_raw(request.namespace, path, value)
        answer = self._do(request)
        if hook.kind == "lose":
            raise Ended
        if hook.kind == "stop":
            hook.released.wait(LONG_S)
        return answer

    def _land(self, hook: Hook, request: Request) -> None:
        hook.released.wait(LONG_S)
        try:
            self._do(request)
        except Wrong:
            pass
        hook.landed.set()

    def _write_raw(self, namespace: str, path: str, value: Any) -> None:
        with self.data.lock:
            place = tree.split_path(path)
            self.data.write(namespace, [(place, self.data.root(namespace).prepared(place, value))], ADMIN)

    # Requests.

    def _do(self, request: Request) -> Answer:
        if self.redirect_to:
            return Answer(307, None, Location=self.redirect_to + request.target)
        if not request.is_json:
            raise Wrong("a path ends in .json", 404)
        if unknown := request.options.keys() - KNOWN:
            raise Wrong(f"unknown parameters {sorted(unknown)}")
        path = tree.split_path(request.path)
        who = self.accounts.who(request.headers.get("authorization", ""), request.options, request.namespace)
        method = request.headers.get("x-http-method-override", request.method).upper()
        with self.data.lock:
            if method == "GET":
                return self._get(request, path, who)
            if method == "PUT":
                return self._put(request, path, who, _json(request.body))
            if method == "DELETE":
                return self._put(request, path, who, None)
            if "if-match" in request.headers:
                raise Wrong("a conditional request must be GET, PUT or DELETE")
            if method == "PATCH":
                return self._patch(request, path, who, _json(request.body))
            if method == "POST":
                name = "-" + os.urandom(8).hex()
                self._put(request, (*path, name), who, _json(request.body))
                return Answer(200, {"name": name})
        raise Wrong("no such method", 405)

    def _get(self, request: Request, path: tuple[str, ...], who: Any) -> Answer:
        self._check_read(request.namespace, path, who)
        value = self.data.root(request.namespace).get(path)
        options = request.options
        wants_etag = request.headers.get("x-firebase-etag", "") == "true"
        if "shallow" in options:
            if wants_etag or tree.ORDER & options.keys():
                raise Wrong("shallow cannot be combined with other query parameters")
            shown = dict.fromkeys(value, True) if isinstance(value, dict) else value
            return Answer(200, shown)
        if tree.ORDER & options.keys():
            if wants_etag or "if-none-match" in request.headers:
                raise Wrong("a conditional request cannot have a query")
            return Answer(200, tree.as_shown(tree.query(value, options)))
        etag = tree.etag_of(value)
        if request.headers.get("if-none-match") == etag:
            return Answer(304, etag=etag)
        answer = Answer(200, tree.as_shown(value), etag if wants_etag else "")
        if len(answer.body) > tree.MOST_ANSWER_BYTES:
            raise Wrong("Data requested exceeds the maximum size that can be accessed with a single request.")
        return answer

    def _put(self, request: Request, path: tuple[str, ...], who: Any, value: Any) -> Answer:
        root = self.data.root(request.namespace)
        wanted = request.headers.get("if-match")
        if wanted is not None:
            if tree.ORDER & request.options.keys():
                raise Wrong("a conditional request cannot have a query")
            self._check_read(request.namespace, path, who)  # since its answer may tell the value
            current = root.get(path)
            if wanted != tree.etag_of(current):
                return Answer(412, tree.as_shown(current), tree.etag_of(current))
        stored = root.prepared(path, value)
        self.data.write(request.namespace, [(path, stored)], who)
        return Answer(200, tree.as_shown(stored))

    def _patch(self, request: Request, path: tuple[str, ...], who: Any, value: Any) -> Answer:
        if not isinstance(value, dict):
            raise Wrong("Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?")
        root = self.data.root(request.namespace)
        places = {(*path, *tree.split_path(key)): part for key, part in value.items()}
        parents = {place[:depth] for place in places for depth in range(len(place))}
        if parents & places.keys():
            raise Wrong("one path of the update is the parent of another")
        changes = [(place, root.prepared(place, part)) for place, part in places.items()]
        event = ("patch", path, {"/".join(place[len(path) :]): stored for place, stored in changes})
        self.data.write(request.namespace, changes, who, event)
        return Answer(200, value)

    def _check_read(self, namespace: str, path: tuple[str, ...], who: Any) -> None:
        data = self.data
        if data.rules and who != ADMIN and not data.rules.may_read(data.root(namespace).root, path, who, data.now()):
            raise Wrong("Permission denied", 401)

    # Streams.

    def _stream(self, connection: socket.socket, request: Request) -> None:
        self.requests.append(("STREAM", request.path, False))
        hook = self.hooks.next_for("STREAM", request.path, b"")
        if hook is not None:
            hook.reached.set()
            if hook.kind == "fail":
                return _send(connection, Answer(hook.status, {"error": "as the test wants it"}))
            raise Ended
        if self.redirect_to:
            return _send(connection, Answer(307, None, Location=self.redirect_to + request.target))
        path = tree.split_path(request.path)
        who = self.accounts.who(request.headers.get("authorization", ""), request.options, request.namespace)
        listener = Listener(path, who)
        entry = (request.namespace, listener)
        with self.data.lock:
            self._check_read(request.namespace, path, who)
            first = {"path": "/", "data": tree.as_shown(self.data.root(request.namespace).get(path))}
            listener.events.put(("put", first))
            self.data.listeners.append(entry)
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n")
            connection.sendall(f"Date: {formatdate(self.data.now(), usegmt=True)}\r\n\r\n".encode())
            for kind, told in self._events(connection, listener):
                connection.sendall(f"event: {kind}\ndata: {json.dumps(told)}\n\n".encode())
        finally:
            with self.data.lock:
                self.data.listeners.remove(entry)
        raise Ended

    def _events(self, connection: socket.socket, listener: Listener) -> Iterator[tuple[str, Any]]:
        while True:
            deadline = time.monotonic() + self.keep_alive_s
            event: tuple[str, Any] | None = ("keep-alive", None)
            while (left_s := deadline - time.monotonic()) > 0:
                try:
                    event = listener.events.get(timeout=min(left_s, 1.0))
                    break
                except queue.Empty:
                    if _is_left(connection):
                        return
            if event is None:
                return
            yield event
            if event[0] in ("cancel", "auth_revoked"):
                return

    # What tests say to it.

    def _control(self, order: dict[str, Any]) -> Any:
        do = order.pop("do")
        if do == "hook":
            return self.hooks.add(order)
        if do in ("wait", "reached", "land", "release"):
            return self._control_hook(do, self.hooks.find(order["hook"]))
        if do == "clear":
            return self.hooks.clear()
        if do == "set":
            return self._set(**order)
        if do == "write":
            return self._write_raw(order.get("namespace", ""), order["path"], order["value"])
        if do == "read":
            root = self.data.root(order.get("namespace", ""))
            return root.get(tree.split_path(order["path"]))
        if do == "requests":
            found, self.requests = self.requests, []
            return found
        if do == "streams":
            return self._end_streams(**order)
        raise Wrong(f"no order {do}")

    def _control_hook(self, do: str, hook: Hook) -> bool:
        if do == "wait":
            return hook.reached.wait(LONG_S)
        if do == "reached":
            return hook.reached.is_set()
        hook.released.set()
        return do == "release" or hook.landed.wait(LONG_S)

    def _set(self, **settings: Any) -> None:
        for name, value in settings.items():
            if name == "rules":
                self.data.rules = Rules(value) if value else None
            elif name == "keys":
                self.accounts.keys = {address: (int(key[0]), int(key[1])) for address, key in value.items()}
            elif name == "token_lives_s":
                self.accounts.token_lives_s = value
            elif name == "clock_ahead_s":
                self.data.clock_ahead_s = value
            elif name in ("keep_alive_s", "redirect_to"):
                setattr(self, name, value)
            else:
                raise Wrong(f"no setting {name}")

    def _end_streams(self, kind: str = "", revoke: bool = False) -> int:
        """End each stream, with an event of this kind or without; how many there were."""
        if revoke:
            self.accounts.revoke()
        with self.data.lock:
            for _, listener in self.data.listeners:
                listener.events.put((kind, "credential is no longer valid") if kind else None)
            return len(self.data.listeners)


def _read(stream: Any) -> Request | None:
    first = stream.readline(65537)
    if not first.strip():
        return None
    method, target, _ = first.decode("latin-1").split()
    headers: dict[str, str] = {}
    while line := stream.readline(65537).strip():
        name, _, text = line.decode("latin-1").partition(":")
        headers[name.lower()] = text.strip()
    size = int(headers.get("content-length", "0"))
    if size > MOST_BODY_BYTES:
        raise ValueError("too much")
    body = stream.read(size)
    if len(body) != size:
        return None
    return Request(method, target, headers, body)


def _send(connection: socket.socket, answer: Answer) -> None:
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Error')}"]
    lines += [f"{name}: {text}" for name, text in answer.headers.items()]
    lines.append(f"Date: {formatdate(_clock(), usegmt=True)}")
    if answer.status not in (204, 304):
        lines += ["Content-Type: application/json; charset=utf-8", f"Content-Length: {len(answer.body)}"]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + answer.body)


_clock = time.time


def _is_left(connection: socket.socket) -> bool:
    """Whether the other end has gone; it says nothing while it waits for an answer."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _json(body: bytes) -> Any:
    def refuse(word: str) -> Any:
        raise ValueError(word)

    try:
        return json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Wrong("Invalid data; couldn't parse JSON object, array, or value.") from None


def main() -> None:
    global _clock
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    server = Server(given.journal, given.port)
    _clock = server.data.now
    os.write(1, f"{server.port}\n".encode())
    server.serve()


if __name__ == "__main__":
    main()
