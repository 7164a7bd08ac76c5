"""channel join, channel leave, channel list."""

from accord.cli.show import table
from accord.cli.verbs.mail import myself
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def join(line: "Line", words: "dict[str, Any]") -> None:
    if "identity" not in words:
        words["identity"] = myself(line, "--identity")
    result = line.call("channel.join", words)
    line.answer(result, lambda: f"{result['identity']} is in {result['channel']}\n")


def leave(line: "Line", words: "dict[str, Any]") -> None:
    if "identity" not in words:
        words["identity"] = myself(line, "--identity")
    result = line.call("channel.leave", words)
    line.answer(result, lambda: f"{result['identity']} is no longer in {result['channel']}\n")


def show(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("channel.list", words)
    rows = [(found["channel"], ", ".join(found["members"])) for found in result["channels"]]
    line.answer(result, lambda: table(line, ("channel", "members"), rows) if rows else "no channels\n", styled=True)


VERBS = {
    "channel join": Verb(join, "channel.join", positional=("channel",), mine=("identity",)),
    "channel leave": Verb(leave, "channel.leave", positional=("channel",), mine=("identity",)),
    "channel list": Verb(show, "channel.list"),
}
