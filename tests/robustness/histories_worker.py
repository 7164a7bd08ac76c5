"""What the workers do whose histories are judged: as threads, or as processes that are killed.

As a process it is started with what to do (`operate` or `transfer`), the store's URL, its own name, a seed, the
file for its history, and `faulty` if it shall meet with misfortune. It says a line on standard output for all
that it has done, at once, and ends when nobody listens any more.
"""

import os
import sys
from contextlib import suppress
from random import Random

from accord import errors
from accord.store.contract import PLAIN, Conflict, Delete, ItemIs, Moved, Put
from accord.store.open import open_store
from accord.store.transaction import transact
from accord.store.wrap.faulty import chance, faulty
from accord.store.wrap.recorded import recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.store.protocols import Snapshot, Store
    from accord.store.transaction import Transaction

# Some of them documents, which an engine may keep in another way.
REGISTERS = [("box", "a"), ("box", "b"), (f"{PLAIN}/box", "a"), (f"{PLAIN}/box", "b")]
COUNTER = ("box", "count")

BANK = "accounts"
BOOK = "transfers"
ACCOUNTS = ["ada", "bob", "cyd", "dan", "eve"]


def open_recorded(store: "Store", history: str, who: str, seed: int, has_faults: bool) -> "Store":
    """The store as a worker uses it. Faults lie below the record: it tells what the worker was told."""
    if has_faults:
        store = faulty(store, chance(seed, lost=0.03, never=0.03, late=0.03))
    return recorded(store, history, who)


class Operator:
    """Reads and changes the registers and the counter, one after another and at random; no value twice."""

    def __init__(self, store: "Store", who: str, seed: int) -> None:
        self.store = store
        self.who = who
        self.random = Random(seed)
        self.count = 0

    def operate(self) -> "Iterator[str]":
        """Go on without end; each time something was done, its name."""
        operations = [
            self.look, self.look, self.look_around, self.put, self.replace, self.replace_later, self.remove,
            self.increase, self.increase, self.rewrite_two,
        ]  # fmt: skip
        while True:
            self.count += 1
            operation = self.random.choice(operations)
            # An error that leaves the outcome open, or nothing done, is an outcome like any other.
            with suppress(Conflict, Moved, errors.OutcomeUnknown, errors.EngineUnreachable, errors.Contention):
                operation()
            yield operation.__name__

    def look(self) -> None:
        with self.store.snapshot() as snapshot:
            snapshot.get(*self.any_register())

    def look_around(self) -> None:
        with self.store.snapshot() as snapshot:
            for collection in sorted({collection for collection, _ in REGISTERS}):
                snapshot.head(collection)
                snapshot.list(collection)
            snapshot.get(*COUNTER)

    def put(self) -> None:
        self.store.commit([], [Put(*self.any_register(), self.new_value())])

    def replace(self) -> None:
        key = self.any_register()
        with self.store.snapshot() as snapshot:
            check = unchanged(snapshot, key)
            self.store.commit([check], [Put(*key, self.new_value())], snapshot)

    def replace_later(self) -> None:
        """Check what a snapshot showed, when that is over."""
        key = self.any_register()
        with self.store.snapshot() as snapshot:
            check = unchanged(snapshot, key)
        self.store.commit([check], [Put(*key, self.new_value())])

    def remove(self) -> None:
        key = self.any_register()
        with self.store.snapshot() as snapshot:
            check = unchanged(snapshot, key)
            self.store.commit([check], [Delete(*key)], snapshot)

    def increase(self) -> None:
        def work(tx: "Transaction") -> None:
            item = tx.get(*COUNTER)
            count = counted(item.value) if item else 0
            tx.put(*COUNTER, b"%d %s" % (count + 1, self.new_value()))

        transact(self.store, work)

    def rewrite_two(self) -> None:
        """Two registers, after a look at both, in one transaction."""
        keys = self.random.sample(REGISTERS, 2)

        def work(tx: "Transaction") -> None:
            for key in keys:
                tx.get(*key)
                tx.put(*key, self.new_value())

        transact(self.store, work)

    def any_register(self) -> tuple[str, str]:
        return self.random.choice(REGISTERS)

    def new_value(self) -> bytes:
        return f"{self.who}.{self.count}".encode()


def unchanged(snapshot: "Snapshot", key: tuple[str, str]) -> ItemIs:
    item = snapshot.get(*key)
    return ItemIs(*key, item.revision if item else 0)


def counted(value: bytes) -> int:
    """The number in a value; behind it stands who wrote it, so that no value is written twice."""
    return int(value.split()[0])


class Teller:
    """Transfers money between accounts, and looks whether it is all there."""

    FIRST_BALANCE = 100

    def __init__(self, store: "Store") -> None:
        self.store = store

    def open_accounts(self) -> None:
        self.store.commit([], [Put(BANK, name, b"%d" % self.FIRST_BALANCE) for name in ACCOUNTS])

    def transfer(self, request: str) -> int:
        """Carry out a request, `KEY FROM TO AMOUNT`, asking again until the outcome is known; its number."""
        key, giver, taker, amount = request.split()

        def work(tx: "Transaction") -> "dict[str, object]":
            for name, change in ((giver, -int(amount)), (taker, int(amount))):
                item = tx.get(BANK, name)
                assert item is not None
                tx.put(BANK, name, b"%d %s" % (counted(item.value) + change, key.encode()))
            return {"number": tx.append(BOOK, request.encode())}

        while True:
            with suppress(errors.OutcomeUnknown):
                answer = transact(self.store, work, key=key, params=request.encode())
                return int(str(answer["number"]))

    def audit(self) -> None:
        """In one snapshot, no money is missing."""
        with suppress(Moved), self.store.snapshot() as snapshot:
            balances = {item.id: counted(item.value) for item in snapshot.list(BANK)}
            assert sum(balances.values()) == self.FIRST_BALANCE * len(ACCOUNTS), (
                f"in the snapshot of {snapshot.revision}: {balances}"
            )

    def serve(self, requests: "Iterable[str]") -> "Iterator[str]":
        """Carry out one request after another; for each, its key and number."""
        for line in requests:
            request = line.strip()
            number = self.transfer(request)
            self.audit()
            yield f"{request.split()[0]} {number}"


def main() -> None:
    task, url, who, seed, history, *faults = sys.argv[1:]
    store = open_recorded(open_store(url), history, who, int(seed), faults == ["faulty"])
    done = Teller(store).serve(sys.stdin) if task == "transfer" else Operator(store, who, int(seed)).operate()
    with suppress(BrokenPipeError):
        for said in done:
            os.write(1, f"{said}\n".encode())
    os._exit(0)
