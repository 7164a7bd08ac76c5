"""Messages and tables for people. Colour only on a terminal that wants it."""

from accord.cli.terminal import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from accord.cli.run import Line

_BAR = 30

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def messages(line: "Line", found: "Iterable[Mapping[str, Any]]") -> str:
    return "".join(_message(line, message) for message in found)


def table(line: "Line", head: "Sequence[str]", rows: "Iterable[Sequence[object]]") -> str:
    """Columns as wide as what is in them."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in [list(head), *cells]) for at in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *cells]]
    return "\n".join([styled(line, lines[0].rstrip(), _BOLD), *[text.rstrip() for text in lines[1:]]]) + "\n"


def bar(done: int, total: int) -> str:
    """How far long work has come."""
    full = _BAR * done // max(total, 1)
    return f"[{'#' * full}{'.' * (_BAR - full)}] {done:,} of {total:,}"


def one_line(value: object) -> str:
    text = "-" if value is None else str(value)
    return safe(text).replace("\n", " ").replace("\t", " ")


def styled(line: "Line", text: str, style: str) -> str:
    env = line.io.env
    wanted = line.io.is_terminal(1) and not env.get("NO_COLOR") and env.get("TERM") != "dumb"
    return f"{style}{text}{_PLAIN}" if wanted else text


def _message(line: "Line", message: "Mapping[str, Any]") -> str:
    what = [f"from {message['from']}", f"to {', '.join(message['to'])}"]
    if message["channel"]:
        what.append(f"on {message['channel']}")
    if message["type"]:
        what.append(message["type"])
    if message.get("states"):
        what.append(", ".join(map(_delivery, message["states"])))
    head = styled(line, one_line("  ".join(what)), _BOLD)
    below = [f"id {message['message_id']}", message["timestamp"]]
    if message["reply_to"]:
        below.append(f"answers {message['reply_to']}")
    if message["conversation"]:
        below.append(f"in {message['conversation']}")
    foot = styled(line, one_line("  ".join(below)), _DIM)
    text = message["message"].replace("\r\n", "\n").removesuffix("\n")
    body = "".join(f"  {line_of_text}\n" for line_of_text in safe(text).split("\n"))
    return f"{head}\n{foot}\n{body}\n"


def _delivery(state: "Mapping[str, str]") -> str:
    how = f" by {state['by']}" if "by" in state else ""
    return f"{state['identity']}: {state['state']}{how}"
