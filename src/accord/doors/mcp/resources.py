"""What can be read by MCP, each under its URI."""

from typing import Any
from urllib.parse import quote, unquote

from accord import errors
from accord.doors.mcp import calls, tools
from accord.hub.core import Hub
from accord.hub.session import Session

INBOX = "accord://inbox"
TASKS = "accord://tasks"
OPERATIONS = tools.OPERATIONS
_THREAD = "accord://thread/"
_DOC = "accord://doc/"

_TEXT = "text/plain"
_JSON = "application/json"
_MOST_LISTED = 1000  # documents; whoever has more reads them by name

TEMPLATES = [
    {"name": "thread", "uriTemplate": f"{_THREAD}{{id}}", "description": "A conversation.", "mimeType": _TEXT},
    {"name": "doc", "uriTemplate": f"{_DOC}{{name}}", "description": "A document.", "mimeType": _TEXT},
]
_ALWAYS = [
    {"name": "inbox", "uri": INBOX, "description": "Your unread messages.", "mimeType": _TEXT},
    {"name": "tasks", "uri": TASKS, "description": "The board of tasks.", "mimeType": _JSON},
    {"name": "operations", "uri": OPERATIONS, "description": "What the tool `call` can do.", "mimeType": _TEXT},
]


class NoSuchResource(LookupError):
    """There is nothing under a URI."""


def doc(name: str) -> str:
    return _DOC + quote(name, safe="")


def thread(id: str) -> str:
    return _THREAD + quote(id, safe="")


async def listed(hub: Hub, session: Session) -> list[dict[str, Any]]:
    """All that has a name; conversations are found by their messages."""
    found = await calls.call(hub, session, "doc.list", {})
    names = sorted(one["name"] for one in found["documents"])[:_MOST_LISTED]
    documents = [{"name": name, "uri": doc(name), "mimeType": _TEXT} for name in names]
    return [*_ALWAYS, *documents]


async def read(hub: Hub, session: Session, uri: str) -> tuple[str, str]:
    """The text under a URI, and what kind of text it is."""
    try:
        return await _read(hub, session, uri)
    except (errors.DocumentNotFound, errors.MessageNotFound) as error:
        raise NoSuchResource(str(error)) from None


async def _read(hub: Hub, session: Session, uri: str) -> tuple[str, str]:
    if uri == INBOX:
        if not session.agent:
            raise NoSuchResource("This connection has no agent's name, and so no inbox.")
        found = await calls.call(hub, session, "mail.check", {"identity": session.agent, "limit": 20})
        return tools.answer(found)[0], _TEXT
    if uri == TASKS:
        return tools.answer(await calls.call(hub, session, "task.board", {"limit": 20}))[0], _JSON
    if uri == OPERATIONS:
        return tools.every_operation(), _TEXT
    if uri.startswith(_THREAD):
        found = await calls.call(hub, session, "mail.thread", {"conversation": unquote(uri[len(_THREAD) :])})
        return tools.answer(found)[0], _TEXT
    if uri.startswith(_DOC):
        found = await calls.call(hub, session, "doc.read", {"name": unquote(uri[len(_DOC) :])})
        return str(found["text"]), _TEXT
    raise NoSuchResource(f"There is no resource {uri[:200]}.")
