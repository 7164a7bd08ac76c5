"""The server that the engine is tested on keeps to what is known of the real one."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.servers.firebase import FirebaseServer
from tests.servers.firebase_tree import as_shown, changed, key_order

pytestmark = pytest.mark.covers("S2")

Answered = tuple[int, Any, str]


@pytest.fixture(scope="module")
def shared() -> Iterator[FirebaseServer]:
    with FirebaseServer() as server:
        yield server


@pytest.fixture
def server(shared: FirebaseServer) -> FirebaseServer:
    shared.write("", None)
    shared.set(rules=None, redirect_to="")
    shared.say("clear")
    shared.requests()
    return shared


def ask(server: FirebaseServer, method: str, path: str, value: Any = ..., **more: str) -> Answered:
    """Status, value and ETag; `if_match` and such are headers, the rest options."""
    names = {"if_match", "if_none_match", "authorization", "x_firebase_etag", "x_http_method_override"}
    headers = {name.replace("_", "-"): text for name, text in more.items() if name in names}
    options = {name: text for name, text in more.items() if name not in names}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        target = f"/{quote(path)}.json" + (f"?{urlencode(options)}" if options else "")
        body = None if value is ... else value if isinstance(value, bytes) else json.dumps(value)
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        told = answer.read()
        return answer.status, json.loads(told) if told else None, answer.getheader("ETag", "")
    finally:
        connection.close()


def get(server: FirebaseServer, path: str, **more: str) -> Any:
    status, value, _ = ask(server, "GET", path, **more)
    assert status == 200, value
    return value


def with_etag(server: FirebaseServer, path: str) -> tuple[Any, str]:
    _, value, etag = ask(server, "GET", path, x_firebase_etag="true")
    return value, etag


# Conditional requests.


def test_a_conditional_write_is_made_only_over_the_value_it_names(server: FirebaseServer) -> None:
    assert with_etag(server, "a") == (None, "null_etag")
    assert ask(server, "PUT", "a", {"x": 1}, if_match="null_etag")[:2] == (200, {"x": 1})
    _, etag = with_etag(server, "a")
    assert ask(server, "PUT", "a", {"x": 2}, if_match="null_etag") == (412, {"x": 1}, etag)
    assert ask(server, "PUT", "a", {"x": 2}, if_match=etag)[0] == 200
    assert ask(server, "DELETE", "a", if_match=etag)[:2] == (412, {"x": 2})
    _, etag = with_etag(server, "a")
    assert ask(server, "PUT", "a", None, if_match=etag)[0] == 200
    assert with_etag(server, "a") == (None, "null_etag")


def test_an_etag_is_the_values_and_comes_back_with_it(server: FirebaseServer) -> None:
    tags = []
    for value in ({"x": 1}, {"x": 2}, {"x": 1}):
        ask(server, "PUT", "a", value)
        tags.append(with_etag(server, "a")[1])
    assert tags[0] == tags[2] != tags[1]


def test_a_write_below_changes_the_etag_above(server: FirebaseServer) -> None:
    ask(server, "PUT", "a/b/c", 1)
    _, etag = with_etag(server, "a")
    ask(server, "PUT", "a/b/d", 1)
    assert ask(server, "PUT", "a", 5, if_match=etag)[0] == 412


def test_what_did_not_change_is_not_sent_again(server: FirebaseServer) -> None:
    ask(server, "PUT", "a", "text")
    _, etag = with_etag(server, "a")
    assert ask(server, "GET", "a", if_none_match=etag) == (304, None, etag)
    ask(server, "PUT", "a", "other")
    assert ask(server, "GET", "a", if_none_match=etag)[:2] == (200, "other")


def test_an_etag_is_told_when_it_is_asked_for_and_at_a_conflict(server: FirebaseServer) -> None:
    assert ask(server, "PUT", "a", 1)[2] == ""
    assert ask(server, "GET", "a")[2] == ""
    assert ask(server, "PUT", "a", 1, if_match="wrong")[2] == with_etag(server, "a")[1]


def test_a_conditional_patch_or_query_is_refused(server: FirebaseServer) -> None:
    assert ask(server, "PATCH", "a", {"b": 1}, if_match="null_etag")[0] == 400
    assert ask(server, "GET", "a", x_firebase_etag="true", shallow="true")[0] == 400
    assert ask(server, "GET", "a", x_firebase_etag="true", orderBy='"$key"')[0] == 400


# Values.


@pytest.mark.parametrize("nothing", [None, {}, [], {"a": None}, {"a": {"b": {}}}, [None]])
def test_what_is_empty_is_not_there(server: FirebaseServer, nothing: Any) -> None:
    ask(server, "PUT", "a", {"b": 1, "c": {"d": 1}})
    ask(server, "PUT", "a/b", nothing)
    assert get(server, "a") == {"c": {"d": 1}}
    ask(server, "PUT", "a/c/d", nothing)
    assert get(server, "a") is None
    assert get(server, "") is None


@pytest.mark.parametrize(
    ("put", "shown"),
    [
        (["a", "b"], ["a", "b"]),
        ({"0": "a", "1": "b"}, ["a", "b"]),
        ({"0": "a", "2": "b"}, ["a", None, "b"]),
        ({"5": "a"}, {"5": "a"}),
        ({"0": "a", "x": "b"}, {"0": "a", "x": "b"}),
        ({"k0": "a", "k1": "b"}, {"k0": "a", "k1": "b"}),
        ({"00": "a"}, {"00": "a"}),
        (2**53 + 1, 2**53),
        (False, False),
        (0, 0),
        ("", ""),
        ("🙂\n", "🙂\n"),
    ],
)
def test_values_come_back_as_the_real_one_shows_them(server: FirebaseServer, put: Any, shown: Any) -> None:
    assert ask(server, "PUT", "a", put)[:2] == (200, shown)
    assert get(server, "a") == shown


@pytest.mark.parametrize("key", ["a.b", "$a", "a#", "[", "]", "a/b", "a\nb", "\x7f", "", "k" * 769, "é" * 385])
def test_keys_that_cannot_be_are_refused(server: FirebaseServer, key: str) -> None:
    assert ask(server, "PUT", "a", {"fine": {key: 1}})[0] == 400
    assert get(server, "a") is None


def test_long_keys_and_odd_letters_are_fine(server: FirebaseServer) -> None:
    for key in ("k" * 768, "é" * 384, "a b,-~_!'()*:;@&=+?%", "日本"):
        ask(server, "PUT", f"a/{key}", 1)
        assert get(server, "a") == {key: 1}
        ask(server, "PUT", "a", None)


@pytest.mark.parametrize("body", [b"", b"{", b"nope", b"NaN", b'{"a":}'])
def test_what_is_no_json_is_refused(server: FirebaseServer, body: bytes) -> None:
    assert ask(server, "PUT", "a", body)[0] == 400


def test_sizes_have_limits(server: FirebaseServer) -> None:
    assert ask(server, "PUT", "a", "x" * (10 * 1024 * 1024))[0] == 200
    assert ask(server, "PUT", "a", "x" * (10 * 1024 * 1024 + 1))[0] == 400
    deep: Any = 1
    for _ in range(33):
        deep = {"a": deep}
    assert ask(server, "PUT", "a", deep)[0] == 400
    assert ask(server, "PUT", "a", deep["a"]["a"])[0] == 200


def test_server_values(server: FirebaseServer) -> None:
    server.set(clock_ahead_s=1000.0)
    told = ask(server, "PUT", "a", {"at": {".sv": "timestamp"}})[1]
    server.set(clock_ahead_s=0.0)
    assert 0 < told["at"] - ask(server, "PUT", "a/now", {".sv": "timestamp"})[1] <= 1_000_000
    for expected in (2, 4):
        assert ask(server, "PUT", "a/count", {".sv": {"increment": 2}})[1] == expected
    assert ask(server, "PUT", "a", {".sv": "unknown"})[0] == 400


# Other requests.


def test_an_update_of_several_places_is_all_or_nothing(server: FirebaseServer) -> None:
    ask(server, "PUT", "a", {"x": 1, "y": 1, "z": 1})
    assert ask(server, "PATCH", "a", {"x": None, "y/deep": 2, "w": 3})[0] == 200
    assert get(server, "a") == {"y": {"deep": 2}, "z": 1, "w": 3}
    assert ask(server, "PATCH", "a", {"z": 5, "bad.key": 1})[0] == 400
    assert ask(server, "PATCH", "a", {"z": 5, "z/below": 1})[0] == 400
    assert get(server, "a/z") == 1


def test_shallow_and_silent(server: FirebaseServer) -> None:
    ask(server, "PUT", "a", {"b": {"c": 1}, "d": 2})
    assert get(server, "a", shallow="true") == {"b": True, "d": True}
    assert ask(server, "PUT", "a/e", 1, print="silent")[:2] == (204, None)
    assert ask(server, "GET", "a", shallow="true", orderBy='"$key"')[0] == 400
    assert ask(server, "GET", "a", nonsense="1")[0] == 400


def test_post_makes_a_name_and_methods_can_be_overridden(server: FirebaseServer) -> None:
    name = ask(server, "POST", "a", {"b": 1})[1]["name"]
    assert get(server, f"a/{name}") == {"b": 1}
    ask(server, "POST", "a", None, x_http_method_override="DELETE")
    assert get(server, "a") is None


def test_namespaces_are_databases_of_their_own(server: FirebaseServer) -> None:
    ask(server, "PUT", "a", 1, ns="one")
    assert get(server, "a", ns="two") is None


# Queries.


def test_keys_have_the_order_of_the_real_one() -> None:
    keys = ["0", "2", "10", "99", "-a", "00", "10a", "99999999999", "A", "_", "a", "a,", "k1", "k10", "k2", "é"]
    assert sorted(set(keys), key=key_order) == keys


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "abcde"),
        ({"startAt": "b"}, "bcde"),
        ({"startAfter": "b"}, "cde"),
        ({"endAt": "c"}, "abc"),
        ({"endBefore": "c"}, "ab"),
        ({"startAt": "b", "endBefore": "e"}, "bcd"),
        ({"startAt": "bb", "limitToFirst": 2}, "cd"),
        ({"endBefore": "d", "limitToLast": 2}, "bc"),
        ({"equalTo": "c"}, "c"),
        ({"startAfter": "e"}, ""),
    ],
)
def test_queries_by_key(server: FirebaseServer, options: dict[str, Any], expected: str) -> None:
    ask(server, "PUT", "a", dict.fromkeys("ebcda", 1))
    found = get(server, "a", orderBy='"$key"', **{name: json.dumps(value) for name, value in options.items()})
    assert "".join(found or []) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"startAt": '"a"'},
        {"orderBy": "$key"},
        {"orderBy": '"$key"', "startAt": "a"},
        {"orderBy": '"$key"', "startAt": "1"},
        {"orderBy": '"$key"', "limitToFirst": "0"},
        {"orderBy": '"$key"', "limitToFirst": "1", "limitToLast": "1"},
    ],
)
def test_wrong_queries_are_refused(server: FirebaseServer, options: dict[str, str]) -> None:
    ask(server, "PUT", "a", {"b": 1})
    assert ask(server, "GET", "a", **options)[0] == 400


# Rules and accounts.

RULES = {
    "rules": {
        ".read": False,
        "mine": {
            ".read": "auth != null && auth.uid === 'me'",
            ".write": "auth.uid === 'me'",
            "count": {".validate": "newData.isNumber() && (!data.exists() || newData.val() > data.val())"},
            "$other": {
                ".validate": "newData.hasChildren(['r']) || $other.length > 3",
                "r": {".validate": "newData.val().matches(/^[a-z]+$/) && root.child('mine/count').val() >= 0"},
            },
        },
    }
}


def test_rules_say_who_may_do_what(server: FirebaseServer) -> None:
    server.set(rules=RULES)
    assert ask(server, "GET", "mine")[0] == 401
    assert ask(server, "PUT", "mine/count", 1)[0] == 401
    # The tokens that let a client choose who it is are those of the emulator here.
    for uid, allowed in (("me", True), ("other", False)):
        more = {"ns": "demo", "authorization": "Bearer owner", "auth_variable_override": json.dumps({"uid": uid})}
        assert (ask(server, "GET", "mine", **more)[0] == 200) is allowed
        assert (ask(server, "PUT", "mine/count", 5, **more)[0] == 200) is allowed
        assert ask(server, "GET", "", **more)[0] == 401
    me = {"ns": "demo", "authorization": "Bearer owner", "auth_variable_override": '{"uid":"me"}'}
    for path, value, allowed in [
        ("mine/count", 5, False), ("mine/count", 6, True), ("mine/count", "7", False), ("mine/count", None, True),
        ("mine/x", {"r": "abc"}, False), ("mine/count", 1, True), ("mine/x", {"r": "abc"}, True),
        ("mine/x", {"r": "ABC"}, False), ("mine/x", {"s": 1}, False), ("mine/long", {"s": 1}, True),
        ("elsewhere", 1, False), ("mine", {"x": {"r": "1"}}, False),
    ]:  # fmt: skip
        assert (ask(server, "PUT", path, value, **me)[0] == 200) is allowed, (path, value)
    assert ask(server, "PUT", "mine/count", 0, ns="demo", authorization="Bearer owner")[0] == 200


def test_rules_that_cannot_be_read_are_refused(server: FirebaseServer) -> None:
    for rule in ("auth.uid ===", "auth uid", "(auth", ""):
        with pytest.raises((AssertionError, http.client.HTTPException, ConnectionError)):
            server.set(rules={"rules": {".read": rule}})


def test_a_wrong_token_is_refused(server: FirebaseServer) -> None:
    assert ask(server, "GET", "a", authorization="Bearer nonsense")[0] == 401
    assert ask(server, "GET", "a", authorization="Bearer owner")[0] == 401  # only an emulator knows that one
    assert ask(server, "GET", "a", authorization="Bearer owner", ns="demo")[0] == 200


# Streams.


class Stream:
    def __init__(self, server: FirebaseServer, path: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        self._connection.request("GET", f"/{path}.json", headers={"Accept": "text/event-stream"})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200

    def next(self) -> tuple[str, Any]:
        lines = [self._answer.readline().decode().strip() for _ in range(3)]
        assert lines[2] == ""
        return lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))

    def is_over(self) -> bool:
        return self._answer.readline() == b""

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def test_a_stream_begins_with_the_whole_and_tells_each_change(server: FirebaseServer) -> None:
    ask(server, "PUT", "a/b", {"x": 1})
    stream = Stream(server, "a/b")
    assert stream.next() == ("put", {"path": "/", "data": {"x": 1}})
    ask(server, "PUT", "a/b/y", 2)
    assert stream.next() == ("put", {"path": "/y", "data": 2})
    ask(server, "PUT", "a", {"b": {"z": 3}})
    assert stream.next() == ("put", {"path": "/", "data": {"z": 3}})
    ask(server, "PUT", "elsewhere", 1)
    ask(server, "PATCH", "a/b", {"z": 4, "w": 5})
    assert stream.next() == ("patch", {"path": "/", "data": {"z": 4, "w": 5}})
    ask(server, "DELETE", "a")
    assert stream.next() == ("put", {"path": "/", "data": None})
    stream.close()


def test_a_stream_keeps_alive_and_can_be_ended(server: FirebaseServer) -> None:
    server.set(keep_alive_s=0.05)
    stream = Stream(server, "a")
    assert [stream.next()[0] for _ in range(3)] == ["put", "keep-alive", "keep-alive"]
    server.set(keep_alive_s=30.0)
    server.say("streams", kind="auth_revoked")
    kinds = [stream.next()[0]]
    while kinds[-1] == "keep-alive":
        kinds.append(stream.next()[0])
    assert kinds[-1] == "auth_revoked"
    assert stream.is_over()
    stream.close()


# What happens to requests because a test wants it.


def test_misfortunes(server: FirebaseServer) -> None:
    server.hook("fail", method="PUT", status=503, skip=1)
    assert [ask(server, "PUT", "a", number)[0] for number in range(3)] == [200, 503, 200]
    server.hook("drop", method="PUT", path="a")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(server, "PUT", "a", "dropped")
    assert get(server, "a") == 2
    server.hook("lose", method="PUT", path="a")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(server, "PUT", "a", "lost")
    assert get(server, "a") == "lost"
    late = server.hook("late", method="PUT", path="a")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(server, "PUT", "a", "late")
    assert get(server, "a") == "lost"
    server.land(late)
    assert get(server, "a") == "late"


def test_a_rival_writes_just_before(server: FirebaseServer) -> None:
    ask(server, "PUT", "a", 1)
    _, etag = with_etag(server, "a")
    server.hook("rival", method="PUT", path="a", writes=[["a", 2]])
    assert ask(server, "PUT", "a", 3, if_match=etag)[:2] == (412, 2)


@pytest.mark.parametrize("kind", ["hold", "stop"])
def test_a_request_can_be_held_before_it_is_done_and_after(server: FirebaseServer, kind: str) -> None:
    hook = server.hook(kind, method="PUT", holding="wanted")
    found: list[Answered] = []
    asking = threading.Thread(target=lambda: found.append(ask(server, "PUT", "a", "wanted")))
    asking.start()
    server.wait(hook)
    assert get(server, "a") == {"hold": None, "stop": "wanted"}[kind]
    assert not found
    server.release(hook)
    asking.join(30)
    assert found[0][:2] == (200, "wanted")


def test_requests_can_be_sent_elsewhere(server: FirebaseServer) -> None:
    server.set(redirect_to="http://127.0.0.1:1")
    assert ask(server, "GET", "a")[0] == 307
    with pytest.raises(AssertionError):
        Stream(server, "a")


def test_requests_are_written_down(server: FirebaseServer) -> None:
    ask(server, "PUT", "a", 1, if_match="null_etag")
    ask(server, "GET", "a")
    assert server.requests() == [("PUT", "a", True), ("GET", "a", False)]
    assert server.requests() == []


def test_a_killed_server_has_what_it_answered(tmp_path: Path) -> None:
    with FirebaseServer(tmp_path) as server:
        port = server.port
        for number in range(20):
            ask(server, "PUT", f"a/k{number}", {"n": number})
        ask(server, "PUT", "a/k7", None)
        server.restart()
        assert server.port == port
        assert get(server, "a") == {f"k{number}": {"n": number} for number in range(20) if number != 7}


def test_a_write_leaves_the_tree_before_it_as_it_was() -> None:
    old = {"a": {"b": 1, "c": 2}}
    assert changed(old, ("a", "b"), None) == {"a": {"c": 2}}
    assert changed(old, ("a",), None) is None
    assert changed(old, ("a", "b", "deep"), 1) == {"a": {"b": {"deep": 1}, "c": 2}}
    assert changed(old, ("a", "b", "deep"), None) == old == {"a": {"b": 1, "c": 2}}
    assert as_shown({"a": {"1": 1, "0": 2}}) == {"a": [2, 1]}
