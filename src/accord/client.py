"""A connection to a hub: JSON-RPC messages, one on each line of its socket."""

import os
from _socket import AF_UNIX, SOCK_STREAM, socket

from accord import jsontext, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

_PIECE = 65536


class Connection:
    def __init__(self, path: str, timeout_s: float) -> None:
        if not place.is_ours(os.path.dirname(path)):
            raise PermissionError(f"{path} may be somebody else's, who could ask for our files")
        self._socket = socket(AF_UNIX, SOCK_STREAM)
        self._start: list[bytes] = []  # of a line whose end has not come yet
        self._lines: list[bytes] = []  # the next one last
        self._asked = 0
        self.unheard: list[Message] = []  # what came while an answer was waited for
        try:
            self._socket.settimeout(timeout_s)
            self._socket.connect(path)
        except BaseException:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def raw(self) -> socket:
        """The socket itself, for those who write and read lines of their own."""
        return self._socket

    @property
    def has_more(self) -> bool:
        """Whether a message is here already."""
        return bool(self._lines)

    def close(self) -> None:
        self._socket.close()

    def send(self, message: "Message") -> None:
        self._socket.sendall(jsontext.dumps(message).encode() + b"\n")

    def receive(self, timeout_s: float) -> "Message | None":
        """The next message; None when the hub is gone, TimeoutError when nothing at all comes."""
        self._socket.settimeout(timeout_s)
        while not self._lines:
            piece = self._socket.recv(_PIECE)
            if not piece:
                return None
            *lines, rest = piece.split(b"\n")
            if lines:
                lines[0] = b"".join([*self._start, lines[0]])
                self._start = [rest]
                self._lines = lines[::-1]
            else:
                self._start.append(rest)
        message: Message = jsontext.loads_quickly(self._lines.pop())  # type: ignore[assignment]
        return message

    def call(self, method: str, params: "Message", timeout_s: float) -> "Message":
        """The result of one request. What else comes meanwhile is kept in `unheard`."""
        self._asked += 1
        self.send({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        while True:
            message = self.receive(timeout_s)
            if message is None:
                raise ConnectionResetError("the hub is gone")
            if message.get("id") == self._asked and "method" not in message:
                return _result(message)
            self.unheard.append(message)


def _result(message: "Message") -> "Message":
    if "error" in message:
        from accord.errors.table import from_json

        raise from_json(message["error"])
    result: Message = message["result"]
    return result
