"""Wakes agents that are idle when mail comes for them, where their programs have a way in for that."""

import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from accord import errors
from accord.services import agents, sessions
from accord.services.audited import Audited
from accord.store.transaction import transact
from accord.wake import TEXT, WAYS

if TYPE_CHECKING:
    from accord.hub.core import Hub

# There are few sessions and many messages: looking at those now and then costs less than following these.
_EVERY_S = 0.25


class Waker:
    def __init__(self, hub: "Hub", uid: int) -> None:
        self._hub = hub
        self._uid = uid
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="waker", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        self._closed.set()
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        seen, again_at = -1, math.inf
        while not self._closed.wait(_EVERY_S):
            try:
                with self._hub.store.snapshot() as snapshot:
                    revision = snapshot.revision
                now = time.monotonic()
                if revision != seen or now >= again_at:
                    again_at = again_at if now < again_at else math.inf
                    reached = [self._wake(name) for name in transact(self._hub.store, sessions.idle)]
                    if not all(reached):
                        again_at = now + sessions.WAKE_S  # though nothing else happens until then
                seen = revision
            except (OSError, errors.AccordError):
                pass  # the next look finds them

    def _wake(self, name: str) -> bool:
        """Whether nobody needs to try again. What the agent is not woken for it gets with its next prompt."""
        try:
            record = self._chosen(name)
            if record is None or record["brain"] not in WAYS:
                return True
            module = f"accord.wake.{record['brain']}"
            __import__(module)
            way: Any = sys.modules[module]
            woken: bool = way.wake(record, TEXT)
            self._hub.count("wakes" if woken else "wakes_refused")
            return woken
        except (ImportError, OSError, errors.AccordError):
            self._hub.count("wakes_failed")
            return False

    def _chosen(self, name: str) -> "dict[str, Any] | None":
        """The session that is to be woken, if it is."""
        halt, settings = self._hub.halt, self._hub.settings
        if halt.reason() is not None:
            return None
        halts = halt.count()

        def work(tx: Any) -> "dict[str, Any] | None":
            agent = agents.find(tx, name)
            if agent is None or agent["gone"] or agent["engaged"] < halts:
                return None
            return sessions.wake(tx, name, settings["keep_going_limit"], settings["thread_hops_limit"])

        store: Any = Audited(self._hub.store, "hub", self._uid, "hook.wake", [])
        return transact(store, work)
