"""Who changed what, and whether anybody changed that."""

from accord.operations import as_is, operation, waiting
from accord.services import audit
from accord.services.audited import AUDIT
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Count, Place, Seconds, Text


@operation()
def list(
    context: "Context", *, after: "Place | None" = None, limit: "Count" = 100, wait: "Seconds" = 0
) -> "results.Audit":
    """Show what was changed, by whom and when: the last entries, or those after a number."""

    def look() -> "Any":
        return transact(context.store, lambda tx: audit.entries(tx, after, min(limit, 1000))) or None

    return {"entries": waiting.until(context, [AUDIT], wait, look) or []}


@operation()
def verify(context: "Context", *, head: "Text" = "") -> "results.Verified":
    """Compare all entries with the chain that was made of them, and with a head that was kept elsewhere."""
    return as_is(audit.verify(context.home.path, context.store, head))
