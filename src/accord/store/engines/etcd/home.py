"""The key that every store has: how etcd's revisions become those of the store, and whether it was loaded."""

from accord import errors, jsontext
from accord.store.contract import new_epoch
from accord.store.engines.etcd import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.etcd.gateway import Gateway
    from accord.store.engines.etcd.requests import Keys, Message

FORMAT = 1
FRESH, LOADING, LOADED = "fresh", "loading", "loaded"  # what `home` says of itself


class Home:
    """As it was read. Whoever changes it puts `epoch` as well, so a look at that one key tells that it is the same."""

    def __init__(self, keys: "Keys", path: str, home: "Message", epoch: "Message", header: "Message") -> None:
        record = _record_in(requests.value_of(home), path)
        self.state = record["state"]
        self.by = record["by"]  # a name of the load
        self.mod = requests.mod_of(home)
        self.guard = requests.mod_of(epoch)
        self.cluster = header["cluster_id"]
        self.raw_epoch = requests.value_of(epoch)
        self.epoch = _epoch(self.raw_epoch, self.cluster)
        self.is_same = requests.is_of(keys.epoch, self.guard)
        self.floor = 1 if self.state == LOADED else 0  # the revision before the first change that is known
        self._base = self.mod - self.floor

    def revision(self, mod: int) -> int:
        """The store's revision of what etcd's revision `mod` wrote; 0: of nothing. All that was loaded has 1."""
        return max(self.floor, mod - self._base)

    def mod_of(self, revision: int) -> int:
        return self._base + revision


def read(keys: "Keys", path: str, responses: "list[Message]", header: "Message") -> "Home | None":
    """From what `asked` brought; None where there is none."""
    home, epoch = (requests.found_in(response) for response in responses[:2])
    return Home(keys, path, home[0], epoch[0], header) if home and epoch else None


def asked(keys: "Keys") -> "list[Message]":
    return [requests.range_of(keys.home), requests.range_of(keys.epoch)]


def learn(gateway: "Gateway", keys: "Keys") -> Home:
    """Read it; make it where there is none."""
    answer = gateway.txn([], asked(keys))
    found = read(keys, gateway.path, answer["responses"], answer["header"])
    while found is None:
        # Doing it twice is harmless: the second finds what the first made.
        absent = [requests.is_absent(keys.home), requests.is_absent(keys.epoch)]
        gateway.txn(absent, _record(keys, new_epoch().encode(), FRESH))
        answer = gateway.txn([], asked(keys))
        found = read(keys, gateway.path, answer["responses"], answer["header"])
    return found


def change(keys: "Keys", raw_epoch: bytes, state: str, by: str = "") -> "list[Message]":
    """What says so from now on, in a txn of its own; a commit without keys tells those who watch."""
    return [*_record(keys, raw_epoch, state, by), requests.put(keys.log, b"[]")]


def _record(keys: "Keys", raw_epoch: bytes, state: str, by: str = "") -> "list[Message]":
    text = jsontext.dumps({"accord": FORMAT, "state": state, "by": by})
    return [requests.put(keys.home, text.encode()), requests.put(keys.epoch, raw_epoch)]


def _record_in(text: bytes, path: str) -> "Message":
    try:
        record = jsontext.loads(text)
    except errors.InvalidJson:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("accord"), int):
        raise errors.NotAStore(path=path, reason="its key home is none of accord's")
    if record["accord"] > FORMAT:
        raise errors.StoreTooNew(path=path, found=record["accord"], known=FORMAT)
    return record


def _epoch(raw: bytes, cluster: str) -> str:
    """A cluster that was restored has another id, unless it was given the same token: so the epoch is another too."""
    from _blake2 import blake2b

    return blake2b(raw + b" " + cluster.encode(), digest_size=8).hexdigest()
