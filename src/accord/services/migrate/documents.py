"""Documents that somebody edited by hand, and that nobody has read since.

What tells is that the text is of a later commit than the newest version (`services/documents.py`), and of revisions
nothing is left in a copy. So they are brought into that order again.
"""

from accord.services.migrate import reading
from accord.store.contract import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.services.migrate.copy import Copy
    from accord.store.contract import Item
    from accord.store.protocols import Snapshot


def keep_edits(view: "Snapshot", copy: "Copy") -> None:
    """Have every document whose versions were compared count as edited in the copy where it is so in the source."""
    for collection in reading.collections(view):
        if collection == PLAIN or collection.startswith(f"{PLAIN}/"):
            for item in reading.items(view, collection):
                _keep(view, copy, collection, item)


def _keep(view: "Snapshot", copy: "Copy", collection: str, item: "Item") -> None:
    versions = f"version/{f'{collection}/{item.id}'.removeprefix(f'{PLAIN}/')}"
    newest = _newest(view, versions)
    if newest is None:
        return  # a text without a version is new, whatever its revision
    with copy.store.snapshot() as there:
        text, version = there.get(collection, item.id), _newest(there, versions)
    if text is None or version is None:
        return
    is_edited = item.revision > newest.revision
    if is_edited and text.revision <= version.revision:
        copy.put(collection, item.id, item.value)
    elif not is_edited and text.revision > version.revision:
        copy.put(versions, newest.id, newest.value)
    copy.flush()


def _newest(view: "Snapshot", versions: str) -> "Item | None":
    page = view.list(versions, limit=1, reverse=True)
    return page[0] if page else None
