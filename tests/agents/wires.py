"""What goes over the wire between an agent's program and its model: four protocols, as far as whole turns need them.

Each is a class with the same names; `WIRES` finds one by the path of a request. Answers are streams of events, given
out in one piece: no test looks at how they arrive.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Body = Mapping[str, Any]
Schema = Mapping[str, Any]


class Call(NamedTuple):
    """Of a tool, by the model."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


class Anthropic:
    """Anthropic Messages."""

    path = "/messages"
    shown = ("system", "messages")  # the parts of a request that the model reads

    @staticmethod
    def tools(body: Body) -> dict[str, Schema]:
        return {tool["name"]: tool.get("input_schema", {}) for tool in body.get("tools") or []}

    @staticmethod
    def answer(body: Body, id: str, text: str, calls: Sequence[Call]) -> bytes:
        usage = {"input_tokens": 10, "output_tokens": 5}
        blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []  # as it starts, and what is added to it
        if text:
            blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": text}))
        for call in calls:
            start = {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.tool, "input": {}}
            blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}))
        message = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": body.get("model", "")}
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
        for index, (start, delta) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": start})
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        events += [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
        return _named_events(events)


class Responses:
    """OpenAI Responses."""

    path = "/responses"
    shown = ("instructions", "input")

    @staticmethod
    def tools(body: Body) -> dict[str, Schema]:
        offered = [tool for tool in body.get("tools") or [] if tool.get("type") == "function"]
        return {tool["name"]: tool.get("parameters") or {} for tool in offered}

    @staticmethod
    def answer(body: Body, id: str, text: str, calls: Sequence[Call]) -> bytes:
        items: list[dict[str, Any]] = []
        if text:
            content = [{"type": "output_text", "text": text, "annotations": []}]
            items.append({"type": "message", "id": f"msg_{id}", "role": "assistant", "content": content})
        for call in calls:
            item = {"type": "function_call", "id": f"fc_{call.id}", "call_id": f"call_{call.id}", "name": call.tool}
            items.append({**item, "arguments": json.dumps(call.arguments)})
        response: dict[str, Any] = {"id": f"resp_{id}", "object": "response", "model": body.get("model", "")}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
        ]
        for index, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        done = {**response, "status": "completed", "output": items, "usage": usage}
        return _named_events([*events, {"type": "response.completed", "response": done}])


class Chat:
    """OpenAI Chat Completions."""

    path = "/chat/completions"
    shown = ("messages",)

    @staticmethod
    def tools(body: Body) -> dict[str, Schema]:
        functions = [tool["function"] for tool in body.get("tools") or []]
        return {function["name"]: function.get("parameters") or {} for function in functions}

    @staticmethod
    def answer(body: Body, id: str, text: str, calls: Sequence[Call]) -> bytes:
        chunk = {
            "id": f"chatcmpl-{id}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": body.get("model", ""),
        }
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text}]
        for index, call in enumerate(calls):
            function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
            called = {"index": index, "id": f"call_{call.id}", "type": "function", "function": function}
            deltas.append({"tool_calls": [called]})
        choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        events = [{**chunk, "choices": [choice]} for choice in choices]
        return _events([*events, {**chunk, "choices": [], "usage": usage}]) + b"data: [DONE]\n\n"


class Gemini:
    """Gemini generateContent, streamed."""

    path = ":streamGenerateContent"
    shown = ("systemInstruction", "contents")

    @staticmethod
    def tools(body: Body) -> dict[str, Schema]:
        offered = [tool for group in body.get("tools") or [] for tool in group.get("functionDeclarations") or []]
        return {tool["name"]: tool.get("parametersJsonSchema") or tool.get("parameters") or {} for tool in offered}

    @staticmethod
    def answer(body: Body, id: str, text: str, calls: Sequence[Call]) -> bytes:
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        parts += [{"functionCall": {"id": call.id, "name": call.tool, "args": call.arguments}} for call in calls]
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return _events([{"candidates": [candidate], "usageMetadata": usage, "responseId": id}])


Wire = type[Anthropic] | type[Responses] | type[Chat] | type[Gemini]
WIRES: tuple[Wire, ...] = (Anthropic, Responses, Chat, Gemini)

# What programs ask besides, by the end of the path.
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "/count_tokens": {"input_tokens": 10},
    ":countTokens": {"totalTokens": 10},
    "/models": {"object": "list", "data": [], "models": []},
}


def wire_of(path: str) -> Wire | None:
    return next((wire for wire in WIRES if path.endswith(wire.path)), None)


def shown(wire: Wire, body: Body) -> str:
    """All texts of a request that the model reads, in their order."""
    return "\n".join(text for name in wire.shown for text in _texts(body.get(name)))


def arguments(schema: Schema, command: str) -> dict[str, Any]:
    """Of a tool that runs a command: what it is to be given, by its own word on what that is."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    name = next(name for name in ("command", "cmd") if name in properties)
    is_list = _type(properties[name]) == "array"
    filled = {name: _example(properties.get(name, {})) for name in schema.get("required") or []}
    return {**filled, name: ["bash", "-c", command] if is_list else command}


def _type(schema: Schema) -> str:
    kind = schema.get("type", "string")
    return str(kind[0] if isinstance(kind, list) else kind).lower()


def _example(schema: Schema) -> Any:
    """Something that a schema allows."""
    if schema.get("enum"):
        return schema["enum"][0]
    return {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}[_type(schema)]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in _texts(part)]


def _events(events: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def _named_events(events: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(b"event: " + event["type"].encode() + b"\n" + _events([event]) for event in events)
