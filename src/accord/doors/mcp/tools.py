"""The tools: the common operations by name, and `call` for all others. Their schemas come from the operations.

A tool can be several operations, which are told apart by `do`. What names the caller is not asked for: it is known.
"""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from accord import errors, jsontext, operations
from accord.cli.terminal import CONTROLS
from accord.doors.mcp.calls import reachable
from accord.errors.table import to_json
from accord.model import HALTED, envelope
from accord.operations.schema import HELP, SCHEMAS, WORDS

OPERATIONS = "accord://operations"
MOST_SHOWN = 64 << 10  # bytes of messages in one answer; what vendors let into a model's context is not much more

TOOLS = {
    "check": ("mail.check",),
    "ack": ("mail.ack",),
    "send": ("mail.send",),
    "thread": ("mail.thread",),
    "discover": ("agent.discover",),
    "doc": ("doc.read", "doc.write", "doc.list"),
    "task": ("task.next", "task.claim", "task.done", "task.add", "task.list"),
    "lock": ("lock.acquire", "lock.release", "lock.list"),
}
CALL = "call"

_ABOUT_CALL = f"Do any other operation. The resource {OPERATIONS} lists them; so does the operation `help`."

# Parameters that say who acts, where they do: an assignee is named the same, and so is a new name.
_ONESELF = ("identity", "sender", "owner", "agent")
_ANOTHER = ("agent.register", "agent.unregister", "task.assign", "task.list")

# Left out to keep the schemas short; `call` takes them.
_SELDOM = ("id", "session", "fence", "ttl", "keep_ttl", "conversation", "wait", "peek", "agent")
_WITH_SELDOM = {
    "mail.check": ("wait",),
    "task.claim": ("id", "ttl"),
    "task.done": ("id",),
    "lock.acquire": ("ttl", "wait"),
}


@cache
def listed() -> list[dict[str, Any]]:
    """The tools as MCP lists them."""
    return [*(_tool(name, names) for name, names in TOOLS.items()), _call()]


def schema_of(tool: str) -> dict[str, Any] | None:
    """What a tool takes; None: there is no such tool."""
    return next((one["inputSchema"] for one in listed() if one["name"] == tool), None)


def asked(tool: str, arguments: Mapping[str, Any], agent: str) -> tuple[str, dict[str, Any]]:
    """The operation that a tool stands for, and its parameters."""
    params = dict(arguments)
    if tool == CALL:
        name = params.get("operation")
        inner = params.get("params") or {}
        if not isinstance(name, str) or not isinstance(inner, dict) or not {"operation", "params"}.issuperset(params):
            raise errors.Usage(reason="call takes an operation's name and its params", see=f"the resource {OPERATIONS}")
        return name, _as_oneself(name, dict(inner), agent)
    names = TOOLS.get(tool, ())
    if not names:
        raise errors.MethodNotFound(method=tool[:100], near=f" among the tools: {', '.join([*TOOLS, CALL])}")
    if len(names) == 1:
        return names[0], _as_oneself(names[0], params, agent)
    by_word = {name.partition(".")[2]: name for name in names}
    word = params.pop("do", None)
    if not isinstance(word, str) or word not in by_word:
        raise errors.Usage(reason=f"do is none of {', '.join(by_word)}", see=f"the tool {tool}")
    return by_word[word], _as_oneself(by_word[word], params, agent)


def answer(result: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """What a result looks like to a model, and to a program.

    Messages are fenced, and for the model alone: what a program gets would end up in the model's context as well.
    """
    messages = result.get("messages")
    if not messages or not isinstance(messages, list):
        return _text(result), dict(result)
    rest = {name: value for name, value in result.items() if name != "messages"}
    states = [{"message_id": one["message_id"], "states": one["states"]} for one in messages if "states" in one]
    if states:
        rest["states"] = states
    return f"{_text(rest)}\n{fenced(messages)}", None


def fenced(messages: list[dict[str, Any]]) -> str:
    return envelope.render(messages, os.urandom(16).hex(), MOST_SHOWN, envelope.Tools())


def failure(error: errors.AccordError) -> tuple[str, dict[str, Any]]:
    """An error, as the command line shows it to programs, but that a model has no pages to read."""
    if isinstance(error, errors.Usage):
        see = str(error.details["see"]).replace("docs/operations.md", f"the resource {OPERATIONS}")
        error = errors.Usage(**{**error.details, "see": see})
    found: Any = to_json(error)
    code, details = found["data"].values()
    shown = {"status": "error", "error_code": code, "error_message": found["message"], "details": details}
    is_halted = isinstance(error, errors.Halted | errors.NotEngaged)
    return f"{HALTED}\n{_text(shown)}" if is_halted else _text(shown), shown


def every_operation() -> str:
    """A line for each operation that `call` can do."""
    lines = [f"Operations for the tool `{CALL}`, as NAME(PARAMETERS): what it does. [x] need not be given."]
    for name in reachable():
        function: Any = operations.find(name)
        params = [_parameter(word, kind, must) for word, (kind, must) in operations.parameters(function).items()]
        lines.append(f"{name}({', '.join(params)}): {_first_line(function)}")
    lines.append("")
    lines += [f"{word}: {text}" for word, text in HELP.items()]
    return "\n".join(lines)


def _parameter(word: str, kind: str, must: bool) -> str:
    shown = f"{word}: {WORDS[kind] or 'true'}"
    return shown if must else f"[{shown}]"


def _tool(tool: str, names: tuple[str, ...]) -> dict[str, Any]:
    functions: dict[str, Any] = {name: operations.find(name) for name in names}
    properties: dict[str, Any] = {}
    required: list[str] = []
    if len(names) > 1:
        properties["do"] = {"type": "string", "enum": [name.partition(".")[2] for name in names]}
        required = ["do"]
        about = " ".join(
            f"{_signature(name, function)}: {_first_line(function)}" for name, function in functions.items()
        )
    else:
        about = _first_line(functions[names[0]])
    for name, function in functions.items():
        for word, kind, must in _shown(name, function):
            properties.setdefault(word, _schema(word, kind))
            if must and len(names) == 1:
                required.append(word)
    reads = not any(function.changes for function in functions.values())
    return _described(tool, about, properties, required, reads)


def _call() -> dict[str, Any]:
    properties = {"operation": {"type": "string"}, "params": {"type": "object"}}
    return _described(CALL, _ABOUT_CALL, properties, ["operation"], False)


def _described(name: str, about: str, properties: dict[str, Any], required: list[str], reads: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return {"name": name, "description": about, "inputSchema": schema, "annotations": {"readOnlyHint": reads}}


def _shown(name: str, function: Any) -> list[tuple[str, str, bool]]:
    """The parameters that a tool asks for."""
    oneself = _oneself(name, function)
    found = [
        (word, kind, must) for word, (kind, must) in operations.parameters(function).items() if word not in oneself
    ]
    return [
        (word, kind, must)
        for word, kind, must in found
        if must or word not in _SELDOM or word in _WITH_SELDOM.get(name, ())
    ]


def _signature(name: str, function: Any) -> str:
    words = [word if must else f"[{word}]" for word, _, must in _shown(name, function)]
    return f"{name.partition('.')[2]}({', '.join(words)})"


def _schema(word: str, kind: str) -> dict[str, object]:
    """Of patterns and limits only what helps to write it; the operation looks at the rest."""
    schema: dict[str, Any] = {name: value for name, value in SCHEMAS[kind].items() if name in ("type", "enum", "items")}
    if "items" in schema:
        schema["items"] = {"type": schema["items"]["type"]}
    return {**schema, "description": HELP[word]}


def _oneself(name: str, function: Any) -> list[str]:
    """The parameters that say who acts."""
    if name in _ANOTHER:
        return []
    return [word for word in operations.parameters(function) if word in _ONESELF]


def _as_oneself(name: str, params: dict[str, Any], agent: str) -> dict[str, Any]:
    """With the name of the caller where the operation needs one and none was given."""
    if name not in reachable():
        return params
    if name == "mail.check":
        params.pop("peek", None)  # it would go on where the agent must be engaged first
    function: Any = operations.find(name)
    missing = [word for word in _oneself(name, function) if word not in params]
    if agent:
        return {**params, **dict.fromkeys(missing, agent)}
    if any(operations.parameters(function)[word][1] for word in missing):
        reason = (
            "This connection has no agent's name. Register one: call(operation: agent.register, "
            "params: {identity: NAME}), or set ACCORD_AGENT"
        )
        raise errors.Usage(reason=reason, see="docs/how-to/mcp.md")
    return params


def _first_line(function: Any) -> str:
    return str(function.__doc__).partition("\n")[0]


def _text(value: Mapping[str, Any]) -> str:
    return jsontext.dumps(dict(value)).translate(CONTROLS)
