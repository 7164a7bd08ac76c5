"""A process that makes the one commit of `tests.engines.test_firebase`, to be killed on its way."""

import sys

from accord.store.contract import Append, Delete, Put
from accord.store.open import open_store
from accord.store.transaction import Transaction, transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.contract import Write
    from accord.store.protocols import Store

KEY = "request"


def prepare(store: "Store") -> None:
    store.commit([], [Put("c", "old", b"1"), Put("c", "doomed", b"1"), Append("log", b"first")])


# All that a commit can do: replace, make, delete, number.
WRITES: "list[Write]" = [
    Put("c", "old", b"2"),
    Put("c", "new", b"2"),
    Delete("c", "doomed"),
    Append("log", b"second"),
    Append("fresh", b"\0\xff"),
]


def change(tx: Transaction) -> "dict[str, object]":
    item = tx.get("c", "old")
    tx.put("c", "old", b"2 after " + (item.value if item else b""))
    tx.put("c", "new", b"2")
    tx.delete("c", "doomed")
    return {"log": tx.append("log", b"second"), "fresh": tx.append("fresh", b"\0\xff")}


def main() -> None:
    store = open_store(sys.argv[1])
    print(transact(store, change, key=KEY), flush=True)


if __name__ == "__main__":
    main()
