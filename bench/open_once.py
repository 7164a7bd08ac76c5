"""A fresh process that opens a store and prints the milliseconds until its first snapshot, and those of importing.

The engine's driver is imported before; the modules of accord that the engine needs are not. The garbage collector is
off, as in every command of accord.
"""

import gc
import sys
import time

from accord.store.open import open_store

DRIVERS = {"sqlite": "apsw"}

gc.disable()
url = sys.argv[1]
engine = url.partition(":")[0]
__import__(DRIVERS.get(engine, "sys"))
start = time.perf_counter()
__import__(f"accord.store.engines.{engine}")  # as open_store would
imported = time.perf_counter()
store = open_store(url)
with store.snapshot():
    opened = time.perf_counter()
print((opened - start) * 1000, (imported - start) * 1000)
