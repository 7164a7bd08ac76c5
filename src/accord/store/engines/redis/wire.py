"""One connection: it sends commands and reads the answers, and tells in accord's words what went wrong."""

import select
from _socket import SHUT_RDWR, socket
from time import monotonic

from accord import errors
from accord.store.engines.redis.address import Address
from accord.store.remote.wire import Endpoint, NotSent, NotTrusted, dial, dial_file, secured, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.engines.redis.facts import Facts

    Reply = Any  # bytes, int, None, or a list of these

_PIECE = 65536

# What a server says that could be otherwise in a moment; nothing was done.
_BUSY = {
    "LOADING": "it is reading its data",
    "BUSY": "a script keeps it busy",
    "READONLY": "it is a replica, which takes no writes",
    "MASTERDOWN": "it is a replica that has lost its master",
    "NOREPLICAS": "it has too few replicas to take writes (min-replicas-to-write)",
    "CLUSTERDOWN": "its cluster has no majority, or lacks slots",
    "TRYAGAIN": "its cluster is moving the slot",
    "ASK": "its cluster is moving the slot",
}

_NO_REDIS = "what answers is no Redis"

_TRUST = "ca=FILE in the URL names who signed its certificate, which must be valid for the URL's host"
_SHOW = "cert=FILE and key=FILE in the URL name the certificate that it wants to see"


class Lost(Exception):
    """No answer: the connection broke, or the server takes no commands now."""

    def __init__(self, reason: str, unsure: bool) -> None:
        self.reason = reason
        self.unsure = unsure  # the commands may have been done


class Elsewhere(Lost):
    """Another node of the cluster has the slot; nothing was done."""

    def __init__(self, node: "tuple[str, int]") -> None:
        super().__init__(f"its cluster names {node[0]}:{node[1]}, which did not answer", unsure=False)
        self.node = node


class NoScript(Exception):
    """The server does not know the script; nothing was done."""


class _Failure:
    """An error that the server answered."""

    def __init__(self, text: str) -> None:
        self.text = text


class Wire:
    facts: "Facts"  # what its server said of itself, when it was connected

    def __init__(self, address: Address, node: "tuple[str, int] | None") -> None:
        """Connect. What the server answers to a wrong user is an error of accord, and all else `Lost`."""
        self._address = address
        self._node = node
        self._link = self._dialled()
        self._within_s = 0.0  # how long it waits for each piece of an answer
        self._text = b""  # that came, from `_at` on not read yet
        self._at = 0
        self._poll = select.poll()
        self._poll.register(self._link, select.POLLIN)
        try:
            self._enter()
        except BaseException as error:
            self.close()
            if isinstance(error, Lost):
                error.unsure = False  # nothing was asked of it yet
            raise

    def ask(self, *commands: bytes, timeout_s: "float | None" = None) -> "list[Reply]":
        """Send all at once; the answer to each. An error answered to one is raised, once all were read."""
        link = self._link
        within_s = timeout_s or self._address.timeout_s
        try:
            if within_s != self._within_s:
                link.settimeout(within_s)
                self._within_s = within_s
            link.sendall(b"".join(commands))
            found = [self._reply() for _ in commands]
        except TimeoutError:
            raise Lost(f"no answer came within {within_s:.3g} s", unsure=True) from None
        except (OSError, EOFError) as error:
            raise self._lost(error) from None
        except ValueError:
            raise Lost(_NO_REDIS, unsure=True) from None
        except BaseException:
            self.close()  # an answer may be under way, and would be taken for the next
            raise
        for answer in found:
            if isinstance(answer, _Failure):
                raise self._error(answer.text)
        return found

    def is_dead(self) -> bool:
        """Whether the server has ended the connection since, so that nothing sent on it can arrive."""
        return bool(self._poll.poll(0))  # nothing was asked: there is nothing to read but the end

    def interrupt(self) -> None:
        """Wake whoever waits for an answer in another thread; the connection is of no more use."""
        try:
            socket.shutdown(self._link, SHUT_RDWR)  # not the method of TLS, which is not for threads
        except OSError:
            pass

    def close(self) -> None:
        self._link.close()

    def _dialled(self) -> socket:
        address = self._address
        deadline = monotonic() + address.timeout_s
        tls = address.tls() if address.is_secure else None
        try:
            if self._node is None:
                return dial_file(address.socket, deadline)
            bare = dial(*self._node, deadline)
        except (OSError, ValueError) as error:
            raise Lost(words(error), unsure=False) from None
        if tls is None:
            return bare
        try:
            return secured(bare, Endpoint(*self._node, secure=True), tls, deadline)
        except NotTrusted as error:
            raise address.refused(f"TLS failed, {error}: {_SHOW if 'alert' in str(error) else _TRUST}") from None
        except NotSent as error:
            raise Lost(str(error), unsure=False) from None

    def _enter(self) -> None:
        """Say who comes, and choose the database."""
        address = self._address
        commands = [pack(b"AUTH", *address.login)] if address.login else []
        if address.database:
            commands.append(pack(b"SELECT", b"%d" % address.database))
        if commands:
            self.ask(*commands)

    def _reply(self) -> "Reply":
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self._exactly(int(rest))
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]
        if kind == b"-":
            return _Failure(rest.decode("utf-8", "replace"))
        if kind != b"+":
            raise EOFError(_NO_REDIS)
        return rest

    def _line(self) -> bytes:
        while (end := self._text.find(b"\r\n", self._at)) < 0:
            self._text, self._at = self._text[self._at :] + self._some(), 0
        line = self._text[self._at : end]
        self._at = end + 2
        return line

    def _exactly(self, size: int) -> bytes:
        lacking = self._at + size + 2 - len(self._text)
        if lacking > 0:
            pieces = [self._text[self._at :]]
            while lacking > 0:
                pieces.append(self._some())
                lacking -= len(pieces[-1])
            self._text, self._at = b"".join(pieces), 0
        found = self._text[self._at : self._at + size]
        self._at += size + 2
        return found

    def _some(self) -> bytes:
        piece: bytes = self._link.recv(_PIECE)
        if not piece:
            raise EOFError("it ended the connection")
        return piece

    def _lost(self, error: Exception) -> Exception:
        """What it means that the connection broke."""
        if "ALERT" in (getattr(error, "reason", None) or ""):  # it comes before any command is done
            return self._address.refused(f"TLS failed, {words(error)}: {_SHOW}")
        said = "it ended the connection" if type(error).__name__ == "SSLEOFError" else words(error)
        # How much of an alert comes before the connection's end is a matter of luck.
        return Lost(f"{said}; if it is for want of a certificate, {_SHOW}" if self._address.shows_none else said, True)

    def _error(self, text: str) -> Exception:
        code, said = _code(text)
        path = self._address.shown
        if code == "NOSCRIPT":
            return NoScript()
        if code == "MOVED":
            return Elsewhere(self._moved_to(said))
        if code in _BUSY:
            return Lost(_BUSY[code], unsure=False)
        if "max number of clients" in said:
            return Lost("it has as many clients as it takes (maxclients)", unsure=False)
        if code == "OOM":
            return errors.StorageFull(path=path)
        if code == "MISCONF":
            return errors.StorageFailing(path=path, reason="the server cannot write to it (MISCONF)")
        if code == "WRONGTYPE":
            return errors.NotAStore(
                path=path, reason="its keys are those of another program; another prefix may be free"
            )
        return self._address.refused(said)

    def _moved_to(self, text: str) -> "tuple[str, int]":
        host, _, port = text.split()[-1].rpartition(":")
        return host or (self._node[0] if self._node else "localhost"), int(port)


def pack(*parts: bytes) -> bytes:
    return b"*%d\r\n%b" % (len(parts), b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]))


def _code(text: str) -> "tuple[str, str]":
    """The word in capitals that begins what the server answered, and what follows it."""
    code, _, said = text.partition(" ")
    inner = text.partition("@user_script: ")[2].partition(": -")[2]  # servers before 7.0 wrap what a script met
    if inner:
        return inner.partition(" ")[0], text
    return (code, said) if code.isupper() else ("", text)
