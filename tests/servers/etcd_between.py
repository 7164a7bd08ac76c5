"""What stands between a client and a member of etcd in tests: it counts what is asked, and changes or loses answers."""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

LOST = (0, "")  # no answer: the connection ends


class Between:
    """On a port of its own. Each answer that it is to give is for one request that writes, in their order."""

    def __init__(self, address: str) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.after: list[tuple[int, str]] = []  # what is answered instead, when it is done
        self.before: list[tuple[int, str]] = []  # the same, instead of doing it
        between = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = json.loads(body)
                between.asked.append((self.path, asked))
                writes = "request_put" in body.decode()
                if writes and between.before:
                    self.say(*between.before.pop(0))
                    return
                status, text = forward(address, self.path, body, dict(self.headers))
                if writes and between.after:
                    self.say(*between.after.pop(0))
                else:
                    self.write(status, text)

            def say(self, status: int, message: str) -> None:
                if not status:
                    self.close_connection = True
                else:
                    self.write(status, json.dumps({"error": message, "message": message, "code": 2}).encode())

            def write(self, status: int, text: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> "Between":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def forward(address: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request("POST", path, body, {name: headers[name] for name in headers if name != "Host"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
