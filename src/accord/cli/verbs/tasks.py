"""task add, depend, assign, claim, next, start, progress, block, unblock, release, done, show, list, board."""

import time

from accord.cli import texts
from accord.cli.show import one_line, table
from accord.cli.terminal import safe
from accord.cli.verbs.mail import myself
from accord.cli.words import Verb
from accord.services.tasks import MAX_TEXT_BYTES, WHAT_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from accord.cli.run import Line

    Words = dict[str, Any]
    Run = Callable[[Line, Words], None]

_HEADS = {
    "READY": ("ready",),
    "WAITING": ("waiting",),
    "IN WORK": ("started", "claimed"),
    "BLOCKED": ("blocked",),
    "DONE": ("done",),
}
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def add(line: "Line", words: "Words") -> None:
    if "text" in words or "file" in words:
        words["text"] = texts.take(line, words, "text", "file", MAX_TEXT_BYTES, WHAT_TEXT)
    result = line.call("task.add", words)
    line.answer(result, lambda: f"{result['id']} is {result['state']}\n")


def depend(line: "Line", words: "Words") -> None:
    result = line.call("task.depend", words)
    line.answer(result, lambda: f"{result['id']} comes after {', '.join(result['after'])}\n")


def assign(line: "Line", words: "Words") -> None:
    result = line.call("task.assign", words)
    line.answer(result, lambda: f"{result['id']} is assigned to {result['assignee']}\n")


def take(operation: str) -> "Run":
    """What gives a task to an agent, or lets it keep one."""

    def run(line: "Line", words: "Words") -> None:
        result = line.call(operation, _mine(line, words))
        line.answer(
            result, lambda: f"{result['id']} is {result['agent']}'s until {result['expires_at']}: {result['title']}\n"
        )

    return run


def release(line: "Line", words: "Words") -> None:
    result = line.call("task.release", _mine(line, words))
    line.answer(result, lambda: f"{result['id']} is {result['state']}\n")


def end(operation: str) -> "Run":
    """What an agent does with its own task, and a person with any."""

    def run(line: "Line", words: "Words") -> None:
        result = line.call(operation, _perhaps_mine(line, words))
        line.answer(result, lambda: f"{result['id']} is {result['state']}\n")

    return run


def unblock(line: "Line", words: "Words") -> None:
    result = line.call("task.unblock", words)
    line.answer(result, lambda: f"{result['id']} is {result['state']}\n")


def show(line: "Line", words: "Words") -> None:
    result = line.call("task.show", words)
    line.answer(result, lambda: _whole(line, result), styled=True)


def show_list(line: "Line", words: "Words") -> None:
    result = line.call("task.list", words)
    rows = [(one["id"], one["state"], one["priority"], _whose(one), one["title"]) for one in result["tasks"]]
    head = ("task", "state", "priority", "agent", "title")
    line.answer(result, lambda: table(line, head, rows) if rows else "no tasks\n", styled=True)


def board(line: "Line", words: "Words") -> None:
    result = line.call("task.board", words)
    line.answer(result, lambda: _columns(line, result), styled=True)


def _mine(line: "Line", words: "Words") -> "Words":
    return words if "agent" in words else {**words, "agent": myself(line, "--agent")}


def _perhaps_mine(line: "Line", words: "Words") -> "Words":
    """By whoever can be told to be it; nobody must be."""
    known = line.io.env.get("ACCORD_AGENT") or line.io.is_terminal(0)
    return _mine(line, words) if known else words


def _whole(line: "Line", task: "Words") -> str:
    about = [
        ("state", task["state"]),
        ("priority", task["priority"]),
        ("agent", _whose(task)),
        ("until", task["expires_at"]),
        ("after", ", ".join(task["after"])),
        ("waits for", ", ".join(task["waits_for"])),
        ("reason", task["reason"]),
        ("note", task["note"]),
        ("added", task["created_at"]),
        ("done", task["done_at"]),
    ]
    head = f"{one_line(task['id'])}  {one_line(task['title'])}\n"
    lines = [f"  {word.ljust(10)}{one_line(value)}\n" for word, value in about if value]
    text = "".join(f"  {one}\n" for one in safe(task["text"]).splitlines())
    rows = [(one["agent"], one["status"], one["session"], one["assigned_at"]) for one in task["assignments"]]
    had = table(line, ("agent", "status", "session", "assigned"), rows) if rows else ""
    return "\n".join([part for part in (head + "".join(lines), text, had) if part])


def _columns(line: "Line", result: "Words") -> str:
    from accord.cli.columns import side_by_side

    found = []
    for head, states in _HEADS.items():
        cards = [text for state in states for task in result[state] for text in _card(task)]
        if cards:
            found.append((head, [*cards, *["and more" for state in states if state in result["more"]][:1]]))
    return side_by_side(found, line.io.width() if line.io.is_terminal(1) else 80) if found else "no tasks\n"


def _card(task: "Words") -> "list[str]":
    below = _below(task)
    return [one_line(f"{task['id']} {task['title']}"), *([one_line(f"  {below}")] if below else [])]


def _below(task: "Words") -> str:
    """What there is to say of it besides its title."""
    if task["expires_at"]:
        is_started = ", started" if task["state"] == "started" else ""
        return f"{task['agent']}, {_left(task['expires_at'])} left{is_started}"
    if task["state"] == "waiting":
        return f"after {', '.join(task['after'])}"
    if task["state"] == "done":
        return f"by {task['agent']}" if task["agent"] else ""
    return str(task["reason"] or _whose(task))


def _whose(task: "Words") -> str:
    return str(task["agent"] or "") or (f"for {task['assignee']}" if task["assignee"] else "")


def _left(expires_at: str) -> str:
    from calendar import timegm

    ends = timegm(time.strptime(expires_at[:19], "%Y-%m-%dT%H:%M:%S"))
    left_s = max(0, int(ends - time.time()))
    size, unit = next((size, unit) for size, unit in _UNITS if left_s >= size or size == 1)
    return f"{left_s // size}{unit}"


_ID = ("id",)
_AGENT = ("agent",)

_NEEDS = {"after": "needs"}  # `--after` is a number elsewhere
_FIRST = {"after": "a task that must be done first, which may be given several times"}

VERBS = {
    "task add": Verb(
        add,
        "task.add",
        names=_NEEDS,
        positional=("title",),
        extra={"file": "Path"},
        notes={**_FIRST, "text": "more about it", "file": "a file with the text; - is standard input"},
    ),
    "task depend": Verb(depend, "task.depend", positional=("id", "after"), names=_NEEDS, notes=_FIRST),
    "task assign": Verb(assign, "task.assign", positional=("id", "agent")),
    "task claim": Verb(take("task.claim"), "task.claim", positional=_ID, mine=_AGENT),
    "task next": Verb(take("task.next"), "task.next", mine=_AGENT),
    "task start": Verb(take("task.start"), "task.start", positional=_ID, mine=_AGENT),
    "task progress": Verb(take("task.progress"), "task.progress", positional=("id", "note"), mine=_AGENT),
    "task block": Verb(end("task.block"), "task.block", positional=("id", "reason")),
    "task unblock": Verb(unblock, "task.unblock", positional=_ID),
    "task release": Verb(release, "task.release", positional=_ID, mine=_AGENT),
    "task done": Verb(end("task.done"), "task.done", positional=("id", "note")),
    "task show": Verb(show, "task.show", positional=_ID),
    "task list": Verb(show_list, "task.list"),
    "task board": Verb(board, "task.board"),
}
