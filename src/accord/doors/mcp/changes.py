"""What is told to those who subscribed: that a resource, or the list of them, is not what it was.

One feed follows what happens for all of them, from the first who listens until the last is gone.
"""

from collections.abc import Callable
from typing import Any

from accord.doors.mcp import resources
from accord.hub.core import Hub
from accord.hub.feeds import EventFeed
from accord.services import events
from accord.store import names

LIST = ""  # as a URI: the list of resources

Told = Callable[[str], None]


class Changes:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._listeners: dict[object, tuple[str, Told]] = {}
        self._feed: EventFeed | None = None
        self._known: set[str] = set()  # documents that were there when somebody heard of them

    def listen(self, agent: str, told: Told) -> Callable[[], None]:
        """Call `told` with each URI that changes for an agent; what is returned ends that."""
        token = object()
        self._listeners[token] = (agent, told)
        if self._feed is None:
            self._feed = EventFeed(self._hub.store, "", [], self._happened)
            self._hub.feeds.add(self._feed)
        return lambda: self._leave(token)

    def _leave(self, token: object) -> None:
        self._listeners.pop(token, None)
        if not self._listeners and self._feed is not None:
            self._hub.feeds.remove(self._feed)
            self._feed = None

    def _happened(self, method: str, event: dict[str, Any]) -> bool:
        if method == EventFeed.method:
            told = list(self._listeners.values())
            for whose, uri in self._changed(event):
                for agent, tell in told:
                    if whose in ("", agent):
                        tell(uri)
        return True

    def _changed(self, event: dict[str, Any]) -> list[tuple[str, str]]:
        """Whose resources are others now; "": everybody's."""
        kind = event["event"]
        if kind == "mail.sent":
            thread = event["conversation"] or event["reply_to"] or event["message_id"]
            return [*((name, resources.INBOX) for name in event["to"]), ("", resources.thread(thread))]
        if kind == "mail.seen":
            return [(event["identity"], resources.INBOX)]
        if kind == events.GAP:
            everybody = [("", resources.INBOX), ("", resources.TASKS), ("", LIST)]
            return everybody  # what was missed can be anything
        return [("", uri) for uri in self._shared(event.get("items", []), event.get("operation", ""))]

    def _shared(self, items: list[str], operation: str) -> list[str]:
        uris = [resources.TASKS] if any(item.startswith("task") for item in items) else []
        for item in items:
            if item.startswith("doc/"):
                collection, _, id = item.rpartition("/")
                uris += self._document(names.from_key("doc", collection, id), operation)
        return uris

    def _document(self, name: str, operation: str) -> list[str]:
        """A document that was written. One that is new here, or gone, changes the list as well."""
        is_same = operation == "doc.write" and name in self._known
        if operation == "doc.rm":
            self._known.discard(name)
        else:
            self._known.add(name)
        return [resources.doc(name)] if is_same else [resources.doc(name), LIST]
