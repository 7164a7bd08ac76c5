"""send, check, ack."""

from accord import errors
from accord.cli.words import DASH, Verb
from accord.model import new_message_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def send(line: "Line", words: "dict[str, Any]") -> None:
    from accord.cli import texts  # which the others here do without

    message = texts.take(line, words, "message", "message_file", line.context.settings["message_limit"])
    params = {
        "id": new_message_id(line.io.request),  # before the first try, so that asking again sends nothing twice
        **words,
        "sender": words["sender"] if "sender" in words else myself(line, "--from"),
        "message": message,
    }
    result = line.call("mail.send", params)
    line.answer(result, lambda: f"sent {result['message_id']} to {_names(result['to'])}\n")


def check(line: "Line", words: "dict[str, Any]") -> int:
    if "identity" not in words:
        words["identity"] = myself(line, "--identity")
    result = line.call("mail.check", words)
    line.answer(result, lambda: _inbox(line, result), styled=True)
    if words.get("peek") or not result["messages"]:
        return 0
    # Only now that it was printed: what a reader did not get comes again.
    line.io.confirm()
    try:
        ids = [message["message_id"] for message in result["messages"]]
        line.call("mail.ack", {"identity": words["identity"], "ids": ids})
    except errors.AccordError as error:
        line.io.err(f"accord: not acknowledged: {error} [{error.code}]\n")
        return error.exit
    return 0


def ack(line: "Line", words: "dict[str, Any]") -> None:
    if "identity" not in words:
        words["identity"] = myself(line, "--identity")
    result = line.call("mail.ack", words)
    line.answer(result, lambda: f"acknowledged {len(result['acknowledged'])}\n")


VERBS = {
    "send": Verb(
        send,
        "mail.send",
        positional=("stdin",),
        names={"sender": "from"},
        extra={"message_file": "Path", "stdin": DASH},
        notes={
            "sender": "who sends it, when that is not $ACCORD_AGENT or you at a terminal",
            "message_file": "a file with the text; the word - alone reads standard input",
        },
        usage="(--to NAME... | --channel CHANNEL) (--message TEXT | --message-file PATH | -) [--from NAME] [OPTION...]",
        instead="accord send --to NAME --message TEXT",
    ),
    "check": Verb(
        check,
        "mail.check",
        positional=("identity",),
        mine=("identity",),
        help="Show the oldest unread messages, and acknowledge them once they are printed.",
    ),
    "ack": Verb(ack, "mail.ack", positional=("ids",), mine=("identity",)),
}


def myself(line: "Line", option: str) -> str:
    """Who acts when nobody is named: the agent that runs this, or the person at the terminal."""
    agent = line.io.env.get("ACCORD_AGENT")
    if agent:
        return agent
    if line.io.is_terminal(0):
        return "human"
    raise line.words.wrong(f"Say who you are with {option} NAME or $ACCORD_AGENT; the owner is human")


def _inbox(line: "Line", result: "dict[str, Any]") -> str:
    if not result["messages"]:
        return f"nothing new for {result['identity']}\n"
    from accord.cli.show import messages

    more = f"{result['remaining']} more\n" if result["remaining"] else ""
    return messages(line, result["messages"]) + more


def _names(recipients: "list[dict[str, str]]") -> str:
    return ", ".join(recipient["identity"] for recipient in recipients)
