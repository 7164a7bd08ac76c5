"""The HTTP client of the engines elsewhere, against servers that keep to the protocol, and some that do not."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from accord.store.remote.http import Client, Endpoint, NoAnswer, NotSent, NotTrusted, tls_context
from tests.need import need

pytestmark = pytest.mark.covers("S2")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, int]]
    go_on: threading.Event

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((f"{self.path} {body.decode()}", self.client_address[1]))
        if self.path == "/lines":
            return self.lines()
        if self.path == "/lost":
            self.close_connection = True
            return None
        if self.path == "/slow":
            self.go_on.wait(10)
        if self.path == "/long":
            return self.long(body)
        self.send_response(404 if self.path == "/none" else 200)
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        return None

    def long(self, body: bytes) -> None:
        """An answer that begins at once, and ends when it may."""
        self.send_response(200)
        self.send_header("Content-Length", str(2 * len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.go_on.wait(10)
        self.wfile.write(body)

    def lines(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"8\r\none\ntwo\n\r\n1\r\nt\r\n")
        self.go_on.wait(10)
        self.wfile.write(b"5\r\nhree\n\r\n0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that does not trust it ends its connection."""


class Server:
    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.go_on = threading.Event()
        handler = type("Handler", (Handler,), {"seen": self.seen, "go_on": self.go_on})
        self.http = _Quiet(("127.0.0.1", 0), handler)
        self.port = self.http.server_address[1]
        self.endpoint = Endpoint("127.0.0.1", self.port)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.go_on.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with closing(Client([server.endpoint])) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "status", "body"), [("/same", 200, b"sent"), ("/none", 404, b"sent"), ("/chunks", 200, b"abcde")]
)
def test_answers_come_whole_and_the_connection_is_kept(
    client: Client, server: Server, path: str, status: int, body: bytes
) -> None:
    for _ in range(3):
        answer = client.request("POST", path, b"sent")
        assert (answer.status, answer.body) == (status, body)
    assert len({port for _, port in server.seen}) == 1


def test_threads_share_a_client_and_not_a_connection(client: Client, server: Server) -> None:
    slow = threading.Thread(target=client.request, args=("POST", "/slow"))
    slow.start()
    until(lambda: bool(server.seen))
    assert client.request("POST", "/same", b"x").body == b"x"
    server.go_on.set()
    slow.join()
    assert len({port for _, port in server.seen}) == 2


def test_what_was_sent_and_not_answered_is_not_sent_again(client: Client, server: Server) -> None:
    with pytest.raises(NoAnswer):
        client.request("POST", "/lost", b"x")
    assert len(server.seen) == 1
    with pytest.raises(NoAnswer):
        client.request("POST", "/lost", b"x", safe=True)
    assert len(server.seen) == 3, "what is safe is tried twice"
    started = time.monotonic()
    with pytest.raises(NoAnswer, match="in time"):
        client.request("POST", "/slow", timeout_s=0.2)
    assert time.monotonic() - started < 5


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(server: Server) -> None:
    with closing(Client([server.endpoint])) as client, socket.create_server(("127.0.0.1", 0)) as other:
        endpoint = Endpoint("127.0.0.1", other.getsockname()[1])
        with closing(Client([endpoint])) as client:
            answers = threading.Thread(target=answer_one_for_each_connection, args=(other, 2))
            answers.start()
            for _ in range(2):
                assert client.request("POST", "/").body == b"ok"
                until(lambda: not endpoint.idle or not endpoint.idle[0][1].is_quiet())
            answers.join()


def test_nothing_was_sent_where_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with closing(Client([Endpoint("127.0.0.1", port)])) as client, pytest.raises(NotSent, match="refused"):
            client.request("POST", "/")
    with closing(Client([Endpoint("no.such.host.invalid", 1)])) as client, pytest.raises(NotSent):
        client.request("POST", "/")


def test_the_next_endpoint_answers_for_one_that_does_not(server: Server) -> None:
    with ExitStack() as stack:
        dead = stack.enter_context(socket.socket())
        dead.bind(("127.0.0.1", 0))
        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        places = [Endpoint("127.0.0.1", it.getsockname()[1]) for it in (dead, deaf)]
        client = stack.enter_context(closing(Client([*places, server.endpoint])))
        answer = client.request("POST", "/", b"x", safe=True, attempt_s=0.2)
        assert (answer.body, answer.endpoint) == (b"x", server.endpoint)
        started = time.monotonic()
        client.request("POST", "/", b"x", attempt_s=1.0)
        assert time.monotonic() - started < 0.9, "it is asked first from now on"


def test_an_answer_that_has_begun_may_take_longer_than_a_try(client: Client, server: Server) -> None:
    """Else a page that is too long for a slow network would never come."""
    threading.Timer(0.4, server.go_on.set).start()
    assert client.request("POST", "/long", b"long", safe=True, attempt_s=0.2).body == b"longlong"
    assert len(server.seen) == 1


def test_lines_come_as_they_are_sent(client: Client, server: Server) -> None:
    with closing(client.stream("POST", "/lines")) as stream:
        assert (stream.status, stream.line(5), stream.line(5)) == (200, b"one", b"two")
        assert stream.line(0.05) is None
        server.go_on.set()
        assert stream.line(5) == b"three"
        with pytest.raises(NoAnswer):
            stream.line(5)


def test_another_thread_closes_a_stream_that_is_waited_for(client: Client) -> None:
    stream = client.stream("POST", "/lines")
    found: list[bytes | None] = [stream.line(5), stream.line(5)]
    waits = threading.Thread(target=lambda: found.append(stream.line(60)))
    waits.start()
    stream.close()
    waits.join(5)
    assert found == [b"one", b"two", None]
    assert stream.line(5) is None


def test_what_is_no_http_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        answers = threading.Thread(target=answer_one_for_each_connection, args=(other, 1, b"hello\r\n\r\n"))
        answers.start()
        client = Client([Endpoint("127.0.0.1", other.getsockname()[1])])
        with pytest.raises(NoAnswer, match="no HTTP"):
            client.request("POST", "/")
        client.close()
        answers.join()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a private authority, and what it certified: server and client."""
    folder = tmp_path_factory.mktemp("ca")
    make = [
        need("openssl"),
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
    ]
    run([*make, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"], folder)
    for name in ("server", "client"):
        alt = ["-addext", "subjectAltName=IP:127.0.0.1"]
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key"]
        run([*make, *alt, *signed, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"], folder)
    return folder


def test_a_private_authority_and_certificates_of_clients(server: Server, authority: Path) -> None:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    context.load_verify_locations(authority / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True, do_handshake_on_connect=False)
    endpoint = Endpoint("127.0.0.1", server.port, secure=True)
    ca, cert, key = (str(authority / name) for name in ("ca.pem", "client.pem", "client.key"))
    with closing(Client([endpoint], tls_context(ca, cert, key))) as client:
        for _ in range(2):
            assert client.request("POST", "/", b"x").body == b"x"
        with closing(client.stream("POST", "/lines")) as stream:
            assert (stream.line(5), stream.line(5), stream.line(0.05)) == (b"one", b"two", None)
    assert len({port for _, port in server.seen}) == 2
    with closing(Client([endpoint], tls_context(ca))) as client, pytest.raises((NotSent, NoAnswer)):
        client.request("POST", "/", b"x")
    with closing(Client([endpoint])) as client, pytest.raises(NotTrusted, match="certificate"):
        client.request("POST", "/", b"x")
    assert len(server.seen) == 3


def test_importing_it_costs_next_to_nothing() -> None:
    program = "import sys, accord.store.remote.http; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"socket", "ssl", "http", "urllib", "email", "enum"} & set(loaded.split())


def answer_one_for_each_connection(
    listener: socket.socket, count: int, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
) -> None:
    for _ in range(count):
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)


def run(words: list[str], folder: Path) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)
