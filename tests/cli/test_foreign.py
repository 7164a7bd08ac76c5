"""Where a store should be, somebody else answers: another kind of server, nobody, or one that says nothing."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

import pytest

from accord.store.open import engines
from tests.cli.users import User
from tests.hub.hubs import somebody

pytestmark = pytest.mark.covers("S10")

URLS = {
    "redis": "redis://127.0.0.1:{port}/0?timeout_s=1",
    "etcd": "etcd://127.0.0.1:{port}",
    "firebase": "firebase://p?emulator=127.0.0.1:{port}",
}
HTTP = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s"
ANSWERS = {
    "closes": b"",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "page": HTTP % (b"200 OK", 15, b"", b"<html>hi</html>"),
    "other page": HTTP % (b"200 OK", 15, b"ETag: x\r\n", b"<html>hi</html>"),
    "object": HTTP % (b"200 OK", 2, b"", b"{}"),
    "list": HTTP % (b"200 OK", 2, b"", b"[]"),
    "number": HTTP % (b"200 OK", 1, b"ETag: x\r\n", b"7"),
    "nothing there": HTTP % (b"404 Not Found", 0, b"", b""),
    "elsewhere": HTTP % (b"302 Found", 0, b"Location: http://elsewhere/\r\n", b""),
    "refused": HTTP % (b"403 Forbidden", 0, b"", b""),
    "array of RESP": b"*abc\r\n",
    "number of RESP": b":1\r\n",
    "status of RESP": b"+OK\r\n",
}


# These are asked again for 10 s, and of Firebase for 30 s: a server that starts answers so too.
SLOW = {"etcd": ANSWERS.keys() - {"nothing there", "refused"}}
TOO_SLOW = {"firebase": {"closes", "ssh", *[name for name in ANSWERS if "RESP" in name]}}


@pytest.fixture
def user() -> Iterator[User]:
    with somebody() as user:
        yield user


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], int]]:
    """Starts a server that answers each piece it is sent with the same, and gives its port."""
    with ExitStack() as stack:

        def start(answer: bytes) -> int:
            listener = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
            threading.Thread(target=_serve, args=(listener, answer), daemon=True).start()
            port: int = listener.getsockname()[1]
            return port

        yield start


def _serve(listener: socket.socket, answer: bytes) -> None:
    with suppress(OSError):
        while True:
            link, _ = listener.accept()
            threading.Thread(target=_answer, args=(link, answer), daemon=True).start()


def _answer(link: socket.socket, answer: bytes) -> None:
    with suppress(OSError), link:
        while answer and link.recv(65536):
            link.sendall(answer)


def cases() -> list[Any]:
    return [
        pytest.param(engine, what, marks=[pytest.mark.more] if what in SLOW.get(engine, ()) else [])
        for engine in URLS
        if engine in engines()
        for what in ANSWERS
        if what not in TOO_SLOW.get(engine, ())
    ]


@pytest.mark.parametrize(("engine", "what"), cases())
def test_a_server_that_is_none_of_this_engine(
    engine: str, what: str, user: User, answering: Callable[[bytes], int]
) -> None:
    done = user.run("register", "ann", env={"ACCORD_ENGINE": URLS[engine].format(port=answering(ANSWERS[what]))})
    assert done.error in ("ENGINE_UNREACHABLE", "ENGINE_REFUSED", "ENGINE_TOO_OLD", "NOT_A_STORE"), done
    assert engine in done.err


@pytest.mark.parametrize("engine", [engine for engine in URLS if engine in engines()])
def test_a_machine_that_is_off(engine: str, user: User) -> None:
    """Nobody even says that nobody listens: that takes some seconds, and no more."""
    with ExitStack() as stack:
        listener = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0), backlog=0)))
        address = listener.getsockname()
        for _ in range(3):  # its queue is full, and the system leaves unanswered what comes now
            link = stack.enter_context(closing(socket.socket()))
            link.setblocking(False)
            link.connect_ex(address)
        done = user.run("register", "ann", env={"ACCORD_ENGINE": URLS[engine].format(port=address[1])})
    assert (done.code, done.error) == (69, "ENGINE_UNREACHABLE")
    assert f"{engine}://" in done.err
