"""Documents that several write: versions, conflicts that lose nothing."""

from accord.operations import as_is, operation
from accord.services import documents
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Fence, Flag, Name, Revision, Seconds, Text


@operation()
def read(context: "Context", *, name: "Name", revision: "Revision | None" = None) -> "results.Document":
    """Read a document, or an earlier version of it."""
    keep = context.settings["backup_count"]
    return as_is(transact(context.store, lambda tx: documents.read(tx, name, revision, keep)))


@operation(changes=True, step=True)
def write(
    context: "Context",
    *,
    name: "Name",
    text: "Text",
    base: "Revision | None" = None,
    ttl: "Seconds" = 0,
    keep_ttl: "Flag" = False,
    fence: "Fence | None" = None,
) -> "results.Written":
    """Write a document; with a base, only if it is still at that revision."""
    how = _writing(context, base, None if keep_ttl else ttl, fence)
    return as_is(context.change(lambda tx: documents.write(tx, name, text, how)))


@operation(changes=True, step=True)
def rm(
    context: "Context", *, name: "Name", base: "Revision | None" = None, fence: "Fence | None" = None
) -> "results.Removed":
    """Remove a document; it can be restored as long as its versions are kept."""
    how = _writing(context, base, 0, fence)
    return as_is(context.change(lambda tx: documents.remove(tx, name, how)))


@operation(changes=True)
def restore(
    context: "Context",
    *,
    name: "Name",
    revision: "Revision | None" = None,
    ttl: "Seconds | None" = None,
    fence: "Fence | None" = None,
) -> "results.Written":
    """Write an earlier version again: the one before this, or the one named."""
    how = _writing(context, None, ttl, fence)
    return as_is(context.change(lambda tx: documents.restore(tx, name, revision, how)))


@operation()
def history(context: "Context", *, name: "Name") -> "results.History":
    """Show the versions of a document that are kept, the newest first."""
    keep = context.settings["backup_count"]
    return {"name": name, "versions": as_is(transact(context.store, lambda tx: documents.history(tx, name, keep)))}


@operation()
def list(context: "Context", *, prefix: "Text" = "") -> "results.Documents":
    """Show the documents, or those whose names start so."""
    found = transact(context.store, lambda tx: documents.all_of(tx, prefix))
    return {"documents": [one for each in found if (one := _row(context, each))]}


def _row(context: "Context", found: "documents.Document | dict[str, Any]") -> "results.ListedDocument | None":
    """A document in a list; what was edited by hand becomes a version, so that its revision is one to be based on."""
    if isinstance(found, dict):
        return as_is(found)
    if found.edited:
        name = found.name
        found = transact(context.store, lambda tx: documents.take_in(tx, name, context.settings["backup_count"]))
    return as_is({**found.summary(), "problem": None}) if found.is_there else None


def _writing(
    context: "Context", base: "int | None", ttl: "float | None", fence: "tuple[str, int] | None"
) -> documents.Writing:
    return documents.Writing(context.who, context.now(), context.settings["backup_count"], base, ttl, fence)
