"""The stand-in for a model, asked by plain HTTP."""

import http.client
import json
import threading
from typing import Any

import pytest

from tests.agents.model import AFTER_THE_SCRIPT, Model, call, run, say
from tests.agents.wires import WIRES, Anthropic, Chat, Gemini, Responses, Wire, arguments

PATHS: dict[Wire, str] = {
    Anthropic: "/v1/messages?beta=true",
    Responses: "/v1/responses",
    Chat: "/v1/chat/completions",
    Gemini: "/v1beta/models/some:streamGenerateContent?alt=sse",
}
SHELL = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "why": {"type": "string"}},
    "required": ["command", "why"],
}
BODIES: dict[Wire, dict[str, Any]] = {
    Anthropic: {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}],
        "tools": [{"name": "Bash", "input_schema": SHELL}],
    },
    Responses: {
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello."}]}],
        "tools": [{"type": "function", "name": "Bash", "parameters": SHELL}],
    },
    Chat: {
        "messages": [{"role": "user", "content": "Hello."}],
        "tools": [{"type": "function", "function": {"name": "Bash", "parameters": SHELL}}],
    },
    Gemini: {
        "contents": [{"role": "user", "parts": [{"text": "Hello."}]}],
        "tools": [{"functionDeclarations": [{"name": "Bash", "parametersJsonSchema": SHELL}]}],
    },
}
CALLED = {"command": "make", "why": "x"}

every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)


def ask(model: Model, path: str, body: dict[str, Any] | None, timeout_s: float = 10) -> tuple[int, str]:
    """POST, or GET without a body."""
    connection = http.client.HTTPConnection(model.url.removeprefix("http://"), timeout=timeout_s)
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def inside(value: Any) -> list[Any]:
    """Everything in a value, at any depth, and what strings hold as JSON."""
    if isinstance(value, str) and value.startswith("{"):
        return [value, *inside(json.loads(value))]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(found for part in parts for found in inside(part))]


@every_wire
def test_a_text_is_said(wire: Wire) -> None:
    with Model(say("All is well.")) as model:
        status, text = ask(model, PATHS[wire], BODIES[wire])
    assert status == 200
    assert "All is well." in inside(events(text))


@every_wire
def test_tools_are_called_as_their_schema_wants_it(wire: Wire) -> None:
    with Model(run("make", "make")) as model:
        _, text = ask(model, PATHS[wire], BODIES[wire])
    called = [found for event in events(text) for found in inside(event) if found == CALLED]
    # OpenAI Responses says everything three times: when an item begins, when it is done, and at the end.
    assert len(called) == (6 if wire is Responses else 2)
    assert "Bash" in inside(events(text))


@every_wire
def test_any_tool_can_be_called(wire: Wire) -> None:
    with Model(call("Other", depth=3)) as model:
        _, text = ask(model, PATHS[wire], BODIES[wire])
    found = inside(events(text))
    assert "Other" in found
    assert {"depth": 3} in found


@every_wire
def test_a_request_is_kept_whole(wire: Wire) -> None:
    with Model() as model:
        ask(model, PATHS[wire], BODIES[wire])
        ask(model, PATHS[wire], BODIES[wire])
        first, second = model.requests
    assert first.body == BODIES[wire]
    assert "Hello." in first.shown
    assert first.tools == {"Bash": SHELL}
    assert first.at <= second.at


@every_wire
def test_a_request_without_tools_is_no_step(wire: Wire) -> None:
    with Model(say("the step")) as model:
        _, aside = ask(model, PATHS[wire], {**BODIES[wire], "tools": []})
        _, main = ask(model, PATHS[wire], BODIES[wire])
        assert len(model.requests) == 1
    assert "the step" not in aside
    assert "the step" in main


def test_a_request_is_held_until_it_is_let_go() -> None:
    answers: list[str] = []
    with Model(say("late", held=True)) as model:
        asking = threading.Thread(target=lambda: answers.append(ask(model, PATHS[Chat], BODIES[Chat])[1]))
        asking.start()
        request = model.request(1)
        assert ask(model, "/v1/models", None)[0] == 200  # others are answered meanwhile
        assert not answers
        request.let_go()
        asking.join(10)
    assert "late" in answers[0]


def test_a_model_that_ends_holds_nobody() -> None:
    with Model(say("late", held=True)) as model:
        asking = threading.Thread(target=ask, args=(model, PATHS[Chat], BODIES[Chat]))
        asking.start()
        model.request(1)
    asking.join(10)
    assert not asking.is_alive()


def test_who_waits_for_a_request_that_never_comes_is_told_what_came_instead() -> None:
    with Model() as model:
        ask(model, "/v1/models", None)
        with pytest.raises(AssertionError, match="/v1/models"):
            model.request(1, timeout_s=0.01)


def test_after_the_script_the_turn_ends() -> None:
    with Model() as model:
        assert AFTER_THE_SCRIPT in ask(model, PATHS[Anthropic], BODIES[Anthropic])[1]


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages/count_tokens", "/v1beta/models/some:countTokens"])
def test_what_programs_ask_besides_is_answered(path: str) -> None:
    with Model() as model:
        assert ask(model, path, None if path.endswith("models") else {})[0] == 200
        assert list(model.beside) == [path]


def test_what_nobody_knows_is_not_found() -> None:
    with Model() as model:
        assert ask(model, "/v1/other", {})[0] == 404


def test_a_command_is_a_list_where_the_schema_wants_one() -> None:
    schema = {"properties": {"cmd": {"type": ["array", "null"]}, "wait_s": {"type": "NUMBER"}}, "required": ["wait_s"]}
    assert arguments(schema, "make") == {"cmd": ["bash", "-c", "make"], "wait_s": 1}
