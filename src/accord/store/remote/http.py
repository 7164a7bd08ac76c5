"""HTTP/1.1 to servers elsewhere: kept connections, several endpoints, and what is known when one of them fails.

Not `http.client`, whose imports cost three times what Python's own start does, which every command would pay. It knows
what such servers answer: lengths, chunks, streams of lines.
"""

from _thread import allocate_lock, start_new_thread
from time import monotonic

from accord.store.remote.wire import (
    PIECE,
    Endpoint,
    NoAnswer,
    NotSent,
    NotTrusted,
    Wire,
    basic,
    connect,
    read_head,
    send,
    tls_context,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping, Sequence

    Request = tuple[str, str, bytes, Mapping[str, str]]  # method, path, body, headers

CONNECT_S = 5.0
_QUICK_S = 0.5  # to connect, as long as another endpoint may be faster
_IDLE_S = 50.0  # routers forget connections that nobody used for a minute
_MOST_IDLE = 16  # of one endpoint


NO_HEADERS: "Mapping[str, str]" = {}

__all__ = ["Answer", "Client", "Endpoint", "NoAnswer", "NotSent", "NotTrusted", "Stream", "basic", "tls_context"]


class Answer:
    __slots__ = ("body", "endpoint", "headers", "status")

    def __init__(self, status: int, headers: "dict[str, str]", body: bytes, endpoint: "Endpoint") -> None:
        self.status = status
        self.headers = headers  # by their names in lower case
        self.body = body
        self.endpoint = endpoint


class Client:
    """Threads may share it: each request has a connection to itself."""

    def __init__(
        self, endpoints: "Sequence[Endpoint]", tls: "ssl.SSLContext | None" = None, connect_s: float = CONNECT_S
    ) -> None:
        self._order = list(endpoints)  # those that failed last come last
        self._tls = tls
        self._connect_s = connect_s
        self._lock = allocate_lock()
        self._closed = False

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: "Mapping[str, str]" = NO_HEADERS,
        timeout_s: float = 30.0,
        safe: bool = False,
        attempt_s: float = 30.0,
    ) -> Answer:
        """What is `safe` may be done twice, so it is asked again, elsewhere, when no answer began in `attempt_s`."""
        deadline = monotonic() + timeout_s
        for endpoint, connect_s, is_last in self._tries():
            try:
                return self._ask(endpoint, method, path, body, headers, deadline, attempt_s, connect_s)
            except (NotSent, NoAnswer) as error:
                self.avoid(endpoint)
                if is_last or monotonic() >= deadline or (isinstance(error, NoAnswer) and not safe):
                    raise
        raise NotSent("it has no address")

    def several(
        self, requests: "Sequence[Request]", timeout_s: float = 30.0, at_once: int = 6
    ) -> "list[Answer | NotSent | NoAnswer]":
        """The answer to each, or why there is none: each is asked once. So many are under way together, in no order."""
        deadline = monotonic() + timeout_s
        found: list[Answer | NotSent | NoAnswer] = []
        for start in range(0, len(requests), at_once):
            found += self._together(requests[start : start + at_once], deadline)
        return found

    def stream(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: "Mapping[str, str]" = NO_HEADERS,
        timeout_s: float = 30.0,
    ) -> "Stream":
        """An answer without an end, or one that says why there is none; it has a connection of its own."""
        deadline = monotonic() + timeout_s
        for endpoint, connect_s, is_last in self._tries():
            wire = None
            try:
                wire = connect(endpoint, self._tls, min(deadline, monotonic() + connect_s))
                send(wire, _head(endpoint, method, path, body, headers) + body, deadline)
                return Stream(wire, *read_head(wire, deadline), endpoint)
            except (NotSent, NoAnswer):
                self.avoid(endpoint)
                if wire is not None:
                    wire.close()
                if is_last or monotonic() >= deadline:
                    raise
        raise NotSent("it has no address")

    def avoid(self, endpoint: Endpoint) -> None:
        """Try the others first from now on."""
        with self._lock:
            self._order.remove(endpoint)
            self._order.append(endpoint)
        while endpoint.idle:
            endpoint.idle.pop()[1].close()

    def close(self) -> None:
        self._closed = True
        for endpoint in self._order:
            while endpoint.idle:
                endpoint.idle.pop()[1].close()

    def _together(self, requests: "Sequence[Request]", deadline: float) -> "list[Answer | NotSent | NoAnswer]":
        endpoint = self._order[0]
        wires = self._connected(endpoint, len(requests), deadline)
        for place, (wire, request) in enumerate(zip(wires, requests, strict=True)):
            if isinstance(wire, Wire):
                method, path, body, headers = request
                try:
                    send(wire, _head(endpoint, method, path, body, headers) + body, deadline)
                except NotSent as error:
                    wire.close()
                    wires[place] = error
        return [
            self._received(endpoint, wire, request[0], deadline) if isinstance(wire, Wire) else wire
            for wire, request in zip(wires, requests, strict=True)
        ]

    def _received(self, endpoint: Endpoint, wire: Wire, method: str, deadline: float) -> "Answer | NotSent | NoAnswer":
        try:
            status, found = read_head(wire, deadline)
            text, may_stay = _read_body(wire, method, status, found, deadline)
        except (NotSent, NoAnswer) as error:
            wire.close()
            return error
        except BaseException:
            wire.close()
            raise
        self._put_back(endpoint, wire, may_stay)
        return Answer(status, found, text, endpoint)

    def _connected(self, endpoint: Endpoint, count: int, deadline: float) -> "list[Wire | NotSent | NoAnswer]":
        """So many connections; new ones are made at once, since each takes round trips of its own."""
        wires: list[Wire | NotSent | NoAnswer] = []
        while len(wires) < count and (wire := _take(endpoint)) is not None:
            wires.append(wire)
        more: list[Wire | NotSent] = []
        if len(wires) < count:
            made = allocate_lock()
            made.acquire()
            until = min(deadline, monotonic() + self._connect_s)

            def make(last: int = count - len(wires)) -> None:
                try:
                    wire: Wire | NotSent = connect(endpoint, self._tls, until)
                except NotSent as error:
                    wire = error
                except BaseException as error:
                    wire = NotSent(words(error))
                more.append(wire)
                if len(more) == last:
                    made.release()

            for _ in range(count - len(wires) - 1):
                start_new_thread(make, ())
            make()
            made.acquire()
        return wires + more

    def _put_back(self, endpoint: Endpoint, wire: Wire, may_stay: bool) -> None:
        if may_stay and not self._closed and len(endpoint.idle) < _MOST_IDLE:
            endpoint.idle.append((monotonic(), wire))
        else:
            wire.close()

    def _tries(self) -> "Iterator[tuple[Endpoint, float, bool]]":
        """Each endpoint twice, with how long connecting may take: a dead one in front must not cost all of it."""
        order = [*self._order]
        for endpoint in order:
            yield endpoint, min(_QUICK_S, self._connect_s), False
        for endpoint in order:
            yield endpoint, self._connect_s, endpoint is order[-1]

    def _ask(
        self,
        endpoint: Endpoint,
        method: str,
        path: str,
        body: bytes,
        headers: "Mapping[str, str]",
        deadline: float,
        attempt_s: float,
        connect_s: float,
    ) -> Answer:
        begun = min(deadline, monotonic() + attempt_s)
        wire = _take(endpoint) or connect(endpoint, self._tls, min(begun, monotonic() + connect_s))
        try:
            send(wire, _head(endpoint, method, path, body, headers) + body, begun)
            status, found = read_head(wire, begun)
            text, may_stay = _read_body(wire, method, status, found, deadline)
        except BaseException:
            wire.close()
            raise
        self._put_back(endpoint, wire, may_stay)
        return Answer(status, found, text, endpoint)


class Stream:
    """An answer as it comes, line by line; another thread may close it."""

    def __init__(self, wire: "Wire", status: int, headers: "dict[str, str]", endpoint: Endpoint) -> None:
        self.status = status
        self.headers = headers
        self.endpoint = endpoint
        self.closed = False
        self._wire = wire
        self._lock = allocate_lock()  # whoever reads holds it
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._left = 0  # of the chunk that is being read
        self._text = bytearray()
        wire.keep_alive()

    def line(self, timeout_s: float) -> bytes | None:
        """The next line, without its end; None when none came in time, or after `close`; `NoAnswer` at the end."""
        deadline = monotonic() + timeout_s
        with self._lock:
            seen = 0
            while not self.closed:
                end = self._text.find(b"\n", seen)
                if end >= 0:
                    line = bytes(self._text[:end])
                    del self._text[: end + 1]
                    return line
                seen = len(self._text)
                try:
                    self._read(deadline)
                except TimeoutError:
                    return None
                except (OSError, EOFError) as error:
                    if not self.closed:
                        raise NoAnswer(f"{self.endpoint.shown}: {words(error)}") from None
            return None

    def rest(self, timeout_s: float) -> bytes:
        """All that comes until the end or until then, for answers that are no stream."""
        deadline = monotonic() + timeout_s
        length = int(self.headers.get("content-length", 1 << 40))
        with self._lock:
            try:
                while not self.closed and len(self._text) < length:
                    self._read(deadline)
            except (OSError, EOFError):
                pass
            return bytes(self._text)

    def close(self) -> None:
        self.closed = True
        self._wire.end()  # wakes whoever reads
        with self._lock:
            self._wire.close()

    def _read(self, deadline: float) -> None:
        """Add what is there to the text, or wait for it; `EOFError` at the end."""
        wire = self._wire
        if not self._chunked:
            self._text += wire.some(PIECE, deadline)
            return
        while not self._left:
            size = wire.line(deadline)
            if size.strip():  # else it ends the chunk before
                self._left = _chunk_size(size)
                if not self._left:
                    raise EOFError("the stream is over")
        piece = wire.some(self._left, deadline)
        self._left -= len(piece)
        self._text += piece


def _take(endpoint: Endpoint) -> "Wire | None":
    """A connection that is there already and still open."""
    while True:
        try:
            since, wire = endpoint.idle.pop()
        except IndexError:
            return None
        if monotonic() - since < _IDLE_S and wire.is_quiet():
            return wire
        wire.close()


def _head(endpoint: Endpoint, method: str, path: str, body: bytes, headers: "Mapping[str, str]") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {endpoint.shown}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header of two lines")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _read_body(
    wire: Wire, method: str, status: int, headers: "dict[str, str]", deadline: float
) -> "tuple[bytes, bool]":
    """The body, and whether the connection can be used again."""
    may_stay = headers.get("connection", "").lower() != "close"
    try:
        if method == "HEAD" or status in {204, 304}:
            return b"", may_stay
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return _read_chunks(wire, deadline), may_stay
        if "content-length" in headers:
            return wire.exactly(int(headers["content-length"]), deadline), may_stay
        return _read_to_the_end(wire, deadline), False
    except (OSError, EOFError, ValueError) as error:
        raise NoAnswer(words(error)) from None


def _read_chunks(wire: Wire, deadline: float) -> bytes:
    found = []
    while size := _chunk_size(wire.line(deadline)):
        found.append(wire.exactly(size, deadline))
        wire.line(deadline)
    while wire.line(deadline).strip():
        pass  # trailers
    return b"".join(found)


def _read_to_the_end(wire: Wire, deadline: float) -> bytes:
    found = []
    try:
        while True:
            found.append(wire.some(PIECE, deadline))
    except EOFError:
        return b"".join(found)


def _chunk_size(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise EOFError("what it answers is no HTTP") from None
