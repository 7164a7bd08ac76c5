"""Everything that happens in a home, told from the store's log of changes. No text of messages is in it."""

from accord import errors, jsontext
from accord.services import agents, cursors, mail
from accord.services.audited import AUDIT
from accord.services.channels import MEMBERS
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.contract import Change
    from accord.store.protocols import Store, Watch
    from accord.store.transaction import Transaction

GAP = "gap"  # some were missed: they are no longer kept

SHARED = (
    "doc.changed", "lock.changed", "queue.changed", "reserve.changed", "task.changed", "topic.changed", "tx.changed",
    "halt.changed", "hub.keys_changed",
)  # fmt: skip
KINDS = ("mail.sent", "mail.handed_over", "mail.seen", "agent.changed", "channel.changed", *SHARED)


def read_kinds(value: object) -> "list[str]":
    """Kinds of events; several may stand in one word, with commas between them."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("is no list of words")
    kinds = [kind.strip() for word in words for kind in word.split(",") if kind.strip()]
    strange = [kind for kind in kinds if kind not in KINDS]
    if strange:
        raise ValueError(f"{strange[0][:50]!r} is none of {', '.join(KINDS)}")
    return kinds


class Reader:
    """A place in what happens."""

    def __init__(self, store: "Store", since: str = "") -> None:
        self._store = store
        self._watch: Watch | None = None
        with store.snapshot() as snapshot:
            here = f"{snapshot.epoch}.{snapshot.revision}"
        self.since = since or here  # `EPOCH.REVISION`, after which the next one comes
        self._epoch, self._revision = _read_revision(self.since)

    def read(self, limit: int) -> "list[dict[str, Any]]":
        """What happened next, of so many commits at most."""
        found: list[dict[str, Any]] = []
        try:
            watch = self._open()
            while len(found) < limit and (change := watch.next(0)) is not None:
                found += described(self._store, change, self._epoch)
                self.since = f"{self._epoch}.{change.revision}"
        except errors.HistoryGone:
            found.append(self._skip())
        return found

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _open(self) -> "Watch":
        if self._watch is None:
            self._epoch, self._revision = _read_revision(self.since)
            self._watch = self._store.watch(("",), self._revision, self._epoch)
        return self._watch

    def _skip(self) -> "dict[str, Any]":
        self.close()
        missed_since = self.since
        with self._store.snapshot() as snapshot:
            self.since = f"{snapshot.epoch}.{snapshot.revision}"
        return {"event": GAP, "since": missed_since, "revision": self.since}


def _read_revision(text: str) -> "tuple[str, int]":
    epoch, _, revision = text.rpartition(".")
    if not epoch or not revision.isdigit() or not revision.isascii() or len(revision) > 18:
        raise errors.Usage(reason=f"{text[:100]!r} is no revision, as EPOCH.REVISION", see="accord events --help")
    return epoch, int(revision)


def described(store: "Store", change: "Change", epoch: str) -> "list[dict[str, Any]]":
    """What a commit was about, as far as anybody would want to know."""
    found = transact(store, lambda tx: [_described(collection, id, tx) for collection, id in change.keys])
    return [{**event, "revision": f"{epoch}.{change.revision}"} for event in found if event is not None]


def _described(collection: str, id: str, tx: "Transaction") -> "dict[str, Any] | None":
    group, _, rest = collection.partition("/")
    item = tx.get(collection, id, check=False)
    if collection == mail.MESSAGES and item is not None:
        message = mail.decode(item.value)
        told = ("from", "timestamp", "conversation", "type", "reply_to", "channel")
        fields = {name: message[name] for name in told}
        return {"event": "mail.sent", "message_id": id, **fields, "to": list(message["to"])}
    if group == mail.HANDED and item is not None:
        record: Any = jsontext.loads_own(item.value)
        return {"event": "mail.handed_over", "identity": rest, "message_id": id, "by": record["by"]}
    if collection == cursors.CURSORS:
        return {"event": "mail.seen", "identity": id}
    if collection == agents.AGENTS and item is not None:
        record = jsontext.loads_own(item.value)
        return {"event": "agent.changed", "identity": id, "registered": not record["gone"]}
    if group == MEMBERS:
        return {"event": "channel.changed", "channel": rest, "identity": id, "member": item is not None}
    if collection == AUDIT and item is not None:
        return _shared(jsontext.loads_own(item.value))
    return None


def _shared(entry: "Any") -> "dict[str, Any] | None":
    """A change of what is shared, or lies in files, as the audit has it; what else changes has events of its own."""
    operation = entry["operation"]
    kind = "hub.keys_changed" if operation.startswith("hub.keys_") else f"{operation.partition('.')[0]}.changed"
    if kind not in SHARED:
        return None
    fields = {"operation": operation, "who": entry["who"], "timestamp": entry["at"], "items": entry["items"]}
    return {"event": kind, **fields}
