"""Write src/accord/api/groups.py, the typed methods of the Python API, from the table of operations."""

from accord.operations import NAMES, find, parameters

TYPES = {
    "Identity": "str",
    "Port": "int",
    "OwnIdentity": "str",
    "Recipients": "str | list[str]",
    "Identities": "str | list[str]",
    "Channel": "str",
    "Body": "str",
    "MessageId": "str",
    "MessageIds": "str | list[str]",
    "MessageType": "str",
    "Conversation": "str",
    "Count": "int",
    "Seconds": "float",
    "Lease": "float",
    "Flag": "bool",
    "Text": "str",
    "Path": "str",
    "Url": "str",
    "Folder": "str",
    "Group": "str",
    "Command": "str",
    "Name": "str",
    "Label": "str",
    "Labels": "str | list[str]",
    "Globs": "str | list[str]",
    "Paths": "str | list[str]",
    "Priority": "str",
    "Title": "str",
    "Reason": "str",
    "TaskId": "str",
    "TaskIds": "str | list[str]",
    "TaskState": "str",
    "Session": "str",
    "Revision": "int",
    "Place": "int",
    "Grant": "int",
    "Fence": "str",
    "Steps": "list[dict[str, Any]]",
    "HookEvent": "str",
    "SessionId": "str",
}

HEAD = '''"""Every operation as a method. Made by `make reference`; a test compares."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.operations import results

# mypy: no-warn-return-any
# A call is of any operation; that each gives what stands here is tested in tests/operations/test_results.py.
Call = Callable[[str, Mapping[str, object]], Any]
AsyncCall = Callable[[str, Mapping[str, object]], Awaitable[Any]]
'''


def groups_module() -> str:
    return HEAD + _flavour("", "", "") + _flavour("Async", "async ", "await ")


def _flavour(prefix: str, word: str, wait: str) -> str:
    """Everything for programs that wait, or for those that await."""
    text = "".join(_group(prefix, word, wait, group) for group in NAMES)
    text += f"\n\nclass {prefix}Groups:\n{_init(prefix)}"
    return text + "".join(f"        self.{group} = {prefix}{group.title()}(call)\n" for group in NAMES)


def _group(prefix: str, word: str, wait: str, group: str) -> str:
    text = f"\n\nclass {prefix}{group.title()}:\n{_init(prefix)}        self._call = call\n"
    return text + "".join(_method(word, wait, group, name) for name in NAMES[group])


def _init(prefix: str) -> str:
    return f"    def __init__(self, call: {prefix}Call) -> None:\n"


def _method(word: str, wait: str, group: str, name: str) -> str:
    function = find(f"{group}.{name}")
    defaults = function.__kwdefaults__ or {}
    wanted = parameters(function)
    params = [f"{param}: {TYPES[kind]}{_default(defaults, param)}" for param, (kind, _) in wanted.items()]
    given = "{" + ", ".join(f'"{param}": {param}' for param in wanted) + "}"
    signature = f"self, *, {', '.join(params)}" if params else "self"
    shape = function.__annotations__["return"]
    doc = (function.__doc__ or "").strip()
    return (
        f'\n    {word}def {name}({signature}) -> "{shape}":\n'
        f'        """{doc}"""\n'
        f'        return {wait}self._call("{group}.{name}", {given})\n'
    )


def _default(defaults: dict[str, object], param: str) -> str:
    if param not in defaults:
        return ""
    return " | None = None" if defaults[param] is None else f" = {defaults[param]!r}"
