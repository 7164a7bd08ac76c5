"""queue push, queue pop, queue done, queue fail, queue retry, queue drop, queue peek, queue dead, queue list."""

from accord.cli import texts
from accord.cli.show import one_line, table
from accord.cli.words import DASH, Verb
from accord.services.queues import MAX_BYTES, WHAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line

_LONGEST = 60  # characters of a payload in a table


def push(line: "Line", words: "dict[str, Any]") -> None:
    payload = texts.take(line, words, "payload", "file", MAX_BYTES, WHAT)
    result = line.call("queue.push", {**words, "payload": payload})
    line.answer(result, lambda: f"pushed {result['sequence']} to {result['queue']}\n")


def pop(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.pop", words)
    line.answer(result, lambda: f"{result['sequence']}  {result['priority']}  try {result['tries']}  "
                f"receipt {result['receipt']}\n{result['payload'].removesuffix(chr(10))}\n")  # fmt: skip


def done(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.done", words)
    line.answer(result, lambda: f"{result['sequence']} of {result['queue']} is done\n")


def fail(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.fail", {**words, "reason": " ".join(words.get("reason") or [])})
    became = "is a dead letter now" if result["dead"] else "goes back"
    line.answer(result, lambda: f"{result['sequence']} of {result['queue']} {became}\n")


def retry(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.retry", words)
    line.answer(result, lambda: f"{result['sequence']} of {result['queue']} goes back\n")


def drop(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.drop", words)
    line.answer(result, lambda: f"{result['sequence']} of {result['queue']} is dropped\n")


def peek(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.peek", words)
    rows = [
        (one["sequence"], one["priority"], one["tries"], one["by"], one["size"], _start(one))
        for one in result["entries"]
    ]
    head = ("number", "priority", "tries", "by", "bytes", "payload")
    line.answer(result, lambda: table(line, head, rows) if rows else "nothing to take\n", styled=True)


def dead(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.dead", words)
    rows = [
        (one["sequence"], one["tries"], one["worker"], one["at"], one["reason"], _start(one))
        for one in result["entries"]
    ]
    head = ("number", "tries", "last taken by", "when", "why", "payload")
    line.answer(result, lambda: table(line, head, rows) if rows else "no dead letters\n", styled=True)


def show(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("queue.list", words)
    rows = [
        (one["queue"], *one["ready"].values(), one["in_flight"], one["delayed"], one["dead"], one["length"])
        for one in result["queues"]
    ]
    head = ("queue", "high", "normal", "low", "in flight", "delayed", "dead", "in all")
    line.answer(result, lambda: table(line, head, rows) if rows else "no queues\n", styled=True)


def _start(entry: "dict[str, Any]") -> str:
    text = one_line(entry["payload"])
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


VERBS = {
    "queue push": Verb(
        push,
        "queue.push",
        positional=("queue", "payload"),
        extra={"file": "Path", "stdin": DASH},
        notes={"file": "a file with the payload; the word - alone reads standard input"},
        usage="NAME (TEXT | --file PATH | -) [OPTION...]",
    ),
    "queue pop": Verb(pop, "queue.pop", positional=("queue",)),
    "queue done": Verb(done, "queue.done", positional=("queue", "receipt")),
    "queue fail": Verb(fail, "queue.fail", positional=("queue", "receipt", "reason"), extra={"reason": "Words"}),
    "queue retry": Verb(retry, "queue.retry", positional=("queue", "sequence")),
    "queue drop": Verb(drop, "queue.drop", positional=("queue", "sequence")),
    "queue peek": Verb(peek, "queue.peek", positional=("queue",)),
    "queue dead": Verb(dead, "queue.dead", positional=("queue",)),
    "queue list": Verb(show, "queue.list"),
}
