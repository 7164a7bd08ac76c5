"""Wakes agents that are idle when mail comes for them, where their programs have a way in for that."""

import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from accord import errors
from accord.services import agents, sessions
from accord.services.audited import Audited
from accord.store.contract import Change
from accord.store.transaction import transact
from accord.wake import TEXT, WAYS

if TYPE_CHECKING:
    from accord.hub.core import Hub

_LOOK_S = 1.0  # at whether the hub ends
_MAIL = "mail/"


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
        while not self._closed.is_set():
            try:
                self._follow()
            except errors.HistoryGone:
                pass  # on from where the store stands now
            except (OSError, errors.AccordError):
                self._closed.wait(_LOOK_S)

    def _follow(self) -> None:
        store = self._hub.store
        with store.snapshot() as snapshot:
            revision = snapshot.revision
        with store.watch([_MAIL], revision) as watch:
            while not self._closed.is_set():
                change = watch.next(_LOOK_S)
                for name in _recipients(change):
                    self._wake(name)

    def _wake(self, name: str) -> None:
        """Failing is no loss: the agent gets its mail with the next thing that happens in its session."""
        try:
            record = self._chosen(name)
            if record is not None and record["brain"] in WAYS:
                module = f"accord.wake.{record['brain']}"
                __import__(module)
                way: Any = sys.modules[module]
                woken = way.wake(record["reach"], record["process"], TEXT)
                self._hub.count("wakes" if woken else "wakes_refused")
        except (ImportError, OSError, errors.AccordError):
            self._hub.count("wakes_failed")

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


def _recipients(change: "Change | None") -> Iterable[str]:
    keys = change.keys if change is not None else ()
    return dict.fromkeys(collection.removeprefix(_MAIL) for collection, _ in keys if collection.startswith(_MAIL))
