"""Connections to servers elsewhere, over TLS and through proxies where that is asked for.

On bare sockets: `socket` and `ssl` are imported only for `https`.
"""

import os
from _socket import (
    AF_UNIX,
    IPPROTO_TCP,
    SHUT_RDWR,
    SO_KEEPALIVE,
    SOCK_STREAM,
    SOL_SOCKET,
    TCP_NODELAY,
    getaddrinfo,
    socket,
)
from binascii import b2a_base64
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

MOST_HEAD = 65536  # bytes before an answer's body
PIECE = 65536
_GRACE_S = 1.0  # after a deadline, in which what is there already is still taken


class NotSent(Exception):
    """Nobody was reached, or not all of the request went out: certainly nothing was done."""


class NotTrusted(NotSent):
    """The two sides do not take each other's certificates."""


class NoAnswer(Exception):
    """The request went out, and no whole answer came back: what it asked for may be done."""


class Endpoint:
    def __init__(self, host: str, port: int, secure: bool = False) -> None:
        self.host = host
        self.port = port
        self.secure = secure
        self.shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.idle: list[tuple[float, Wire]] = []  # since when


class Wire:
    """A connection. Bytes that came are kept until they are asked for, also when a deadline passes meanwhile."""

    def __init__(self, connection: socket) -> None:
        self._socket = connection
        self._got = bytearray()

    def send(self, data: bytes, deadline: float) -> None:
        self._socket.settimeout(max(0.001, deadline - monotonic()))
        self._socket.sendall(data)

    def line(self, deadline: float) -> bytes:
        return self.until(b"\n", MOST_HEAD, deadline)

    def until(self, end: bytes, most: int, deadline: float) -> bytes:
        """Bytes up to and with `end`."""
        seen = 0
        while (at := self._got.find(end, seen)) < 0:
            if len(self._got) > most:
                raise EOFError("what it answers is no HTTP")
            seen = max(0, len(self._got) - len(end))
            self._fill(deadline)
        return self._cut(at + len(end))

    def exactly(self, size: int, deadline: float) -> bytes:
        while len(self._got) < size:
            self._fill(deadline)
        return self._cut(size)

    def some(self, most: int, deadline: float) -> bytes:
        if not self._got:
            self._fill(deadline)
        return self._cut(most)

    def is_quiet(self) -> bool:
        """Whether nothing came, its end included, that nobody asked for."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except BlockingIOError:
            return not self._got
        except OSError as error:
            return type(error).__name__ == "SSLWantReadError" and not self._got
        return False

    def keep_alive(self) -> None:
        self._socket.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)

    def end(self) -> None:
        try:
            socket.shutdown(self._socket, SHUT_RDWR)  # not that of `ssl`, which another thread may be reading with
        except OSError:
            pass

    def close(self) -> None:
        self._socket.close()

    def _fill(self, deadline: float) -> None:
        left_s = deadline - monotonic()
        if left_s < -_GRACE_S:
            raise TimeoutError
        self._socket.settimeout(max(0.001, left_s))
        piece = self._socket.recv(PIECE)
        if not piece:
            raise EOFError("it closed the connection")
        self._got += piece

    def _cut(self, size: int) -> bytes:
        found = bytes(self._got[:size])
        del self._got[:size]
        return found


def tls_context(ca: str = "", cert: str = "", key: str = "") -> "ssl.SSLContext":
    """Trusts the authority in file `ca`, or else those of this machine, and shows a certificate; may raise OSError."""
    import ssl

    context = ssl.create_default_context(cafile=ca or None)
    if cert:
        context.load_cert_chain(cert, key or None)
    return context


def basic(user: str, password: str) -> str:
    """The value of a header that tells who asks."""
    return "Basic " + b2a_base64(f"{user}:{password}".encode(), newline=False).decode()


def connect(endpoint: Endpoint, tls: "ssl.SSLContext | None", deadline: float) -> Wire:
    """A connection to use; `NotSent` says why there is none."""
    proxy = _proxy_for(endpoint) if endpoint.secure else None
    try:
        bare = dial(*(proxy[:2] if proxy else (endpoint.host, endpoint.port)), deadline)
    except (OSError, ValueError) as error:
        raise NotSent(f"{'the proxy of ' if proxy else ''}{endpoint.shown}: {words(error)}") from None
    wire = Wire(bare)
    try:
        if proxy:
            _tunnel(wire, endpoint, proxy[2], deadline)
        return Wire(secured(bare, endpoint, tls, deadline)) if endpoint.secure else wire
    except BaseException:
        wire.close()
        raise


def secured(bare: socket, endpoint: Endpoint, tls: "ssl.SSLContext | None", deadline: float) -> socket:
    """The same connection over TLS; whoever it is at the other end is who the endpoint names."""
    import socket as sockets
    import ssl

    whole = sockets.socket(fileno=bare.detach())
    try:
        whole.settimeout(max(0.001, deadline - monotonic()))
        return (tls or tls_context()).wrap_socket(whole, server_hostname=endpoint.host)
    except ssl.SSLError as error:
        whole.close()
        kind = NotSent if isinstance(error, TimeoutError | ssl.SSLEOFError) else NotTrusted
        raise kind(f"{endpoint.shown}: {words(error)}") from None
    except OSError as error:
        whole.close()
        raise NotSent(f"{endpoint.shown}: {words(error)}") from None


def dial(host: str, port: int, deadline: float) -> socket:
    # A name in ASCII needs no codec, which would have to be imported.
    name = host.encode() if host.isascii() else host
    failure: OSError = TimeoutError("timed out")
    for family, kind, protocol, _, address in getaddrinfo(name, port, 0, SOCK_STREAM):
        connection = socket(family, kind, protocol)
        try:
            connection.settimeout(max(0.001, deadline - monotonic()))
            connection.connect(address)
            connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            return connection
        except OSError as error:
            connection.close()
            failure = error
        except BaseException:
            connection.close()
            raise
    raise failure


def dial_file(path: str, deadline: float) -> socket:
    """A connection to a socket of this machine."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(max(0.001, deadline - monotonic()))
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _proxy_for(endpoint: Endpoint) -> "tuple[str, int, str] | None":
    """Host, port and login of the proxy that the environment names; an HTTP one, since the TLS goes through it."""
    value = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or ""
    if not value or _is_exempt(endpoint.host, os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""):
        return None
    login, _, place = value.rpartition("//")[2].partition("/")[0].rpartition("@")
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        host, port = place, "80"
    if not port.isdecimal():
        raise NotSent("the proxy that https_proxy names has no port that is a number")
    return host.strip("[]"), int(port), login


def _is_exempt(host: str, without: str) -> bool:
    for name in without.lower().split(","):
        suffix = name.strip().lstrip("*").lstrip(".")
        if name.strip() == "*" or (suffix and f".{host.lower()}".endswith(f".{suffix}")):
            return True
    return False


def _tunnel(wire: Wire, endpoint: Endpoint, login: str, deadline: float) -> None:
    request = f"CONNECT {endpoint.shown} HTTP/1.1\r\nHost: {endpoint.shown}\r\n"
    if login:
        from urllib.parse import unquote

        user, _, password = login.partition(":")
        request += f"Proxy-Authorization: {basic(unquote(user), unquote(password))}\r\n"
    send(wire, f"{request}\r\n".encode(), deadline)
    try:
        status, _ = read_head(wire, deadline)
    except NoAnswer as error:
        raise NotSent(f"the proxy of {endpoint.shown}: {error}") from None
    if status != 200:
        raise NotSent(f"the proxy of {endpoint.shown} answers {status}")


def words(error: BaseException) -> str:
    """Why, in few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    found = getattr(error, "verify_message", "") or getattr(error, "strerror", "") or error or type(error).__name__
    return str(found).rstrip(".")  # a sentence goes on with it


def send(wire: Wire, request: bytes, deadline: float) -> None:
    try:
        wire.send(request, deadline)
    except OSError as error:
        raise NotSent(words(error)) from None


def read_head(wire: Wire, deadline: float) -> "tuple[int, dict[str, str]]":
    try:
        while True:
            first, *lines = wire.until(b"\r\n\r\n", MOST_HEAD, deadline).decode("latin-1").split("\r\n")[:-2]
            version, _, status = first.partition(" ")
            if not version.startswith("HTTP/1.") or not status[:3].isdecimal():
                raise EOFError("what it answers is no HTTP")
            if not status.startswith("1"):  # else more of it follows
                return int(status[:3]), _headers(version, lines)
    except (OSError, EOFError) as error:
        # The server's answer to our certificate: it comes with its first bytes, before it reads any of ours.
        if "ALERT" in (getattr(error, "reason", None) or ""):
            raise NotTrusted(words(error)) from None
        raise NoAnswer(words(error)) from None


def _headers(version: str, lines: "Sequence[str]") -> "dict[str, str]":
    found = {"connection": "close"} if version == "HTTP/1.0" else {}
    for line in lines:
        name, _, value = line.partition(":")
        found[name.strip().lower()] = value.strip()
    return found
