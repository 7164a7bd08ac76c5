"""One connection: it sends commands and reads the answers, and tells in accord's words what went wrong."""

import ssl

from redis import exceptions

from accord import errors
from accord.store.engines.redis.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Reply = Any  # bytes, int, None, or a list of these

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


class Wire:
    def __init__(self, address: Address, node: "tuple[str, int] | None") -> None:
        """Connect. What the server answers to a wrong user is an error of accord, and all else `Lost`."""
        self._address = address
        self._node = node
        self._driver = driver = address.connection(node)
        try:
            driver.connect()
        except exceptions.AuthenticationError as error:
            raise address.refused(_said(error)) from None
        except exceptions.BusyLoadingError:
            raise Lost(_BUSY["LOADING"], unsure=False) from None
        except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
            if isinstance(error.__context__, ssl.SSLError):
                raise address.refused(f"TLS failed, {error.__context__.reason or error.__context__}") from None
            raise Lost(_said(error), unsure=False) from None
        except exceptions.InvalidResponse as error:
            raise Lost(_strange(error), unsure=False) from None
        except exceptions.ResponseError as error:
            raise self._error(error) from None
        except OSError as error:  # of a certificate's file
            raise address.refused(f"TLS failed, {error}") from None

    def ask(self, *commands: bytes, timeout_s: "float | None" = None) -> "list[Reply]":
        """Send all at once; the answer to each. An error answered to one is raised, once all were read."""
        self.send(b"".join(commands))
        return self.answers(len(commands), timeout_s)

    def send(self, packed: bytes) -> None:
        try:
            self._driver.send_packed_command([packed], check_health=False)
        except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
            raise Lost(_said(error), unsure=True) from None

    def answers(self, count: int, timeout_s: "float | None" = None) -> "list[Reply]":
        found: list[Reply] = []
        failed: Exception | None = None
        how = {} if timeout_s is None else {"timeout": timeout_s}
        for _ in range(count):
            try:
                found.append(self._driver.read_response(disable_decoding=True, **how))
            except exceptions.AuthenticationError as error:
                failed = failed or self._address.refused(_said(error))
            except exceptions.BusyLoadingError:
                failed = failed or Lost(_BUSY["LOADING"], unsure=False)
            except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
                raise Lost(_said(error), unsure=True) from None
            except exceptions.InvalidResponse as error:
                raise Lost(_strange(error), unsure=True) from None
            except exceptions.ResponseError as error:
                failed = failed or self._error(error)
        if failed is not None:
            raise failed
        return found

    def is_dead(self) -> bool:
        """Whether the server has ended the connection since, so that nothing sent on it can arrive."""
        try:
            return bool(self._driver.can_read(0))  # nothing was asked: there is nothing to read but the end
        except (exceptions.ConnectionError, exceptions.TimeoutError):
            return True

    def interrupt(self) -> None:
        """Wake whoever waits for an answer in another thread; the connection is of no more use."""
        import socket

        connected = self._driver._sock
        if connected is not None:
            try:
                socket.socket.shutdown(connected, socket.SHUT_RDWR)  # TLS has one of its own, which is not for threads
            except OSError:
                pass

    def close(self) -> None:
        self._driver.disconnect()

    def _error(self, error: exceptions.ResponseError) -> Exception:
        code, text = _code(error)
        path = self._address.shown
        if code == "NOSCRIPT":
            return NoScript()
        if code == "MOVED":
            return Elsewhere(self._moved_to(text))
        if code in _BUSY:
            return Lost(_BUSY[code], unsure=False)
        if code == "OOM":
            return errors.StorageFull(path=path)
        if code == "MISCONF":
            return errors.StorageFailing(path=path, reason="the server cannot write to it (MISCONF)")
        if code == "WRONGTYPE":
            return errors.NotAStore(
                path=path, reason="its keys are those of another program; another prefix may be free"
            )
        return self._address.refused(text)

    def _moved_to(self, text: str) -> "tuple[str, int]":
        host, _, port = text.split()[-1].rpartition(":")
        return host or (self._node[0] if self._node else "localhost"), int(port)


def pack(*parts: bytes) -> bytes:
    return b"*%d\r\n%b" % (len(parts), b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]))


def _said(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__


def _strange(error: exceptions.InvalidResponse) -> str:
    return f"what is there is no Redis, or something between changes what it says ({_said(error)[:100]})"


def _code(error: exceptions.ResponseError) -> "tuple[str, str]":
    """The first word of what the server answered, and all of it."""
    text = _said(error)
    code = getattr(error, "status_code", None) or text.partition(" ")[0]
    inner = text.partition("@user_script: ")[2].partition(": -")[2]  # servers before 7.0 wrap what a script met
    return (inner.partition(" ")[0] if inner else str(code)), text
