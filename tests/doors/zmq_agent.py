"""An agent that holds a connection over ZeroMQ: plain pyzmq and JSON, as somebody without accord would write it."""

import json
import time
from pathlib import Path
from typing import Any

import zmq

TIMEOUT_S = 15.0


class Agent:
    def __init__(self, key: "dict[str, str] | None", endpoint: str = "", **options: Any) -> None:
        """With the contents of a key's file; None: without a key. Options are those of the socket."""
        self.pushed: list[dict[str, Any]] = []  # what came while an answer was waited for
        self._zmq: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._zmq.socket(zmq.DEALER)
        if key is not None:
            self._socket.curve_serverkey = key["server"].encode()
            self._socket.curve_publickey = key["public"].encode()
            self._socket.curve_secretkey = key["secret"].encode()
        for name, value in options.items():
            setattr(self._socket, name, value)
        self._socket.connect(endpoint or (key or {})["endpoint"])
        self._last_id = 0

    def close(self) -> None:
        self._zmq.destroy(linger=0)

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def send(self, message: object) -> None:
        self.send_raw(json.dumps(message).encode())

    def send_raw(self, *frames: bytes) -> None:
        self._socket.send_multipart(frames, zmq.NOBLOCK)

    def receive(self, timeout_s: float = TIMEOUT_S) -> Any:
        """The next message; None when none comes."""
        if not self._socket.poll(int(timeout_s * 1000)):
            return None
        (frame,) = self._socket.recv_multipart()
        return json.loads(frame)

    def ask(self, method: str, **params: object) -> Any:
        """The whole answer to one request."""
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        deadline = time.monotonic() + TIMEOUT_S
        while (message := self.receive(deadline - time.monotonic())) is not None:
            if message.get("id") == self._last_id:
                return message
            self.pushed.append(message)
        raise AssertionError(f"{method} is not answered")

    def call(self, method: str, **params: object) -> Any:
        answer = self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, **params: object) -> str:
        """The code of the error that a request is answered with."""
        return str(self.ask(method, **params)["error"]["data"]["error_code"])

    def become(self, name: str, token: str) -> None:
        self.call("session.open", agent=name, token=token)

    def next_pushed(self, method: str, timeout_s: float = TIMEOUT_S) -> Any:
        """The parameters of the next notification of that kind; None when none comes."""
        deadline = time.monotonic() + timeout_s
        while True:
            message = self.pushed.pop(0) if self.pushed else self.receive(max(0.0, deadline - time.monotonic()))
            if message is None or message.get("method") == method:
                return message and message["params"]

    def next_mail(self) -> Any:
        return self.next_pushed("mail.message")["message"]

    def hears_nothing(self, for_s: float = 1.0) -> bool:
        return not self.pushed and self.receive(for_s) is None


def read_key(path: str) -> dict[str, str]:
    key: dict[str, str] = json.loads(Path(path).read_text())
    return key
