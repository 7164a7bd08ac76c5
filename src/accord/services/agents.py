"""Who is there: identities, their tokens, and taking over.

A registration holds a hash of its token and never expires. Whoever acts as an identity shows the token; taking a name
over replaces the token, and the inbox is inherited.
"""

from _operator import _compare_digest

from accord import errors, jsontext
from accord.model import HUMAN
from accord.store.contract import MAX_PAGE
from accord.store.transaction import MOST_WRITES, transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from accord.store.protocols import Store
    from accord.store.transaction import Transaction

AGENTS = "agents"

_records: "dict[bytes, dict[str, Any]]" = {}
_MOST_RECORDS = 1_000

_MOST_BEFORE = 10  # tokens of earlier holders that are told that they were taken over


class Actor:
    """Somebody who acts, and what they show for it. The owner shows the operator's right instead of a token."""

    __slots__ = ("halts", "name", "token_hash", "token_path")

    def __init__(self, name: str, token_hash: str = "", halts: int = 0, token_path: str = "") -> None:
        self.name = name
        self.token_hash = token_hash  # "": there is no token
        self.halts = halts  # how many there were; an agent must be engaged after each
        self.token_path = token_path  # where its token is expected, for the message of an error


def hash_token(token: str) -> str:
    from _blake2 import blake2b

    return blake2b(token.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()


def register(
    store: "Store", actor: Actor, at: str, force: bool, project: str, by: "Actor | None", key: "str | None" = None
) -> str:
    """Give the name to the actor; the same actor may ask again. `by` is the agent that asks for it, if one does.

    The hash of the token that is good: another than the actor's where a request of the same `key` was faster.

    An agent that waits to be engaged gets out of that neither by another name nor by taking its own over.
    """

    def work(tx: "Transaction") -> str:
        record = find(tx, actor.name)
        if record is not None and not record["gone"]:
            if _holds(record, actor):
                return actor.token_hash
            if not force:
                raise errors.IdentityAlreadyRegistered(identity=actor.name)
        engaged = actor.halts
        if by is not None:
            asking = find(tx, by.name)
            if by.name != actor.name and asking is not None and asking["engaged"] < by.halts:
                raise errors.NotEngaged(identity=by.name)
            engaged = record["engaged"] if record is not None else engaged
        before = [record["token"], *record["before"]][:_MOST_BEFORE] if record is not None else []
        _write(tx, actor.name, {
            "token": actor.token_hash,
            "before": before,
            "registered_at": at,
            "project": project,
            "engaged": engaged,
            "gone": False,
        })  # fmt: skip
        return actor.token_hash

    return transact(store, work, key, f"{actor.name} {force} {project}".encode())


def holds(store: "Store", actor: Actor) -> bool:
    """Whether the name is the actor's."""

    def work(tx: "Transaction") -> bool:
        record = find(tx, actor.name)
        return record is not None and not record["gone"] and _holds(record, actor)

    return transact(store, work)


def resume(store: "Store", actor: Actor) -> None:
    """Come back to a name that the actor still holds."""
    transact(store, lambda tx: check_token(tx, actor))


def unregister(store: "Store", actor: Actor, at: str, key: "str | None" = None) -> None:
    """Give the name back. What was sent to it stays, for whoever registers it next."""

    def work(tx: "Transaction") -> None:
        record = check_token(tx, actor)
        _write(tx, actor.name, {**record, "token": "", "gone": True, "gone_at": at})

    transact(store, work, key, actor.name.encode())


def engage(store: "Store", names: "list[str]", halts: int) -> list[str]:
    """Let agents go on after a halt: those named, or all; the names of those that were waiting for it."""

    def waiting(tx: "Transaction") -> list[str]:
        found = _named(tx, names) if names else present(tx)
        return [name for name, record in found if record["engaged"] < halts]

    def work(tx: "Transaction", some: list[str]) -> None:
        for name, record in _named(tx, some):
            _write(tx, name, {**record, "engaged": max(halts, record["engaged"])})

    engaged = transact(store, waiting)
    for start in range(0, len(engaged), MOST_WRITES):
        some = engaged[start : start + MOST_WRITES]
        transact(store, lambda tx, some=some: work(tx, some))  # type: ignore[misc]
    return engaged


def check_token(tx: "Transaction", actor: Actor) -> "dict[str, Any]":
    """The actor's record, if it is the actor's."""
    record = find(tx, actor.name)
    if record is None or record["gone"]:
        raise errors.NotRegistered(identity=actor.name, near=near(tx, [actor.name]))
    if not actor.token_hash:
        raise errors.TokenMissing(identity=actor.name, path=actor.token_path)
    if not _holds(record, actor):
        if actor.token_hash in record["before"]:
            raise errors.IdentityTakenOver(identity=actor.name)
        raise errors.TokenInvalid(identity=actor.name, path=actor.token_path)
    return record


def check_may_act(tx: "Transaction", actor: Actor) -> None:
    """As `check_token`, and the agent must have been engaged since the last halt."""
    if actor.name == HUMAN:
        return
    if check_token(tx, actor)["engaged"] < actor.halts:
        raise errors.NotEngaged(identity=actor.name)


def check_engaged(tx: "Transaction", name: str, halts: int) -> None:
    """Of an agent that shares state, for which it need not be registered."""
    record = find(tx, name)
    if record is not None and record["engaged"] < halts:
        raise errors.NotEngaged(identity=name)


def find(tx: "Transaction", name: str) -> "dict[str, Any] | None":
    item = tx.get(AGENTS, name)
    return None if item is None else _record(item.value)


def present(tx: "Transaction") -> "Iterator[tuple[str, dict[str, Any]]]":
    """Everybody who is registered, by name."""
    after = ""
    while page := tx.list(AGENTS, after, MAX_PAGE):
        for item in page:
            record: dict[str, Any] = jsontext.loads_own(item.value)  # type: ignore[assignment]
            if not record["gone"]:
                yield item.id, record
        after = page[-1].id


def near(tx: "Transaction", names: "list[str]") -> str:
    """Names much like these, as the end of a sentence; for the message of an error."""
    from difflib import get_close_matches

    there = [HUMAN, *[name for name, _ in present(tx)]]
    found = dict.fromkeys(match for name in names for match in get_close_matches(name, there))
    return f" (did you mean {' or '.join(found)}?)" if found else ""


def _record(value: bytes) -> "dict[str, Any]":
    """What a registration holds; the same ones are asked for again and again."""
    if value not in _records:
        if len(_records) >= _MOST_RECORDS:
            _records.clear()
        _records[value] = jsontext.loads_own(value)  # type: ignore[assignment]
    return _records[value]


def _named(tx: "Transaction", names: "list[str]") -> "Iterator[tuple[str, dict[str, Any]]]":
    for name in names:
        record = find(tx, name)
        if record is None or record["gone"]:
            raise errors.NotRegistered(identity=name, near=near(tx, [name]))
        yield name, record


def _holds(record: "dict[str, Any]", actor: Actor) -> bool:
    return bool(actor.token_hash) and _compare_digest(record["token"], actor.token_hash)


def _write(tx: "Transaction", name: str, record: "dict[str, Any]") -> None:
    tx.put(AGENTS, name, jsontext.dumps(record).encode())
