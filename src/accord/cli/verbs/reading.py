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


def receipt(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("mail.receipt", words)
    line.answer(result, lambda: table(line, ("to", "state", "handed over by", "at"), _deliveries(result)), styled=True)


def _deliveries(result: "dict[str, Any]") -> "list[tuple[object, ...]]":
    handed = [(one, one["handed_over"] or {"by": "-", "at": "-"}) for one in result["to"]]
    return [(one["identity"], one["state"], how["by"], how["at"]) for one, how in handed]


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
    has_sessions = any(who["session"] for who in result["identities"])
    columns = ["identity", "unread", "listens", *["session"] * has_sessions, "last seen"]
    rows = [
        [
            who["identity"],
            who["pending"],
            "yes" if who["listener"] else "-",
            *[_running(who)] * has_sessions,
            who["last_seen"],
        ]
        for who in result["identities"]
    ]
    halted = f"HALTED: {one_line(result['halted'])}\n" if result["halted"] else ""
    waiting = [who["identity"] for who in result["identities"] if not who["engaged"]]
    engage = f"waiting for `accord engage`: {', '.join(waiting)}\n" if waiting else ""
    return halted + table(line, columns, rows) + engage


def _running(who: "dict[str, Any]") -> str:
    session = who["session"]
    return f"{session['brain']} {session['state']}" if session else "-"


VERBS = {
    "sent": Verb(sent, "mail.sent", positional=("sender",), names={"sender": "from"}, mine=("sender",)),
    "receipt": Verb(receipt, "mail.receipt", positional=("id",), notes={"id": "the id of the message"}),
    "thread": Verb(
        thread,
        "mail.thread",
        positional=("conversation",),
        notes={"conversation": "the id of the conversation, or of a message in it"},
    ),
    "search": Verb(search, "mail.search", positional=("query",)),
    "discover": Verb(discover, "agent.discover"),
}
