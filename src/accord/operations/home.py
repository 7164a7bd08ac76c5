"""The home itself: making it, and looking whether all is well."""

from accord.operations import OPERATOR, operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations.context import Context


@operation(right=OPERATOR, changes=True, beyond=True)
def init(context: "Context") -> "dict[str, Any]":
    """Make the home and its store; other operations do so too when there is none."""
    return {"home": context.home.path, "durability": context.store.durability, "revision": context.revision()}


@operation()
def doctor(context: "Context") -> "dict[str, Any]":
    """Look whether all is well, and say what to do where it is not."""
    from accord.operations.hub import status
    from accord.services.doctor import examine

    checks = examine(
        context.home, context.tokens, context.settings, context.halt, lambda: context.store, lambda: status(context)
    )
    return {"healthy": all(check["ok"] for check in checks), "checks": checks}
