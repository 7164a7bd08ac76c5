"""A page of a collection with changes laid over it that are not stored where the page is."""

from accord.store.contract import MAX_PAGE, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def merged(
    stored_page: "Callable[[str, int, bool], Sequence[Item]]",
    changes: "Mapping[str, Item | None]",
    after: str,
    limit: int,
    reverse: bool,
) -> "Sequence[Item]":
    """What `stored_page(after, limit, reverse)` would give if `changes` were stored; None is a deletion."""
    if not changes:
        return stored_page(after, limit, reverse)
    page: list[Item] = []
    size = min(limit + len(changes), MAX_PAGE)
    while len(page) < limit:
        stored = stored_page(after, size, reverse)
        # What lies beyond a full page is placed by the next one.
        end = stored[-1].id if len(stored) == size else ""
        found = {item.id: item for item in stored}
        for id, item in changes.items():
            if _is_between(id, after, end, reverse):
                found.pop(id, None)
                if item is not None:
                    found[id] = item
        page += [found[id] for id in sorted(found, reverse=reverse)]
        if not end:
            break
        after = end
    return page[:limit]


def _is_between(id: str, after: str, end: str, reverse: bool) -> bool:
    """Whether `id` lies beyond `after` and not beyond `end`, where "" is no limit."""
    if reverse:
        return (not after or id < after) and id >= end
    return id > after and (not end or id <= end)
