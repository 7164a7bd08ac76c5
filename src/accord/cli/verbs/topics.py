"""publish, subscribe, topic read, topic last."""

import time

from accord import errors, jsontext
from accord.cli import texts
from accord.cli.programs import feed, program
from accord.cli.run import as_json
from accord.cli.show import one_line
from accord.cli.words import DASH, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

_WAIT_S = 3600.0
_PAUSE_S = 1.0


def publish(line: "Line", words: "dict[str, Any]") -> None:
    message = texts.take(line, words, "message", "message_file", line.context.settings["message_limit"])
    result = line.call("topic.publish", {**words, "message": message})
    line.answer(result, lambda: f"published {result['sequence']} on {result['channel']}\n")


def subscribe(line: "Line", words: "dict[str, Any]") -> None:
    command = program(line, words)
    if "channel" not in words:
        raise line.words.wrong("channel is missing")
    channel, since, after = words["channel"], words.get("since"), words.get("after")
    newest = line.call("topic.last", {"channel": channel})["sequence"]  # fails where no server is, which ends it
    if since is None and after is None:
        after = newest
    said = False
    while True:
        try:
            found = line.call("topic.read", {"channel": channel, "since": since, "after": after, "wait": _WAIT_S})
        except (errors.Halted, errors.EngineUnreachable) as error:
            if not said:
                line.io.err(f"accord: waiting: {one_line(error)}\n")
            said = True
            time.sleep(_PAUSE_S)
            continue
        said = False
        if found["missed"]:
            line.io.err(f"accord: {found['missed']} are no longer kept, and were missed\n")
        for entry in found["entries"]:
            _give_out(line, command, {"channel": channel, **entry})
            since, after = None, entry["sequence"]


def read(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("topic.read", words)
    text = "".join(_entry(entry) for entry in result["entries"])
    line.answer(result, lambda: text or f"nothing on {result['channel']}\n", styled=True)


def last(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("topic.last", words)
    line.answer(result, lambda: f"{result['sequence']}\n")


def _give_out(line: "Line", command: list[str], entry: "dict[str, Any]") -> None:
    if command:
        code = feed(command, jsontext.dumps(entry).encode() + b"\n")
        if code:
            line.io.err(f"accord: the command ended with {code}, for {entry['sequence']}\n")
    else:
        line.io.out(as_json(entry) if line.json else _entry(entry))


def _entry(entry: "dict[str, Any]") -> str:
    return f"{entry['sequence']}  {one_line(entry['from'])}: {one_line(entry['message'].strip())}\n"


VERBS = {
    "publish": Verb(
        publish,
        "topic.publish",
        positional=("channel", "message"),
        extra={"message_file": "Path", "stdin": DASH},
        notes={"message_file": "a file with the text; - reads standard input"},
        usage="CHANNEL (TEXT | --message-file PATH | -) [OPTION...]",
    ),
    "topic read": Verb(
        read,
        "topic.read",
        positional=("channel",),
        notes={"after": "start after this number; 0: with all that is kept"},
    ),
    "topic last": Verb(last, "topic.last", positional=("channel",)),
    "subscribe": Verb(
        subscribe,
        positional=("channel",),
        extra={"channel": "Channel", "since": "Text", "after": "Place", "exec": "Command"},
        usage="CHANNEL [--since TEXT | --after NUMBER] [--exec COMMAND]",
        notes={
            "after": "start after this number; 0: with all that is kept",
            "exec": "a command that gets each on its standard input, as JSON",
        },
        help="Show what is published on a channel, as it comes; from now on, or from a place on.",
    ),
}
