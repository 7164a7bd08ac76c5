"""The HTTP door, as programs, foreign pages and rude strangers meet it. Each hub is a real process."""

import asyncio
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h11
import pytest
import uvicorn

from accord.doors import http_routes, http_server
from accord.doors.rpc import MOST_BYTES
from accord.services import hub as hubs
from tests.cli.users import User
from tests.ports import free_ports

TIMEOUT_S = 15.0
MEMORY = Path("/dev/shm")
JSON = {"Content-Type": "application/json"}

ROUTES = [("POST", "/rpc"), ("GET", "/events"), ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/nothing")]


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        assert self.json.keys() == {"status", "error_code", "error_message", "details"}
        assert self.json["status"] == "error"
        return str(self.json["error_code"])


class Hub:
    """A hub of one's own, with the agents ann and ben."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.user = User(folder)
        self.user.env |= env
        self.tokens = {}
        for name in ("ann", "ben"):
            self.user.json("register", name)
            there = next((self.user.home / "agents").rglob(f"{name}.token"))
            self.tokens[name] = there.read_text().strip()
        port, self.port = free_ports(2)
        self.process = self.user.start(
            "hub", "start", "--foreground", "--port", str(port), "--http-port", str(self.port)
        )
        wait_until(lambda: status(self.user)["http_port"] == self.port)
        self.operator = {"Authorization": f"Bearer {(self.user.home / 'operator/token').read_text().strip()}"}

    def agent(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}", "Accord-Agent": name}

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def open(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> http.client.HTTPResponse:
        """Ask, and read the answer as it comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Answer:
        with self.open(method, path, headers, body) as response:
            return Answer(response)

    def post(self, value: object, headers: dict[str, str] | None = None) -> Answer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.ask("POST", "/rpc", {**JSON, **(headers or self.operator)}, body)

    def call(self, method: str, headers: dict[str, str] | None = None, **params: object) -> Any:
        """What an operation answers, or the code of its error."""
        answer = self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers)
        assert answer.status == 200
        found = answer.json
        return found["result"] if "result" in found else found["error"]["data"]["error_code"]

    def send(self, *texts: str) -> None:
        """Messages from ann to ben, all in one batch, which are few commits."""
        params = [{"sender": "ann", "to": ["ben"], "message": text} for text in texts]
        calls = [{"jsonrpc": "2.0", "id": 1, "method": "mail.send", "params": some} for some in params]
        assert all("result" in answer for answer in self.post(calls).json)

    def events(self, headers: dict[str, str] | None = None, query: str = "") -> "Events":
        return Events(self.open("GET", f"/events{query}", {**self.operator, **(headers or {})}))

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)

    def is_well(self) -> bool:
        start = time.monotonic()
        assert self.ask("GET", "/healthz", {}).json == {"status": "up"}
        return time.monotonic() - start < 2


class Events:
    """A stream of server-sent events, read as a browser does."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        assert response.status == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        self.response = response
        self.last_id = ""

    def next(self) -> tuple[str, Any] | None:
        """The name and data of what comes next; None at the end."""
        name, data, id = "", "", self.last_id
        while line := self.response.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if line == "\n":
                self.last_id = id
                if data:
                    return name, json.loads(data)
            elif field == "event":
                name = value
            elif field == "data":
                data = value
            elif field == "id":
                id = value
        return None

    def told(self) -> tuple[str, str, str]:
        """What comes next: its name, the message that it is about, and the place after it."""
        name, data = self.next() or ("", {"message_id": ""})
        return name, data["message_id"], self.last_id

    def place(self) -> str:
        """Where the stream starts, which comes at once."""
        while (line := self.response.readline().decode()) != "\n":
            if line.startswith("id: "):
                self.last_id = line[4:-1]
        return self.last_id

    def close(self) -> None:
        self.response.close()


def status(user: User) -> dict[str, Any]:
    return hubs.status(str(user.home))


def wait_until(is_so: Callable[[], object], within_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closes it before the time is over; whatever else it says is skipped."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.fixture(scope="module")
def folders() -> Iterator[Callable[[], Path]]:
    made: list[Path] = []

    def make() -> Path:
        made.append(Path(tempfile.mkdtemp(prefix="accord-http-", dir=MEMORY if MEMORY.is_dir() else None)))
        return made[-1]

    yield make
    for folder in made:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shared(folders: Callable[[], Path]) -> Iterator[Hub]:
    """For tests that leave it as it was."""
    hub = Hub(folders())
    yield hub
    hub.close()


@pytest.fixture
def hub(folders: Callable[[], Path]) -> Iterator[Hub]:
    hub = Hub(folders())
    yield hub
    hub.close()


# JSON-RPC


def test_a_call_is_answered(shared: Hub) -> None:
    names = [agent["identity"] for agent in shared.call("agent.discover")["identities"]]
    assert names == ["human", "ann", "ben"]


def test_an_error_of_a_call_is_an_answer(shared: Hub) -> None:
    assert shared.call("mail.send", sender="ann", to=["nobody"], message="x") == "RECIPIENT_NEVER_REGISTERED"
    assert shared.call("no.such") == "METHOD_NOT_FOUND"


@pytest.mark.parametrize("method", ["mail.listen", "events.listen", "session.open", "listen.stop", "cli.run"])
def test_what_belongs_to_a_connection_is_not_there(shared: Hub, method: str) -> None:
    assert shared.call(method, identity="ann") == "METHOD_NOT_FOUND"


@pytest.mark.parametrize(("method", "said"), [("mail.listen", "GET /events"), ("mail.sned", "did you mean mail.send")])
def test_what_is_not_there_is_somewhere_else(shared: Hub, method: str, said: str) -> None:
    answer = shared.post({"jsonrpc": "2.0", "id": 1, "method": method})
    assert answer.status == 200, "an error of a request is an answer"
    assert said in answer.json["error"]["message"]


def test_a_batch_is_answered_without_its_notifications(shared: Hub) -> None:
    ping = {"jsonrpc": "2.0", "method": "hub.ping"}
    answers = shared.post([{**ping, "id": 1}, ping, {**ping, "id": "two"}, 3]).json
    assert sorted(str(answer["id"]) for answer in answers) == ["1", "None", "two"]


def test_notifications_are_done_and_answered_with_nothing(hub: Hub) -> None:
    send = {
        "jsonrpc": "2.0",
        "method": "mail.send",
        "params": {"sender": "ann", "to": ["ben"], "message": "hi"},
    }
    for value in (send, [send, send], [{"jsonrpc": "2.0", "method": "no.such"}, send]):
        answer = hub.post(value)
        assert (answer.status, answer.body) == (204, b"")
    assert hub.call("mail.check", identity="ben")["message_count"] == 4


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", -32700), (b"", -32700), (b"\xff", -32700), (b"[]", -32600), (b"1", -32600), (b'{"id": 1}', -32600)],
)
def test_what_is_no_request_is_answered_as_such(shared: Hub, body: bytes, code: int) -> None:
    answer = shared.post(body)
    assert (answer.status, answer.json["error"]["code"]) == (200, code)


def test_who_goes_away_is_not_waited_for(hub: Hub) -> None:
    """A call that waits ends with its caller."""
    params = {"identity": "ben", "wait": 30}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "mail.check", "params": params}).encode()
    head = f"POST /rpc HTTP/1.1\r\nHost: localhost:{hub.port}\r\nContent-Length: {len(body)}\r\n"
    head += f"Content-Type: application/json\r\nAuthorization: {hub.operator['Authorization']}\r\n\r\n"
    with hub.connect() as connection:
        connection.sendall(head.encode() + body)
        wait_until(lambda: hub.ask("GET", "/healthz", hub.operator).json["counts"]["in_progress"] > 0)
    wait_until(lambda: hub.ask("GET", "/healthz", hub.operator).json["counts"]["in_progress"] == 0)


# Who may ask


@pytest.mark.covers("Q5")
@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1:{port}.evil.example", ""]
)
def test_another_host_is_refused(shared: Hub, method: str, path: str, host: str) -> None:
    """As when a name of the attacker's was made to lead here."""
    answer = shared.ask(method, path, {**shared.operator, **JSON, "Host": host.format(port=shared.port)}, b"{}")
    assert (answer.status, answer.error) == (421, "ACCESS_DENIED")


@pytest.mark.covers("Q5")
@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("OPTIONS", "/rpc"), ("HEAD", "/healthz")])
@pytest.mark.parametrize(
    "header",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost:1"},
        {"Origin": "https://localhost:{port}"},
        {"Origin": "http://localhost:{port}.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost:{port}", "Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_a_foreign_page_is_refused(shared: Hub, method: str, path: str, header: dict[str, str]) -> None:
    told = {name: value.format(port=shared.port) for name, value in header.items()}
    answer = shared.ask(method, path, {**shared.operator, **JSON, **told}, b"{}")
    assert answer.status == 403
    assert method == "HEAD" or answer.error == "ACCESS_DENIED"
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.covers("Q5")
@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "shown", ["nothing", "wrong", "agent without name", "operator as agent", "other agent", "basic"]
)
def test_without_a_good_token_nothing_is_told(shared: Hub, method: str, path: str, shown: str) -> None:
    headers, status = {
        "nothing": ({}, 401),
        "basic": ({"Authorization": "Basic " + "x" * 32}, 401),
        "wrong": ({"Authorization": "Bearer " + "0" * 32}, 403),
        "agent without name": ({"Authorization": f"Bearer {shared.tokens['ann']}"}, 403),
        "operator as agent": ({**shared.operator, "Accord-Agent": "ann"}, 403),
        "other agent": ({**shared.agent("ann"), "Accord-Agent": "ben"}, 403),
    }[shown]
    answer = shared.ask(method, path, {**JSON, **headers}, b"{}")
    if (path, shown) == ("/healthz", "nothing"):
        assert (answer.status, answer.json) == (200, {"status": "up"})
    else:
        assert (answer.status, answer.error) == (status, "NOT_AUTHENTICATED" if status == 401 else "ACCESS_DENIED")
        assert (answer.headers["WWW-Authenticate"] == "Bearer") == (status == 401)


def test_a_token_of_an_agent_without_its_name(shared: Hub) -> None:
    headers = {"Authorization": shared.agent("ann")["Authorization"]}
    assert "Accord-Agent: NAME" in shared.post({}, headers).json["error_message"]
    answer = shared.post({}, {**headers, "Accord-Agent": "ben"})
    assert "the token of ben" in answer.json["error_message"]


@pytest.mark.parametrize("name", ["", "human", "hub", "../operator", "ä", "x" * 100, "nobody"])
def test_a_name_that_is_none_is_refused_like_a_wrong_token(shared: Hub, name: str) -> None:
    headers = {"Authorization": "Bearer " + "0" * 32, "Accord-Agent": name.encode().decode("latin-1")}
    assert (shared.post({}, headers).status, shared.post({}, headers).error) == (403, "ACCESS_DENIED")


@pytest.mark.covers("Q5")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_post_is_refused(shared: Hub, kind: str) -> None:
    answer = shared.ask("POST", "/rpc", {**shared.operator, "Content-Type": kind}, b"{}")
    assert (answer.status, answer.error) == (415, "INVALID_REQUEST")


@pytest.mark.covers("Q5")
def test_a_page_of_its_own_and_each_of_its_names_may_ask(shared: Hub) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "hub.ping"}
    for host in (f"127.0.0.1:{shared.port}", f"LOCALHOST:{shared.port}", f"[::1]:{shared.port}"):
        page = {"Host": host, "Origin": f"http://{host.lower()}", "Sec-Fetch-Site": "same-origin"}
        assert shared.post(ping, {**shared.operator, **page}).json["result"] == {}


@pytest.mark.covers("Q5")
def test_an_agent_may_do_what_agents_may(shared: Hub) -> None:
    ann = shared.agent("ann")
    assert shared.call("hub.stop", ann) == "NOT_PERMITTED"
    assert shared.call("mail.check", ann, identity="ben") == "NOT_PERMITTED"
    assert shared.call("mail.check", ann, identity="ann")["message_count"] == 0
    assert shared.ask("GET", "/events?identity=ben", ann).error == "NOT_PERMITTED"


@pytest.mark.covers("Q5")
@pytest.mark.parametrize("path", ["/rpc", "/rpc?method=hub.stop&id=1", "/rpc/", "//rpc", "/halt"])
def test_nothing_is_done_by_get(shared: Hub, path: str) -> None:
    assert shared.ask("GET", path, {**shared.operator, **JSON}).status in (404, 405)


def test_who_was_taken_over_is_out(hub: Hub) -> None:
    assert hub.call("agent.discover", hub.agent("ann"))
    hub.user.json("register", "ann", "--force")
    assert hub.post({}, hub.agent("ann")).status == 403


@pytest.mark.covers("Q5", "T3.2")
def test_a_stream_ends_with_the_token_it_was_opened_with(hub: Hub) -> None:
    """Of what happens too, and not only of mail."""
    stream = hub.events(hub.agent("ann"))
    hub.send("one")
    assert (stream.next() or ("", {}))[0] == "mail.sent"
    hub.user.json("unregister", "ann")
    name, told = stream.next() or ("", {})
    assert (name, told["data"]["error_code"]) == ("listen.ended", "NOT_REGISTERED")
    assert stream.next() is None


# Events


def test_events_come_as_they_happen(hub: Hub) -> None:
    stream = hub.events()
    assert stream.place()
    hub.send("one")
    assert hub.call("channel.join", identity="ann", channel="room")
    name, sent = stream.next() or ("", {})
    assert (name, sent["event"], sent["from"], sent["to"]) == ("mail.sent", "mail.sent", "ann", ["ben"])
    assert "one" not in json.dumps(sent)
    assert (stream.next() or ("", {}))[0] == "channel.changed"
    assert stream.last_id == (hub.call("agent.discover")["revision"])


@pytest.mark.covers("R11")
def test_who_comes_back_misses_nothing_and_gets_nothing_twice(hub: Hub) -> None:
    """Wherever it was cut off, even between the events of one commit."""
    first = hub.events()
    start = first.place()
    hub.send(*map(str, range(10)))
    sent = [first.told() for _ in range(10)]
    hub.call("mail.hand_over", identity="ben", ids=[id for _, id, _ in sent])  # one commit
    hub.send("between")
    told = sent + [first.told() for _ in range(11)]
    places = [place for _, _, place in told]
    assert len(set(places)) == len(told)
    assert len([place for place in places if ":" in place]) == 9
    for number, place in enumerate([start, *places]):
        again = hub.events({"Last-Event-ID": place})
        assert [again.told() for _ in told[number:]] == told[number:]
        again.close()
    hub.send("last")
    last = first.told()
    assert last not in told
    assert hub.events(query=f"?since={places[-1]}").told() == last


def test_of_many_events_only_those_wanted_come(hub: Hub) -> None:
    start = hub.call("agent.discover")["revision"]
    for _ in range(3):
        hub.send(*["x"] * 100)
    hub.call("channel.join", identity="ann", channel="room")
    stream = hub.events(query=f"?since={start}&kinds=channel.changed,agent.changed")
    assert (stream.next() or ("", {}))[0] == "channel.changed"


@pytest.mark.parametrize(
    "query",
    [
        *("since=x", "since=e.-1", "since=e." + "9" * 5000, "since=e.1:x", "kinds=no.such", "strange=1"),
        *("identity=", "identity=%00", "identity=ben&since=x"),
    ],
)
def test_a_place_that_is_none_is_refused(shared: Hub, query: str) -> None:
    answer = shared.ask("GET", f"/events?{query}", shared.operator)
    assert answer.status == 400, answer.body
    assert answer.error in ("USAGE", "INVALID_IDENTITY")


def test_a_place_of_another_store_is_a_gap(shared: Hub) -> None:
    stream = shared.events({"Last-Event-ID": "0123456789abcdef.7"})
    assert (stream.next() or ("", {}))[0] == "gap"
    assert stream.last_id == shared.call("agent.discover")["revision"]


def test_mail_is_pushed_and_comes_again_until_it_is_acknowledged(hub: Hub) -> None:
    hub.send("one")
    stream = Events(hub.open("GET", "/events?identity=ben", hub.agent("ben")))
    assert hub.call("agent.discover")["identities"][2]["listener"]["connected"]
    hub.send("two")
    found = [stream.next() or ("", {}) for _ in range(2)]
    assert [(name, told["message"]["message"]) for name, told in found] == [
        ("mail.message", "one"),
        ("mail.message", "two"),
    ]
    stream.close()
    later = hub.events({"Last-Event-ID": "1"}, "?identity=ben")
    assert (later.next() or ("", {}))[1]["message"]["message"] == "two"
    hub.call("mail.ack", identity="ben", ids=[found[0][1]["message"]["message_id"]])
    again = hub.events(query="?identity=ben")
    assert (again.next() or ("", {}))[1]["message"]["message"] == "two"


def test_a_listener_whose_name_is_taken_over_is_told_and_ended(hub: Hub) -> None:
    stream = Events(hub.open("GET", "/events?identity=ben", hub.agent("ben")))
    hub.user.json("register", "ben", "--force")
    name, told = stream.next() or ("", {})
    assert (name, told["data"]["error_code"]) == ("listen.ended", "IDENTITY_TAKEN_OVER")
    assert stream.next() is None


@pytest.mark.covers("R11")
def test_who_does_not_read_holds_up_nobody_and_gets_all_of_it(hub: Hub) -> None:
    slow = hub.connect()
    path = "/events?identity=ben"
    headers = "".join(f"{name}: {value}\r\n" for name, value in hub.agent("ben").items())
    slow.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:{hub.port}\r\n{headers}\r\n".encode())
    before = memory_of(hub.process.pid)
    for number in range(60):
        hub.send(f"{number} " + "x" * 500_000)
    assert hub.is_well()
    assert memory_of(hub.process.pid) - before < 200 << 20
    response = http.client.HTTPResponse(slow, method="GET")
    response.begin()
    stream = Events(response)
    numbers = [(stream.next() or ("", {}))[1]["message"]["message"].split()[0] for _ in range(60)]
    assert numbers == [str(number) for number in range(60)]


def memory_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.covers("R11")
def test_there_is_a_limit_to_streams_and_who_goes_makes_room(hub: Hub) -> None:
    streams = [hub.events() for _ in range(200)]
    answer = hub.ask("GET", "/events", hub.operator)
    assert (answer.status, answer.error) == (503, "TOO_BUSY")
    assert hub.call("hub.ping") == {}
    for stream in streams[:10]:
        stream.close()
    wait_until(lambda: hub.open("GET", "/events", hub.operator).status == 200)
    for stream in streams:
        stream.close()
    wait_until(lambda: hub.call("hub.statistics")["listeners"] <= 1)


# Health and metrics


@pytest.mark.covers("T4.3")
def test_health_tells_more_with_a_token(shared: Hub) -> None:
    assert shared.ask("GET", "/healthz", {}).json == {"status": "up"}
    for shown in (shared.operator, shared.agent("ann")):
        told = shared.ask("GET", "/healthz", shown).json
        assert told.keys() == {"status", "version", "uptime_s", "counts"}
        assert told["counts"]["threads"] > 0


@pytest.mark.covers("T4.3")
def test_a_store_that_cannot_be_read_is_no_health(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that does not answer; and however many ask, one thread looks."""
    monkeypatch.setattr(http_routes, "HEALTH_WITHIN_S", 0.1)
    looks: list[object] = []

    class Broken:
        log = store = property(lambda self: self)
        loop = property(lambda self: asyncio.get_running_loop())

        def run_in_thread(self, work: Callable[[], object], done: Callable[[object, None], None]) -> None:
            looks.append(work)
            if len(looks) == 1:
                done(work(), None)  # the next one never ends

        def snapshot(self) -> None:
            raise OSError("it is gone")

        def error(self, event: str, kind: str) -> None:
            assert (event, kind) == ("unhealthy", "OSError")

    async def look() -> None:
        health = http_routes.Health(Broken())  # type: ignore[arg-type]
        assert not await health.is_up()
        assert await asyncio.gather(*(health.is_up() for _ in range(100))) == [False] * 100
        assert len(looks) == 2

    asyncio.run(look())


@pytest.mark.covers("I7")
def test_metrics_are_there_where_they_are_wanted(hub: Hub) -> None:
    off = hub.ask("GET", "/metrics", hub.operator)
    assert off.status == 404
    assert "the setting metrics is true" in off.json["error_message"]
    (hub.user.home / "accord.yml").write_text("metrics: true\n")
    hub.process.send_signal(signal.SIGHUP)
    wait_until(lambda: hub.ask("GET", "/metrics", hub.operator).status == 200)
    hub.send("one", "two")
    hub.ask("GET", "/healthz", {"Host": "evil.example"})
    wait_until(lambda: b"accord_hub_refused_total 1.0" in hub.ask("GET", "/metrics", hub.operator).body)
    answer = hub.ask("GET", "/metrics", hub.operator)
    assert answer.headers["content-type"].startswith("text/plain")
    lines = dict(line.split() for line in answer.body.decode().splitlines() if not line.startswith("#"))
    assert float(lines["accord_hub_changes_total"]) == 2
    assert float(lines["accord_hub_uptime_seconds"]) > 0
    assert not [name for name in lines if name.startswith(("python_", "process_"))]
    assert hub.ask("GET", "/metrics", {}).status == 401


# Limits


def test_a_body_that_is_too_long_is_refused(shared: Hub) -> None:
    answer = shared.post(b" " * (MOST_BYTES + 1))
    assert (answer.status, answer.error) == (413, "INVALID_REQUEST")
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hub.ping"}).encode()
    assert shared.post(ping.ljust(MOST_BYTES)).json["result"] == {}


def test_a_body_of_unknown_length_is_refused_once_it_is_too_long(shared: Hub) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=TIMEOUT_S)
    pieces = (b" " * 65536 for _ in range(MOST_BYTES // 65536 + 10))
    connection.request("POST", "/rpc", pieces, {**JSON, **shared.operator}, encode_chunked=True)
    assert connection.getresponse().status == 413


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"GET /healthz\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
        b"POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /rpc HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
    ],
)
def test_what_is_no_http_is_refused(shared: Hub, said: bytes) -> None:
    with shared.connect() as connection:
        connection.sendall(said)
        assert connection.recv(65536).split()[1] in (b"400", b"421")
    assert shared.is_well()


def test_garbage_in_the_middle_of_a_stream_ends_it(shared: Hub) -> None:
    head = f"GET /events HTTP/1.1\r\nHost: localhost:{shared.port}\r\nTransfer-Encoding: chunked\r\n"
    with shared.connect() as connection:
        connection.sendall(f"{head}Authorization: {shared.operator['Authorization']}\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"zzz\r\n")
        assert is_closed(connection)
    assert shared.is_well()


def test_without_a_host_nothing_is_told(shared: Hub) -> None:
    with shared.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 421")


def test_who_does_not_finish_a_request_is_cut_off(shared: Hub) -> None:
    """Saying nothing, or a little now and then, of the head or of the body."""
    head = f"POST /rpc HTTP/1.1\r\nHost: localhost:{shared.port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: {shared.operator['Authorization']}\r\nContent-Length: 1000\r\n\r\n"
    refused = f"POST /rpc HTTP/1.1\r\nHost: localhost:{shared.port}\r\nContent-Length: 1000\r\n\r\n"
    started = [b"", b"GET /healthz HT", head.encode(), refused.encode()]
    connections = [shared.connect() for _ in started]
    for connection, text in zip(connections, started, strict=True):
        connection.sendall(text)
    deadline = time.monotonic() + 20
    for connection in connections:
        connection.settimeout(0.05)
    left = set(connections)
    while left:
        assert time.monotonic() < deadline, "it is patient without end"
        for connection in list(left):
            try:
                if connection is not connections[0]:
                    connection.sendall(b"x")
                if not connection.recv(65536):
                    left.discard(connection)
            except TimeoutError:
                pass
            except ConnectionError:
                left.discard(connection)
        assert shared.is_well()
        time.sleep(0.2)
    for connection in connections:
        connection.close()


def test_who_takes_nothing_for_long_is_cut_off() -> None:
    class Transport:
        unsent = 7
        is_aborted = False

        def get_write_buffer_size(self) -> int:
            return self.unsent

        def get_extra_info(self, name: str) -> None:
            return None

        def abort(self) -> None:
            self.is_aborted = True

    async def sweep() -> None:
        transport = Transport()
        config = uvicorn.Config(lambda: None, http=http_server.Protocol, ws="none", interface="asgi3", log_config=None)
        connection = http_server.Protocol(config, http_server.State(), {}, asyncio.get_running_loop())
        connection.connection_made(transport)  # type: ignore[arg-type]
        connection.conn.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        while connection.conn.next_event() is not h11.NEED_DATA:
            pass
        start = time.monotonic()
        for at_s, unsent, is_aborted in (
            (0, 7, False),
            (59, 7, False),
            (60, 6, False),
            (119, 6, False),
            (121, 6, True),
        ):
            transport.unsent = unsent
            connection.sweep(start + at_s)
            assert transport.is_aborted == is_aborted

    asyncio.run(sweep())


def test_many_who_only_connect_shut_nobody_out(hub: Hub) -> None:
    stream = hub.events()
    stream.place()
    idle = [hub.connect() for _ in range(700)]
    for _ in range(20):
        assert hub.is_well()
        assert hub.call("hub.ping") == {}
    hub.send("one")
    assert (stream.next() or ("", {}))[0] == "mail.sent"
    for connection in idle:
        connection.close()


# The port


@pytest.mark.covers("T3.4")
def test_a_port_that_was_asked_for_and_is_taken(folders: Callable[[], Path]) -> None:
    user = User(folders())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = user.run("--json", "hub", "start", "--port", str(free_ports(1)[0]), "--http-port", str(port))
    assert (done.code, done.error) == (69, "PORT_IN_USE")
    assert (done.json["details"]["port"], done.json["details"]["blocking_pid"]) == (port, os.getpid())
    assert not status(user)["running"]


@pytest.mark.covers("T3.4")
def test_a_port_of_the_settings_that_is_taken_gives_way(folders: Callable[[], Path]) -> None:
    user = User(folders())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        user.env["ACCORD_HTTP_PORT"] = str(taken.getsockname()[1])
        found = user.json("hub", "start", "--port", str(free_ports(1)[0]))
    try:
        assert found["http_port"] not in (None, taken)
        connection = http.client.HTTPConnection("127.0.0.1", found["http_port"], timeout=TIMEOUT_S)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"up"}'
    finally:
        user.json("hub", "stop")


@pytest.mark.covers("Q5")
def test_it_listens_on_this_machine_only(shared: Hub) -> None:
    listening = subprocess.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True, check=True)
    mine = [line.split()[1] for line in listening.stdout.splitlines() if f":{shared.port:04X} " in line[:40]]
    assert {line.split(":")[0] for line in mine} == {"0100007F"}


def test_the_server_is_not_loaded_before_somebody_comes() -> None:
    look = "import sys, accord.daemon; print({'starlette', 'uvicorn', 'prometheus_client'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "set()\n"


# The end


@pytest.mark.covers("T4.3")
def test_a_hub_that_stops_tells_its_streams_and_ends_at_once(hub: Hub) -> None:
    streams = [hub.events() for _ in range(20)]
    for stream in streams:
        stream.place()
    unread = hub.connect()
    start = time.monotonic()
    assert hub.call("hub.stop") == {"stopped": True}
    assert hub.process.wait(TIMEOUT_S) == 0
    assert time.monotonic() - start < 2
    for stream in streams:
        assert stream.next() == ("hub.stopping", {})
        assert stream.next() is None
    assert is_closed(unread)


def test_a_hub_that_nobody_asked_by_http_ends_at_once(hub: Hub) -> None:
    hub.user.json("hub", "stop")
    assert hub.process.wait(TIMEOUT_S) == 0


def test_a_call_that_waits_does_not_hold_up_the_end(hub: Hub) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=TIMEOUT_S)
    params = {"identity": "ben", "wait": 60}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "mail.check", "params": params})
    connection.request("POST", "/rpc", body, {**JSON, **hub.operator})
    wait_until(lambda: hub.ask("GET", "/healthz", hub.operator).json["counts"]["in_progress"] > 0)
    start = time.monotonic()
    hub.process.send_signal(signal.SIGTERM)
    assert json.loads(connection.getresponse().read())["result"]["message_count"] == 0
    assert hub.process.wait(TIMEOUT_S) == 0
    assert time.monotonic() - start < 5
