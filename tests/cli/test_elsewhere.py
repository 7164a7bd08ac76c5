"""Homes whose store is on another machine: its password, two homes on one store, a hub, and a server that is gone."""

import os
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest

from tests.cli.test_choosing import holding
from tests.cli.users import User
from tests.hub.hubs import bodies, somebody, start, status, wait_until
from tests.ports import free_port

servers: Any = pytest.importorskip("tests.servers.redis")

pytestmark = pytest.mark.covers("S10")

SECRET = "s3cr3t/@:?"
QUOTED = "s3cr3t%2F%40%3A%3F"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with servers.redis_of_its_own(port=str(free_port()), requirepass=SECRET) as server:
        yield server


@pytest.fixture
def user(server: Any, request: pytest.FixtureRequest) -> Iterator[User]:
    with somebody() as user:
        user.env |= engine(server, request.node.name)
        yield user


def engine(server: Any, prefix: str) -> dict[str, str]:
    """A place in it, as the environment names it."""
    prefix = "".join(letter if letter.isalnum() else "-" for letter in prefix)
    return {"ACCORD_ENGINE": f"redis://127.0.0.1:{server.port}/0?prefix={prefix[-90:]}"}


PASSWORD = {"ACCORD_ENGINE_PASSWORD": SECRET}


def password_file(user: User) -> dict[str, str]:
    path = user.folder / "password"
    path.touch(0o600)
    path.write_text(f"{SECRET}\n")
    return {"ACCORD_ENGINE_PASSWORD_FILE": str(path)}


def test_a_password_from_each_place_gets_in(user: User) -> None:
    """Under the same names: which store it is does not depend on how one gets in."""
    whole = user.env["ACCORD_ENGINE"].replace("//", f"//:{QUOTED}@")
    user.json("register", "ann", env=PASSWORD)
    for env in (PASSWORD, password_file(user), {"ACCORD_ENGINE": whole}):
        user.json("send", "--from", "ann", "--to", "ann", "--message", "x", env=env)
    assert bodies_with(user, PASSWORD) == ["x"] * 3
    assert holding(user.folder, "s3cr3t") == [user.folder / "password"]


def bodies_with(user: User, env: dict[str, str]) -> list[str]:
    return [message["message"] for message in user.json("check", "ann", env=env)["messages"]]


@pytest.mark.parametrize("env", [{}, {"ACCORD_ENGINE_PASSWORD": "wr0ng"}], ids=["none", "wrong"])
def test_a_wrong_password_and_none_are_refused_with_the_cure(env: dict[str, str], user: User) -> None:
    for words in (["register", "ann"], ["hub", "start"], ["doctor"]):
        done = user.run(*words, env=env)
        assert "$ACCORD_ENGINE_PASSWORD" in done.out + done.err
        assert "wr0ng" not in done.out + done.err
        assert done.code == (1 if words == ["doctor"] else 77), done
        assert words == ["doctor"] or done.error == "ENGINE_REFUSED"


def test_two_homes_share_one_store(user: User) -> None:
    """As on two machines: agents and messages of one are seen in the other, each with the tokens of its own."""
    user.env |= PASSWORD
    with somebody() as other:
        other.env |= {name: user.env[name] for name in ("ACCORD_ENGINE", *PASSWORD)}
        user.json("register", "ann")
        other.json("register", "ben")
        for one in (user, other):
            assert {found["identity"] for found in one.json("discover")["identities"]} == {"human", "ann", "ben"}
        other.json("send", "--from", "ben", "--to", "ann", "--message", "hello")
        assert bodies(user, "ann") == ["hello"]
        assert other.run("check", "ann").error == "TOKEN_MISSING"
        start(user)
        heard = user.folder / "heard"
        with heard.open("wb") as file, user.start("listen", "ann", out=file.fileno()) as listener:
            other.json("send", "--from", "ben", "--to", "ann", "--message", "pushed over there")
            wait_until(lambda: b"pushed over there" in heard.read_bytes(), "the message in the other home")
            listener.terminate()


@pytest.mark.parametrize("from_file", [False, True])
def test_a_hub_has_the_password_and_its_callers_need_none(from_file: bool, user: User) -> None:
    env = password_file(user) if from_file else PASSWORD
    user.json("register", "ann", env=env)
    user.json("hub", "start", env=env)
    pid = status(user)["pid"]
    given = env if from_file else {}
    assert bodies_with(user, {**given, **PASSWORD}) == []
    if not from_file:
        assert bodies_with(user, {}) == [], "by the hub, which has it"
    assert b"s3cr3t" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert (b"s3cr3t" in Path(f"/proc/{pid}/environ").read_bytes()) == (not from_file)
    assert user.run("--no-start", "doctor").code == 1, "which looks for itself"
    assert not [path for path in holding(user.folder, "s3cr3t") if path.name != "password"]


def test_doctor_looks_at_the_server(user: User) -> None:
    user.env |= PASSWORD
    done = user.run("--json", "doctor")
    rows = {row["check"]: row for row in done.json["checks"]}
    assert (done.code, rows["server"]["ok"]) == (0, True)
    assert "a read takes" in rows["server"]["found"]
    assert "SQLite" not in rows["versions"]["found"]
    assert done.json["engine"] == user.env["ACCORD_ENGINE"]


def test_a_server_that_is_gone(user: User) -> None:
    port = free_port()
    user.env["ACCORD_ENGINE"] = f"redis://127.0.0.1:{port}/0"
    done = user.run("register", "ann")
    assert (done.code, done.error) == (69, "ENGINE_UNREACHABLE")
    assert f"127.0.0.1:{port}" in done.err
    checked = user.run("--json", "doctor")
    wrong = {row["check"]: row["error_code"] for row in checked.json["checks"] if not row["ok"]}
    assert checked.code == 1
    assert set(wrong) == {"store", "server", "agents", "tokens", "clock", "locks", "queues", "tasks"}
    assert set(wrong.values()) == {"ENGINE_UNREACHABLE"}
    told = [row["found"] for row in checked.json["checks"] if not row["ok"]]
    assert sum("does not answer" in text for text in told) == 1
    assert set(told[1:]) == {"not looked at; see store"}
    assert not os.path.exists(user.home / "store.db")


def test_a_server_that_is_no_redis(user: User) -> None:
    """As of a proxy that answers for all hosts, or a port that is another program's."""

    class Page(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        for login in ("", "me@"):
            user.env["ACCORD_ENGINE"] = f"redis://{login}127.0.0.1:{server.server_address[1]}/0"
            done = user.run("register", "ann", env=PASSWORD if login else {})
            assert (done.code, done.error) == (69, "ENGINE_UNREACHABLE")
            assert "is no Redis" in done.err
        server.shutdown()
