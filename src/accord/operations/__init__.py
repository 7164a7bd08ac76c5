"""The one table of what accord does, and `call`, the one way to do it.

An operation is a function in one of the modules here: its parameters are keyword-only, and their annotations name what
they may be (`kinds.py`). The command line, the Python API and every door call it under one name, such as `mail.send`.
"""

import sys

from accord import errors
from accord.operations.kinds import READERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from accord.operations.context import Context

    F = TypeVar("F", bound=Callable[..., Any])
    R = TypeVar("R")

AGENT = "agent"  # what agents may do too
OPERATOR = "operator"  # what only the person who runs them may

# Every operation, by the module it is in. What is not here is not exposed.
NAMES = {
    "agent": ("register", "unregister", "discover"),
    "mail": ("send", "check", "ack", "hand_over", "sent", "receipt", "thread", "search"),
    "channel": ("join", "leave", "list"),
    "doc": ("read", "write", "rm", "restore", "history", "list"),
    "lock": ("acquire", "renew", "release", "list"),
    "reserve": ("add", "release", "check", "list"),
    "topic": ("publish", "read", "last"),
    "tx": ("run",),
    "audit": ("list", "verify"),
    "queue": ("push", "pop", "done", "fail", "retry", "drop", "peek", "dead", "list"),
    "task": (
        "add", "depend", "assign", "claim", "next", "start", "progress", "block", "unblock", "release", "done",
        "show", "list", "board",
    ),
    "hook": ("start", "step", "given", "wait", "end"),
    "halt": ("set", "lift", "engage", "status"),
    "config": ("show", "trust"),
    "firebase": ("rules",),
    "home": ("init", "doctor", "migrate"),
    "hub": ("start", "stop", "restart", "status", "keys_make", "keys_list", "keys_revoke"),
}  # fmt: skip

_found: "dict[str, Callable[..., dict[str, Any]]]" = {}  # those that were asked for


def operation(
    right: str = AGENT,
    changes: bool = False,
    halts: bool = False,
    unless: str = "",
    beyond: bool = False,
    here: bool = False,
    step: bool = False,
) -> "Callable[[F], F]":
    """Mark a function as an operation.

    right       who may call it
    changes     whether it changes anything
    halts       whether a HALT stops it
    unless      a flag with which it goes on under a HALT
    beyond      whether it changes more than the store, so that it cannot share a commit with others
    here        whether only the process that wants it can do it: it opens what the caller names, or starts something
    step        whether it can be a step of a transaction: all that it does is one `context.change`
    """

    def mark(function: "F") -> "F":
        function.right = right  # type: ignore[attr-defined]
        function.changes = changes  # type: ignore[attr-defined]
        function.halts = halts  # type: ignore[attr-defined]
        function.unless = unless  # type: ignore[attr-defined]
        function.beyond = beyond  # type: ignore[attr-defined]
        function.here = here  # type: ignore[attr-defined]
        function.step = step  # type: ignore[attr-defined]
        return function

    return mark


def as_is(found: object) -> "R":  # type: ignore[type-var]  # the annotation of whoever returns it says what it is
    """What services made, as a result; `tests/operations/test_results.py` compares it with the shape it should have."""
    return found  # type: ignore[return-value]


def find(name: str) -> "Callable[..., dict[str, Any]]":
    """The operation of that name."""
    if name in _found:
        return _found[name]
    group, _, word = name.partition(".")
    if word not in NAMES.get(group, ()):
        raise errors.Usage(reason=f"There is no operation {name[:100]!r}", see="docs/operations.md")
    module = f"accord.operations.{group}"
    __import__(module)
    found: Callable[..., dict[str, Any]] = getattr(sys.modules[module], word)
    _found[name] = found
    return found


def parameters(function: "Callable[..., Any]") -> dict[str, tuple[str, bool]]:
    """The kind of each parameter, and whether it must be given."""
    found: dict[str, tuple[str, bool]] | None = getattr(function, "parameters", None)
    if found is None:
        defaults = function.__kwdefaults__ or {}
        found = {
            name: (kind.removesuffix(" | None"), name not in defaults)
            for name, kind in function.__annotations__.items()
            if name not in ("return", "context")
        }
        function.parameters = found  # type: ignore[attr-defined]
    return found


def call(context: "Context", name: str, params: "Mapping[str, object]") -> "dict[str, Any]":
    """Do it: the parameters read, the right and the HALT looked at."""
    function = find(name)
    check_right(context, name, function)
    given = read(name, function, params)
    if function.halts and not given.get(function.unless):  # type: ignore[attr-defined]
        context.halt.check()
    during = context.during(name, given)
    result = function(during, **given)
    during.witness(function.changes)  # type: ignore[attr-defined]
    return result


def check_right(context: "Context", name: str, function: "Callable[..., Any]") -> None:
    if function.right == OPERATOR and not context.caller.is_operator(name):  # type: ignore[attr-defined]
        raise errors.NotPermitted(operation=name, agent=context.agent or "without the operator's token")


def read(name: str, function: "Callable[..., Any]", params: "Mapping[str, object]") -> dict[str, object]:
    """The values of the parameters. What is None counts as not given."""
    wanted = parameters(function)
    given = {}
    for word, value in params.items():
        if word not in wanted:
            raise errors.Usage(reason=f"There is no parameter {word[:100]!r}", see=_page(name))
        if value is not None:
            try:
                given[word] = READERS[wanted[word][0]](value)
            except ValueError as error:
                raise errors.Usage(reason=f"{word} {error}", see=_page(name)) from None
    for word, (_, required) in wanted.items():
        if required and word not in given:
            raise errors.Usage(reason=f"{word} is missing", see=_page(name))
    return given


def _page(name: str) -> str:
    return f"{name} in docs/operations.md"
