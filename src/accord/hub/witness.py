"""Once a second the audit's chain is made as long as the audit, whoever wrote to it."""

import os
import threading

from accord import errors
from accord.services import chain
from accord.services.audited import AUDIT
from accord.store.protocols import Store
from accord.store.transaction import transact

EVERY_S = 1.0


class Witness:
    def __init__(self, home: str, store: Store) -> None:
        self._home = home
        self._store = store
        self._closed = threading.Event()
        self._seen = 0
        self._thread = threading.Thread(target=self._serve, name="witness", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        self._closed.set()
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        while True:
            is_last = self._closed.wait(EVERY_S)
            try:
                if self._store.durability != "none":
                    self._look()
            except (OSError, errors.AccordError):
                pass  # the next one goes on from there
            if is_last:
                return

    def _look(self) -> None:
        last = transact(self._store, lambda tx: tx.head(AUDIT).last)
        if last != self._seen and os.path.isdir(self._home):  # which is not made again, if somebody removed it
            chain.extend(self._home, self._store)
            self._seen = last
