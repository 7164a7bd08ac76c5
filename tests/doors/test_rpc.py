"""JSON-RPC 2.0, without anything that carries it: the specification's own examples, odd messages, and any bytes."""

import json
import math
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord import errors
from accord.doors.rpc import MOST_BYTES, MOST_TOGETHER, Call, Peer
from tests.often import often

pytestmark = pytest.mark.covers("R6")

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class Toy:
    """The server of the specification's examples, and all that it sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.served: list[Call] = []
        self.kept: list[Call] = []
        self.answered: list[Call] = []
        self.peer = Peer(self._serve, self.sent.append, self.answered.append)

    def receive(self, message: "str | bytes") -> Any:
        """What is answered at once: one message, or nothing."""
        self.sent.clear()
        self.peer.receive(message.encode() if isinstance(message, str) else message)
        assert len(self.sent) <= 1, self.sent
        return json.loads(self.sent[0]) if self.sent else None

    def _serve(self, call: Call) -> None:
        self.served.append(call)
        params: Any = call.params
        if call.method == "subtract":
            given = params if isinstance(params, list) else [params["minuend"], params["subtrahend"]]
            call.answer(given[0] - given[1])
        elif call.method == "sum":
            call.answer(sum(params))
        elif call.method == "get_data":
            call.answer(["hello", 5])
        elif call.method == "later":
            self.kept.append(call)
        elif call.method == "strange":
            call.answer({"it has": "no JSON", "form": object()})
        elif call.method == "broken":
            raise ZeroDivisionError
        elif call.method in ("update", "foobar", "notify_hello", "notify_sum"):
            call.answer(None)
        else:
            raise errors.MethodNotFound(method=call.method, near="")


@pytest.fixture
def toy() -> Toy:
    return Toy()


def plain(answer: Any) -> Any:
    """An answer without what the specification leaves open: the words and the data of errors, the order of a batch."""
    if isinstance(answer, list):
        return sorted((plain(one) for one in answer), key=lambda one: json.dumps(one, sort_keys=True))
    if isinstance(answer, dict) and "error" in answer:
        return {**answer, "error": {"code": answer["error"]["code"]}}
    return answer


def result(value: Any, id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "result": value, "id": id}


def failure(code: int, id: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code}, "id": id}


# Section 7 of the specification, word for word.
EXAMPLES: dict[str, tuple[str, Any]] = {
    "positional 1": ('{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}', result(19, 1)),
    "positional 2": ('{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}', result(-19, 2)),
    "named 1": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        result(19, 3),
    ),
    "named 2": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        result(19, 4),
    ),
    "notification 1": ('{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
    "notification 2": ('{"jsonrpc": "2.0", "method": "foobar"}', None),
    "no such method": ('{"jsonrpc": "2.0", "method": "nothing", "id": "1"}', failure(METHOD_NOT_FOUND, "1")),
    "invalid JSON": ('{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', failure(PARSE_ERROR)),
    "invalid request": ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', failure(INVALID_REQUEST)),
    "batch of invalid JSON": (
        '[\n  {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},\n  {"jsonrpc": "2.0", "method"\n]',
        failure(PARSE_ERROR),
    ),
    "empty batch": ("[]", failure(INVALID_REQUEST)),
    "batch of one that is invalid": ("[1]", [failure(INVALID_REQUEST)]),
    "batch of three that are invalid": ("[1,2,3]", [failure(INVALID_REQUEST)] * 3),
    "mixed batch": (
        """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
    ]""",
        plain([
            result(7, "1"),
            result(19, "2"),
            failure(INVALID_REQUEST),
            failure(METHOD_NOT_FOUND, "5"),
            result(["hello", 5], "9"),
        ]),
    ),
    "batch of notifications": (
        """[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
    ]""",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_specifications_examples(name: str, toy: Toy) -> None:
    asked, expected = EXAMPLES[name]
    assert plain(toy.receive(asked)) == expected


def test_the_members_of_an_answer(toy: Toy) -> None:
    assert toy.receive('{"jsonrpc":"2.0","method":"get_data","id":1}').keys() == {"jsonrpc", "result", "id"}
    refused = toy.receive('{"jsonrpc":"2.0","method":"nothing","id":1}')
    assert refused.keys() == {"jsonrpc", "error", "id"}
    assert refused["error"].keys() == {"code", "message", "data"}
    assert refused["error"]["data"] == {"error_code": "METHOD_NOT_FOUND", "details": {"method": "nothing", "near": ""}}


@pytest.mark.parametrize(
    "id",
    ['"x"', '""', '"\\u00e9\\n\\""', '"é\\ud83d\\ude00"', "0", "-1", "1.5", "null", str(10**300), str(2**53 + 1)],
    ids=lambda id: id[:20],
)
def test_ids_come_back_as_they_are(id: str, toy: Toy) -> None:
    answer = toy.receive(f'{{"jsonrpc":"2.0","method":"sum","params":[1,2],"id":{id}}}')
    assert answer == result(3, json.loads(id))
    answer = toy.receive(f'{{"jsonrpc":"2.0","method":"nothing","id":{id}}}')
    assert plain(answer) == failure(METHOD_NOT_FOUND, json.loads(id))


@pytest.mark.parametrize("id", ["true", "false", "[]", "[1]", "{}", '{"a":1}'])
def test_what_is_no_id(id: str, toy: Toy) -> None:
    assert plain(toy.receive(f'{{"jsonrpc":"2.0","method":"sum","params":[1],"id":{id}}}')) == failure(INVALID_REQUEST)
    assert not toy.served


@pytest.mark.parametrize(
    "message",
    [
        "null", "true", "1", '"sum"', "{}", '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":7}',
        '{"jsonrpc":"1.0","method":"sum","id":7}', '{"jsonrpc":2.0,"method":"sum","id":7}', '{"method":"sum","id":7}',
        '{"jsonrpc":"2.0","method":null,"id":7}', '{"jsonrpc":"2.0","method":["sum"],"id":7}',
        '{"jsonrpc":"2.0","method":"sum","params":null,"id":7}', '{"jsonrpc":"2.0","method":"sum","params":1,"id":7}',
        '{"jsonrpc":"2.0","method":"sum","params":"x","id":7}', '{"jsonrpc":"2.0","method":"sum","request":1,"id":7}',
        '{"jsonrpc":"2.0","method":"sum","request":"' + "x" * 201 + '","id":7}',
    ],
    ids=lambda message: message[:60],
)  # fmt: skip
def test_json_that_is_no_request(message: str, toy: Toy) -> None:
    """It is answered with its id, where that can be read; alone or among others."""
    expected = failure(INVALID_REQUEST, 7 if '"id":7' in message else None)
    assert plain(toy.receive(message)) == expected
    assert toy.peer.malformed == 1
    among = f'[{message},{{"jsonrpc":"2.0","method":"get_data","id":8}}]'
    assert plain(toy.receive(among)) == plain([result(["hello", 5], 8), expected])
    assert [call.method for call in toy.served] == ["get_data"]


NESTED = 100
BAD_JSON = {
    "nothing": b"",
    "blanks": b" \t",
    "half": b'{"jsonrpc":"2.0","method":"sum"',
    "two": b'{"jsonrpc":"2.0","method":"sum","id":1}{"jsonrpc":"2.0","method":"sum","id":2}',
    "not UTF-8": b'{"jsonrpc":"2.0","method":"\xff","id":1}',
    "an encoded surrogate": b'{"jsonrpc":"2.0","method":"\xed\xa0\x80","id":1}',
    "half a pair": b'{"jsonrpc":"2.0","method":"\\ud800","id":1}',
    "half a pair as id": b'{"jsonrpc":"2.0","method":"sum","id":"\\udfff"}',
    "half a pair as a key": b'{"jsonrpc":"2.0","method":"sum","params":{"\\udfff":1},"id":1}',
    "a key twice": b'{"jsonrpc":"2.0","method":"sum","params":[1],"id":1,"id":2}',
    "a key twice, deeper": b'{"jsonrpc":"2.0","method":"sum","params":{"a":1,"a":2},"id":1}',
    "NaN": b'{"jsonrpc":"2.0","method":"sum","params":[NaN],"id":1}',
    "Infinity": b'{"jsonrpc":"2.0","method":"sum","params":[-Infinity],"id":1}',
    "too large a number": b'{"jsonrpc":"2.0","method":"sum","params":[1e999],"id":1}',
    "too many digits": b'{"jsonrpc":"2.0","method":"sum","params":[' + b"9" * 10_000 + b'],"id":1}',
    "deep lists": b'{"jsonrpc":"2.0","method":"sum","params":' + b"[" * NESTED + b"]" * NESTED + b',"id":1}',
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "endless": b"[" * 1_000_000,
    "a control character": b'{"jsonrpc":"2.0","method":"a\nb","id":1}',
    "a mark of byte order": b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"get_data","id":1}',
    "UTF-16": '{"jsonrpc":"2.0","method":"get_data","id":1}'.encode("utf-16"),
    "another comma": b'{"jsonrpc":"2.0","method":"get_data","id":1,}',
}


@pytest.mark.covers("T3.11")
@pytest.mark.parametrize("name", BAD_JSON)
def test_what_is_no_json_is_answered_and_counted(name: str, toy: Toy) -> None:
    """And what comes after it is served."""
    assert plain(toy.receive(BAD_JSON[name])) == failure(PARSE_ERROR)
    assert (toy.peer.malformed, toy.served) == (1, [])
    assert toy.receive('{"jsonrpc":"2.0","method":"get_data","id":1}') == result(["hello", 5], 1)


def test_nesting_that_is_not_too_deep(toy: Toy) -> None:
    params = "[" * 50 + "]" * 50
    assert toy.receive(f'{{"jsonrpc":"2.0","method":"update","params":{params},"id":1}}') == result(None, 1)


def test_a_batch_as_large_as_can_be_and_one_more(toy: Toy) -> None:
    batch = [{"jsonrpc": "2.0", "method": "sum", "params": [n], "id": n} for n in range(MOST_TOGETHER)]
    assert toy.receive(json.dumps(batch)) == [result(n, n) for n in range(MOST_TOGETHER)]
    toy.served.clear()
    assert plain(toy.receive(json.dumps([*batch, batch[0]]))) == failure(INVALID_REQUEST)
    assert not toy.served, "all or nothing"


def test_a_message_as_large_as_can_be_and_one_more(toy: Toy) -> None:
    start, end = '{"jsonrpc":"2.0","method":"update","id":1,"params":["', '"]}'
    text = start + "x" * (MOST_BYTES - len(start) - len(end)) + end
    assert toy.receive(text) == result(None, 1)
    assert plain(toy.receive(text.replace("x", "xx", 1))) == failure(PARSE_ERROR)
    letters = start + "é" * ((MOST_BYTES - len(start) - len(end)) // 2) + end
    assert toy.receive(letters) == result(None, 1)
    assert plain(toy.receive(letters.replace("é", "éé", 1))) == failure(PARSE_ERROR), "bytes count, not letters"


def test_a_call_is_answered_once(toy: Toy) -> None:
    assert toy.receive('{"jsonrpc":"2.0","method":"later","id":1}') is None
    (call,) = toy.kept
    assert toy.peer.open_calls == {call}
    call.answer("first")
    call.answer("second")
    call.fail(errors.AccordError())
    assert [json.loads(text) for text in toy.sent] == [result("first", 1)]
    assert toy.answered == [call]
    assert not toy.peer.open_calls


def test_a_batch_is_answered_when_all_of_it_is(toy: Toy) -> None:
    """In whichever order that comes."""
    asked = [{"jsonrpc": "2.0", "method": "later", "id": n} for n in range(3)]
    asked.insert(1, {"jsonrpc": "2.0", "method": "later"})
    assert toy.receive(json.dumps(asked)) is None
    first, silent, second, third = toy.kept
    third.answer(3)
    first.fail(errors.MethodNotFound(method="x", near=""))
    third.answer("again")
    second.answer(2)
    assert not toy.sent
    silent.answer("unheard")
    (text,) = toy.sent
    assert plain(json.loads(text)) == plain([failure(METHOD_NOT_FOUND, 0), result(2, 1), result(3, 2)])
    assert len(toy.answered) == 4


def test_nobody_hears_of_a_notification(toy: Toy) -> None:
    for method in ("get_data", "nothing", "broken", "later"):
        assert toy.receive(f'{{"jsonrpc":"2.0","method":"{method}"}}') is None
    assert [call.method for call in toy.served] == ["get_data", "nothing", "broken", "later"]
    assert [call.method for call in toy.peer.open_calls] == ["later"]


@pytest.mark.parametrize("method", ["strange", "broken"])
def test_a_fault_of_ours_is_answered_too(method: str, toy: Toy) -> None:
    """A result that has no JSON form, or an error that nobody expected."""
    asked = f'{{"jsonrpc":"2.0","method":"{method}","id":1}}'
    assert plain(toy.receive(asked)) == failure(INTERNAL, 1)
    among = f'[{asked},{{"jsonrpc":"2.0","method":"get_data","id":2}}]'
    found = toy.receive(among)
    assert {one["id"] for one in found} == {1, 2}
    assert not toy.peer.open_calls


def test_params_and_request_as_they_are_served(toy: Toy) -> None:
    toy.receive('{"jsonrpc":"2.0","method":"later","params":{"a":[1,{"b":null}]},"request":"r1","id":"x"}')
    toy.receive('{"jsonrpc":"2.0","method":"later","params":[],"unknown":true,"id":1}')
    first, second = toy.kept
    assert (first.params, first.request, first.id) == ({"a": [1, {"b": None}]}, "r1", '"x"')
    assert (second.params, second.request) == ({}, "")


def test_what_took_too_long(toy: Toy) -> None:
    for id, deadline in (("early", 10.0), ("late", 20.0), ("never", 0.0)):
        toy.receive(f'{{"jsonrpc":"2.0","method":"later","id":"{id}"}}')
        if deadline:
            toy.kept[-1].limit(deadline - 5, 5.0)
    toy.sent.clear()
    toy.peer.sweep(10.0)
    assert not toy.sent
    toy.peer.sweep(15.0)
    (text,) = toy.sent
    told = json.loads(text)
    assert told["id"] == "early"
    assert told["error"]["data"]["error_code"] == "REQUEST_TIMEOUT"
    assert "within 5 s" in told["error"]["message"]
    toy.kept[0].answer("too late")
    toy.peer.sweep(1e9)
    assert [json.loads(text)["id"] for text in toy.sent] == ["early", "late"]
    assert {call.id for call in toy.peer.open_calls} == {'"never"'}


class Asked:
    """What the other side said to something that we asked."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, Any]] = []

    def __call__(self, result: Any, error: Any) -> None:
        self.heard.append((result, error))


def test_asking_the_caller(toy: Toy) -> None:
    first, second, third = Asked(), Asked(), Asked()
    for asked in (first, second, third):
        toy.peer.ask("cli.read", {"most": 5}, asked)
    sent = [json.loads(text) for text in toy.sent]
    ids = [message.pop("id") for message in sent]
    assert sent == [{"jsonrpc": "2.0", "method": "cli.read", "params": {"most": 5}}] * 3
    assert len(set(ids)) == 3
    # Answers come in any order, and among requests that use the same ids.
    batch = [
        {"jsonrpc": "2.0", "id": ids[1], "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "id": ids[0], "method": "sum", "params": [1, 2]},
    ]
    assert toy.receive(json.dumps(batch)) == [result(3, ids[0])]
    assert toy.receive(json.dumps(result("data", ids[0]))) is None
    assert toy.receive(json.dumps(result("again", ids[0]))) is None
    assert first.heard == [("data", None)]
    assert second.heard == [(None, {"code": 1, "message": "no"})]
    assert third.heard == []
    toy.peer.gone()
    assert third.heard == [(None, {"message": "the caller is gone"})]
    assert toy.receive(json.dumps(result("late", ids[2]))) is None
    assert len(first.heard + second.heard + third.heard) == 3


@pytest.mark.parametrize(
    "id", ["99", "-1", '"1"', "1.0", "1.5", "true", "null", "[1]", '{"a":1}', str(10**300)], ids=lambda id: id[:9]
)
def test_an_answer_to_what_nobody_asked(id: str, toy: Toy) -> None:
    """It is no request, so it gets no answer; nor is it taken for the answer to something else."""
    asked = Asked()
    toy.peer.ask("cli.read", {}, asked)
    for member in ("result", "error"):
        assert toy.receive(f'{{"jsonrpc":"2.0","{member}":{{}},"id":{id}}}') is None
        assert toy.receive(f'{{"jsonrpc":"2.0","{member}":{{}}}}') is None
    assert asked.heard == []
    assert not toy.served
    assert toy.receive('{"jsonrpc":"2.0","method":"get_data","id":1}') == result(["hello", 5], 1)


def test_whoever_is_gone_is_told_nothing(toy: Toy) -> None:
    toy.receive('{"jsonrpc":"2.0","method":"later","id":1}')
    toy.peer.gone()
    assert not toy.peer.open_calls
    toy.peer.sweep(1e9)
    assert toy.sent == []


# Any bytes: requests of all kinds, damaged and whole, and noise.

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
METHODS = ["sum", "subtract", "get_data", "update", "strange", "broken", "later", "nothing"]
IDS = st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False)
REQUESTS = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0"])},
    optional={
        "method": st.sampled_from(METHODS),
        "id": IDS | JSON_VALUES,
        "params": st.lists(st.integers(), max_size=3) | JSON_VALUES,
        "request": st.text(max_size=3),
        "result": JSON_VALUES,
        "error": JSON_VALUES,
    },
)
MESSAGES = REQUESTS | st.lists(REQUESTS | JSON_VALUES, max_size=5) | JSON_VALUES
BYTES = st.one_of(
    MESSAGES.map(lambda value: json.dumps(value).encode()),
    MESSAGES.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.tuples(MESSAGES.map(lambda value: json.dumps(value).encode()), st.integers(0, 300), st.binary(max_size=3)).map(
        lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] + 1 :]
    ),
    st.binary(max_size=50),
)


@settings(max_examples=often(400))
@example([b'[1e400, {"jsonrpc": "2.0", "method": "sum", "id": 0}]'])
@given(st.lists(BYTES, max_size=4))
def test_any_bytes(messages: list[bytes]) -> None:
    """Nothing raises; all that is sent is JSON-RPC; and each well-formed request with an id gets one answer."""
    toy = Toy()
    for message in messages:
        before = len(toy.sent)
        toy.peer.receive(message)
        for call in toy.kept:
            call.answer(None)
        assert len(toy.sent) - before <= 1
        assert Counter(id for text in toy.sent[before:] for id in ids_answered(text)) == Counter(ids_in(message))
        assert not toy.peer.open_calls
        toy.kept.clear()


def ids_answered(text: str) -> list[str]:
    """The ids of the requests that a message of ours answers; it may refuse others that are none."""
    assert "\n" not in text, "one line"
    answer = json.loads(text, parse_constant=refuse)
    assert answer != []
    found = []
    for one in answer if isinstance(answer, list) else [answer]:
        assert one["jsonrpc"] == "2.0"
        assert one.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        error = one.get("error", {"code": 0, "data": {"error_code": "NONE"}})
        assert re.fullmatch("[A-Z_]+", error["data"]["error_code"])
        if error["code"] not in (PARSE_ERROR, INVALID_REQUEST):
            found.append(json.dumps(one["id"]))
    return found


def ids_in(message: bytes) -> list[str]:
    """The ids of what, by the letter of the specification, is a request, and a limit of ours does not refuse."""
    try:
        value = json.loads(message.decode(), object_pairs_hook=once, parse_constant=refuse, parse_float=finite)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return []
    several = value if isinstance(value, list) else [value]
    return [json.dumps(one["id"]) for one in several if is_request(one)]


def is_request(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and one.get("jsonrpc") == "2.0"
        and isinstance(one.get("method"), str)
        and isinstance(one.get("params", []), list | dict)
        and isinstance(one.get("request", ""), str)
        and "id" in one
        and (one["id"] is None or type(one["id"]) in (str, int, float))
    )


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)


def finite(digits: str) -> float:
    if math.isinf(float(digits)):
        raise ValueError(digits)
    return float(digits)


def refuse(word: str) -> None:
    raise ValueError(word)
