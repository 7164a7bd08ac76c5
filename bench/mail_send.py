"""A transaction of the size of a mail send: three reads and four writes, one of which uses another's number."""

from collections.abc import Callable

from accord.store.contract import MAX_PAGE
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact

BATCH = 100  # sends that share one durable commit
_BODY = b"x" * 300
_TIMEOUT_S = 60.0


def create(url: str) -> None:
    """A store with a sender and a recipient."""
    store = open_store(url)
    _introduce(store)
    store.close()


def open_sender(url: str, name: str) -> Callable[[int], None]:
    """What sends the n-th message of `name`, durably."""
    store = open_store(url)
    _introduce(store)
    return lambda n: transact(store, work(name, n), timeout_s=_TIMEOUT_S, expected=_expected(name, n))


def open_batch_sender(url: str, name: str) -> Callable[[int], None]:
    """What sends the n-th hundred of messages of `name` in one durable commit, by the store's `exclusive`."""
    store = open_store(url)
    _introduce(store)

    def send(n: int) -> None:
        with store.exclusive(_TIMEOUT_S) as batch:  # type: ignore[attr-defined]  # the engines used have it
            for message in range(n * BATCH, (n + 1) * BATCH):
                with batch.snapshot() as snapshot:
                    tx = Transaction(batch, snapshot)
                    work(name, message)(tx)
                    tx.commit(_TIMEOUT_S)

    return send


def work(name: str, n: int) -> Callable[[Transaction], None]:
    id = _id(name, n)

    def send(tx: Transaction) -> None:
        tx.get("agents", "alice")
        tx.get("agents", "bob")
        tx.get("messages", id)
        number = tx.append("mail/bob", b"y" * 40)
        tx.put("messages", id, _BODY)
        tx.put("place/bob", id, (number,))
        tx.put("sent/alice", id, b"z" * 60)

    return send


def _id(name: str, n: int) -> str:
    return f"m0193{n:010d}{name}"  # in the order of time, as real ones


def _expected(name: str, n: int) -> list[tuple[str, str]]:
    """What it will read, as the real one says it."""
    return [("agents", "alice"), ("agents", "bob"), ("messages", _id(name, n)), ("mail/bob", "")]


def count(url: str) -> int:
    """The messages there are; each must be in all four places."""
    store = open_store(url)
    found = {_count(store, name) for name in ("messages", "mail/bob", "place/bob", "sent/alice")}
    store.close()
    return min(found)


def _introduce(store: Store) -> None:
    def register(tx: Transaction) -> None:
        for name in ("alice", "bob"):
            if tx.get("agents", name) is None:
                tx.put("agents", name, b"{}")

    transact(store, register)


def _count(store: Store, collection: str) -> int:
    total = 0
    after = ""
    with store.snapshot() as snapshot:
        while page := snapshot.list(collection, after, MAX_PAGE):
            total += len(page)
            after = page[-1].id
    return total
