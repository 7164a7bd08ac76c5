"""Everybody who is there, as of one revision."""

from accord.model import HUMAN
from accord.services import agents, mail, sessions
from accord.store.transaction import Transaction, transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from accord.store.protocols import Store


def everybody(store: "Store", halts: int, listeners: "Mapping[str, object]") -> "dict[str, Any]":
    def work(tx: Transaction) -> "dict[str, Any]":
        identities = [_shown(tx, HUMAN, None, True)]
        for name, record in agents.present(tx):
            identities.append(_shown(tx, name, record["registered_at"], record["engaged"] >= halts))
        return {"revision": tx.revision, "identities": identities}

    found = transact(store, work)
    for who in found["identities"]:
        who["listener"] = listeners.get(who["identity"])
    return found


def _shown(tx: Transaction, name: str, registered_at: str | None, engaged: bool) -> "dict[str, Any]":
    session = sessions.find(tx, name)
    return {
        "identity": name,
        "listener": None,
        "session": sessions.shown(session) if session else None,
        "last_seen": mail.last_seen(tx, name) or registered_at,
        "pending": mail.pending(tx, name),
        "engaged": engaged,
    }
