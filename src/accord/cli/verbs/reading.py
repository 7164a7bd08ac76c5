"""sent, thread, search, discover."""

from accord.cli.show import messages, one_line, table
from accord.cli.verbs.mail import myself
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def sent(line: "Line", words: "dict[str, Any]") -> None:
    if "sender" not in words:
        words["sender"] = myself(line, "--from")
    result = line.call("mail.sent", words)
    line.answer(
        result, lambda: messages(line, result["messages"]) or f"{result['identity']} has sent nothing\n", styled=True
    )


def thread(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("mail.thread", words)
    line.answer(result, lambda: messages(line, result["messages"]), styled=True)


def search(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("mail.search", words)
    line.answer(result, lambda: messages(line, result["messages"]) or "nothing found\n", styled=True)


def discover(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("agent.discover", words)
    line.answer(result, lambda: _everybody(line, result), styled=True)


def _everybody(line: "Line", result: "dict[str, Any]") -> str:
    rows = [
        (who["identity"], who["pending"], "yes" if who["listener"] else "-", who["last_seen"])
        for who in result["identities"]
    ]
    halted = f"HALTED: {one_line(result['halted'])}\n" if result["halted"] else ""
    waiting = [who["identity"] for who in result["identities"] if not who["engaged"]]
    engage = f"waiting for `accord engage`: {', '.join(waiting)}\n" if waiting else ""
    return halted + table(line, ("identity", "unread", "listens", "last seen"), rows) + engage


VERBS = {
    "sent": Verb(sent, "mail.sent", positional=("sender",), names={"sender": "from"}, mine=("sender",)),
    "thread": Verb(thread, "mail.thread", positional=("conversation",)),
    "search": Verb(search, "mail.search", positional=("query",)),
    "discover": Verb(discover, "agent.discover"),
}
