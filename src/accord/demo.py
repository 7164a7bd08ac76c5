"""`make demo`: four processes share one store, one of them is killed in the middle, and nothing is lost."""

import os
import signal
import subprocess
import sys
import tempfile
import time

from accord.store.open import open_store
from accord.store.transaction import Transaction, transact

WORKERS = ("ann", "ben", "cat", "dan")
PARCELS = 200


def main() -> None:
    if len(sys.argv) == 3:
        deliver(*sys.argv[1:])
        return
    with tempfile.TemporaryDirectory(prefix="accord-demo-") as home:
        for url in (f"sqlite:{home}/store.db", f"files:{home}/files"):
            show(url)
    print("Next: read docs/design/store.md, or run `make test` and `make bench`.")


def show(url: str) -> None:
    print(f"{url.partition(':')[0]}: {len(WORKERS)} processes deliver {PARCELS} parcels, each exactly once")
    started = time.monotonic()
    store = open_store(url)
    transact(store, lambda tx: tx.put("parcels", "left", b"%d" % PARCELS))
    workers = [subprocess.Popen([sys.executable, "-m", "accord.demo", url, name]) for name in WORKERS]
    with store.watch(["delivered"], since=1) as watch:
        for _ in range(PARCELS // 4):
            watch.next(10)
    workers[0].send_signal(signal.SIGKILL)
    print(f"  after {PARCELS // 4} of them {WORKERS[0]} is killed with kill -9, in whatever it was doing")
    for worker in workers:
        worker.wait()
    with store.snapshot() as snapshot:
        # Each page is at most a thousand; the parcels fit into one.
        names = [item.value.decode() for item in snapshot.list("delivered", limit=1000)]
        numbers = [int(item.id) for item in snapshot.list("delivered", limit=1000)]
    shares = ", ".join(f"{name} {names.count(name)}" for name in WORKERS)
    print(f"  delivered: {shares}: {len(names)} of {PARCELS}, without gap: {numbers == list(range(1, PARCELS + 1))}")
    print(f"  in {time.monotonic() - started:.1f} s, durable ({store.durability}), with no server running\n")
    store.close()


def deliver(url: str, name: str) -> None:
    """Take parcels one by one until none is left: each in one transaction, so none is delivered twice."""

    def work(tx: Transaction) -> bool:
        item = tx.get("parcels", "left")
        left = int(item.value) if item else 0
        if left:
            tx.put("parcels", "left", b"%d" % (left - 1))
            tx.append("delivered", name.encode())
        return left > 0

    store = open_store(url)
    while transact(store, work):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
