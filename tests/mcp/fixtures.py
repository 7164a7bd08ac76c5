"""What the MCP conformance suite asks a server for, beside what accord has: tools, resources and prompts of its own.

They lie on accord's own server, behind accord's own door; see `serve.py`. The suite's descriptions say what each does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, SubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError

from accord.doors.mcp.server import HubServer
from accord.hub.core import Hub
from accord.hub.session import Session

Context = ServerRequestContext[Any, Any]
Json = dict[str, Any]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
PAUSE_S = 0.05

NOTHING: Json = {"type": "object", "properties": {}}


def text(words: str) -> Json:
    return {"content": [{"type": "text", "text": words}]}


def form(message: str, **properties: Json) -> Json:
    """An elicitation, as the result of a call that needs one."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sampling(words: str, most: int) -> Json:
    said = {"role": "user", "content": {"type": "text", "text": words}}
    return {"method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": most}}


ROOTS: Json = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", name={"type": "string"})
CONFIRM = form("Please confirm", ok={"type": "boolean"})


def needed(requests: Json, state: str = "") -> Json:
    return {"resultType": "input_required", "inputRequests": requests, **({"requestState": state} if state else {})}


class Fixtures(HubServer):
    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        self._bus = InMemorySubscriptionBus()
        self.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="accord"))
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _nothing)
        self.add_request_handler("completion/complete", types.CompleteRequestParams, _completed)
        self.add_request_handler("prompts/list", types.PaginatedRequestParams, _prompts)
        self.add_request_handler("prompts/get", types.GetPromptRequestParams, _prompt)

    def bus(self, session: Session) -> SubscriptionBus:
        return self._bus

    async def _list_tools(self, ctx: Context, params: Any) -> Any:
        found = await super()._list_tools(ctx, params)
        more = [types.Tool(name=name, description=name, input_schema=SCHEMAS.get(name, NOTHING)) for name in TOOLS]
        return found.model_copy(update={"tools": [*found.tools, *more]})

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        if params.name == "test_trigger_tool_change":
            await self._bus.publish(ToolsListChanged())
        if params.name == "test_trigger_prompt_change":
            await self._bus.publish(PromptsListChanged())
        if params.name not in TOOLS:
            return await super()._call_tool(ctx, params)
        return _whole(types.CallToolResult, await TOOLS[params.name](ctx, params))

    async def _list_resources(self, ctx: Context, params: Any) -> Any:
        found = await super()._list_resources(ctx, params)
        more = [types.Resource(name=uri, uri=uri, mime_type=kind) for uri, (kind, _) in RESOURCES.items()]
        return found.model_copy(update={"resources": [*found.resources, *more]})

    async def _list_templates(self, ctx: Context, params: Any) -> Any:
        found = await super()._list_templates(ctx, params)
        more = [types.ResourceTemplate(name="template", uri_template="test://template/{id}/data")]
        return found.model_copy(update={"resource_templates": [*found.resource_templates, *more]})

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        uri = params.uri
        if uri.startswith("test://template/"):
            id = uri.removeprefix("test://template/").removesuffix("/data")
            content = {"uri": uri, "mimeType": "text/plain", "text": f"Data of {id}"}
            return _whole(types.ReadResourceResult, {"contents": [content]})
        if uri not in RESOURCES:
            return await super()._read_resource(ctx, params)
        kind, data = RESOURCES[uri]
        return _whole(types.ReadResourceResult, {"contents": [{"uri": uri, "mimeType": kind, **data}]})


def _whole(kind: type[types.Result], wire: Json) -> Any:
    """A result with all that its revision wants; or, in its place, that of a call that needs input first."""
    return (types.InputRequiredResult if "inputRequests" in wire else kind).model_validate(wire)


# Tools.


async def _error(ctx: Context, params: Any) -> Json:
    return {**text("This tool always fails, for the test."), "isError": True}


async def _logs(ctx: Context, params: Any) -> Json:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
        await asyncio.sleep(PAUSE_S)
    return text("logged")


async def _progresses(ctx: Context, params: Any) -> Json:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(PAUSE_S)
    return text("done")


async def _samples(ctx: Context, params: Any) -> Json:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=params.arguments["prompt"]))
    found: Any = await ctx.session.create_message([said], max_tokens=100, related_request_id=ctx.request_id)
    return text(f"LLM response: {found.content.text}")


async def _elicits(ctx: Context, message: str, properties: Json) -> Json:
    schema = {"type": "object", "properties": properties}
    found = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return text(f"Elicitation completed: action={found.action}, content={found.content}")


async def _elicits_text(ctx: Context, params: Any) -> Json:
    return await _elicits(
        ctx, params.arguments["message"], {"username": {"type": "string"}, "email": {"type": "string"}}
    )


async def _elicits_defaults(ctx: Context, params: Any) -> Json:
    states = ["active", "inactive", "pending"]
    return await _elicits(ctx, "About you", {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": states, "default": "active"},
        "verified": {"type": "boolean", "default": True},
    })  # fmt: skip


async def _elicits_choices(ctx: Context, params: Any) -> Json:
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    return await _elicits(ctx, "Choose", {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    })  # fmt: skip


async def _needs_sampling(ctx: Context, params: Any) -> Json:
    if not _can(ctx, "sampling"):
        wanted: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This needs sampling.", wanted)
    return text("done")


def _can(ctx: Context, what: str) -> bool:
    return getattr(ctx.session.client_capabilities, what, None) is not None


def _answered(params: Any, *names: str) -> bool:
    return all(name in (params.input_responses or {}) for name in names)


def asking(requests: Json, state: str = "", words: str = "done") -> "Tool":
    """A tool that needs input first."""

    async def tool(ctx: Context, params: Any) -> Json:
        if not _answered(params, *requests) or (params.request_state or "") != state:
            return needed(requests, state)
        return text(words)

    return tool


async def _two_rounds(ctx: Context, params: Any) -> Json:
    if params.request_state == "two" and _answered(params, "step2"):
        return text("done")
    if params.request_state in ("one", "two") and _answered(params, "step1"):
        return needed({"step2": form("Step 2: What is your favorite color?", color={"type": "string"})}, "two")
    return needed({"step1": form("Step 1: What is your name?", name={"type": "string"})}, "one")


async def _what_the_client_can(ctx: Context, params: Any) -> Json:
    if params.input_responses:
        return text("done")
    every = {"elicitation": ("name", NAME), "sampling": ("say", sampling("Hello", 50)), "roots": ("roots", ROOTS)}
    return needed(dict(request for what, request in every.items() if _can(ctx, what)))


def saying(*content: Json) -> "Tool":
    async def tool(ctx: Context, params: Any) -> Json:
        return {"content": list(content)}

    return tool


Tool = Callable[[Context, Any], Awaitable[Json]]
_WORDS: Json = {"type": "text", "text": "This is a simple text response for testing."}
_IMAGE: Json = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
_EMBEDDED: Json = {
    "type": "resource",
    "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "An embedded resource."},
}
_MIXED: Json = {
    "type": "resource",
    "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":1}'},
}

TOOLS: dict[str, Tool] = {
    "test_simple_text": saying(_WORDS),
    "test_image_content": saying(_IMAGE),
    "test_audio_content": saying({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}),
    "test_embedded_resource": saying(_EMBEDDED),
    "test_multiple_content_types": saying({"type": "text", "text": "Several:"}, _IMAGE, _MIXED),
    "test_tool_with_logging": _logs,
    "test_logging_tool": _logs,
    "test_tool_with_progress": _progresses,
    "test_error_handling": _error,
    "test_sampling": _samples,
    "test_elicitation": _elicits_text,
    "test_elicitation_sep1034_defaults": _elicits_defaults,
    "test_elicitation_sep1330_enums": _elicits_choices,
    "test_missing_capability": _needs_sampling,
    "test_streaming_elicitation": asking({"user_name": NAME}),
    "test_trigger_tool_change": saying(_WORDS),
    "test_trigger_prompt_change": saying(_WORDS),
    "test_input_required_result_elicitation": asking({"user_name": NAME}),
    "test_input_required_result_sampling": asking(
        {"capital_question": sampling("What is the capital of France?", 100)}
    ),
    "test_input_required_result_list_roots": asking({"client_roots": ROOTS}),
    "test_input_required_result_request_state": asking({"confirm": CONFIRM}, "mine", "state-ok"),
    "test_input_required_result_multiple_inputs": asking(
        {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}, "mine"
    ),
    "test_input_required_result_multi_round": _two_rounds,
    "test_input_required_result_tampered_state": asking({"confirm": CONFIRM}, "mine"),
    "test_input_required_result_capabilities": _what_the_client_can,
}
SCHEMAS: dict[str, Json] = {
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
}

RESOURCES: dict[str, tuple[str, Json]] = {
    "test://static-text": ("text/plain", {"text": "This is the content of the static text resource."}),
    "test://static-binary": ("image/png", {"blob": PIXEL}),
    "test://watched-resource": ("text/plain", {"text": "Watched."}),
}


# Prompts, and what else has no place in accord.


def _said(*content: Json) -> Json:
    return {"messages": [{"role": "user", "content": one} for one in content]}


PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def _prompts(ctx: Context, params: Any) -> Any:
    found = [
        {"name": name, "description": name, "arguments": [{"name": word, "required": True} for word in words]}
        for name, words in PROMPTS.items()
    ]
    return _whole(types.ListPromptsResult, {"prompts": found})


async def _prompt(ctx: Context, params: types.GetPromptRequestParams) -> Any:
    return _whole(types.GetPromptResult, _prompt_of(params))


def _prompt_of(params: types.GetPromptRequestParams) -> Json:
    given = params.arguments or {}
    if params.name == "test_simple_prompt":
        return _said({"type": "text", "text": "This is a simple prompt for testing."})
    if params.name == "test_prompt_with_arguments":
        words = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
        return _said({"type": "text", "text": words})
    if params.name == "test_prompt_with_embedded_resource":
        resource = {"uri": given["resourceUri"], "mimeType": "text/plain", "text": "Embedded."}
        return _said({"type": "resource", "resource": resource}, {"type": "text", "text": "Look at it."})
    if params.name == "test_prompt_with_image":
        return _said(_IMAGE, {"type": "text", "text": "Look at it."})
    if params.name == "test_input_required_result_prompt":
        if _answered(params, "user_context"):
            return _said({"type": "text", "text": "done"})
        return needed({"user_context": form("What context should the prompt use?", context={"type": "string"})})
    raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name}.")


async def _nothing(ctx: Context, params: Any) -> Json:
    return {}


async def _completed(ctx: Context, params: Any) -> Any:
    return _whole(types.CompleteResult, {"completion": {"values": [], "total": 0, "hasMore": False}})
