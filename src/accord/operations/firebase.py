"""What Firebase needs besides a store."""

from accord import errors
from accord.operations import operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Path, Text


@operation()
def rules(context: "Context", *, path: "Path | None" = None, uid: "Text | None" = None) -> "results.FirebaseRules":
    """Print security rules for Firebase that admit one account to one path, those of the engine unless named."""
    from accord.store.engines.firebase.rules import rules

    engine, _, place = str(context.settings["engine"]).partition(":")
    if path:
        place = f"//rules/{path}"
    elif engine != "firebase":
        place = ""
    try:
        found, path, uid = rules(place, uid or "")
    except errors.InvalidConfig as error:
        raise errors.Usage(reason=str(error), see="accord help firebase rules") from None
    return {"rules": found, "path": path, "uid": uid}
