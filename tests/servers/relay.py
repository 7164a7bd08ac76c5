"""Stands between clients and a server: counts what goes over, and breaks connections where a test wants it."""

import select
import socket
import threading
from contextlib import closing, suppress

_PIECE = 65536


class Relay:
    """On a port of loopback. A request is what a client sends at once, and waits for an answer to."""

    def __init__(self, unix_socket: str) -> None:
        self.requests = 0
        self.texts: list[bytes] = []  # of the requests, as far as they came at once
        self.answers: dict[bytes, bytes] = {}  # what is replaced in answers, by as many bytes
        self._unix_socket = unix_socket
        self._fate: dict[int, str] = {}  # of the requests to come, by their number
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *exc: object) -> None:
        self._listening.close()

    def url(self, prefix: str = "accord", query: str = "") -> str:
        return f"redis://127.0.0.1:{self.port}?prefix={prefix}{'&' * bool(query)}{query}"

    def lose(self, what: str, skip: int = 0) -> None:
        """The "request" itself, or the "answer" to what was done, after so many others; the connection ends."""
        with self._lock:
            self._fate[self.requests + skip + 1] = what

    def has_lost(self) -> bool:
        """Whether it came to that; if not, nothing is lost any more."""
        with self._lock:
            lost = not self._fate
            self._fate.clear()
            return lost

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with closing(client), socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._unix_socket)
            fate = ""
            is_new = True
            while True:
                for link in select.select([client, server], [], [])[0]:
                    data = link.recv(_PIECE)
                    if not data:
                        return
                    if link is client:
                        fate = self._next_fate(data) if is_new else fate
                        if fate == "request":
                            return
                        server.sendall(data)
                    elif fate == "answer":
                        return
                    else:
                        client.sendall(self._replaced(data))
                    is_new = link is server

    def _next_fate(self, text: bytes) -> str:
        with self._lock:
            self.requests += 1
            self.texts.append(text)
            return self._fate.pop(self.requests, "")

    def _replaced(self, data: bytes) -> bytes:
        for old, new in self.answers.items():
            data = data.replace(old, new)
        return data
