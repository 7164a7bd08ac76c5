"""From a command to its verb, and from what came of it to what a person or a program reads."""

import sys
from errno import EMFILE, ENFILE

from accord import errors, jsontext
from accord.cli.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from accord.cli.io import Io
    from accord.cli.words import Verb
    from accord.operations.context import Context

# Each verb, or groups and verb, with the module of `verbs` that has it.
VERBS = {
    "send": "mail", "check": "mail", "ack": "mail",
    "sent": "reading", "receipt": "reading", "thread": "reading", "search": "reading", "discover": "reading",
    "listen": "listen", "events": "listen", "mcp": "mcp",
    "register": "agents", "unregister": "agents",
    "channel join": "channels", "channel leave": "channels", "channel list": "channels",
    "doc read": "docs", "doc write": "docs", "doc history": "docs", "doc restore": "docs", "doc list": "docs",
    "doc rm": "docs", "doc edit": "editing", "doc import": "filing", "doc export": "filing",
    "lock acquire": "locks", "lock renew": "locks", "lock release": "locks", "lock list": "locks",
    "lock run": "lock_run",
    "reserve add": "reserving", "reserve list": "reserving", "reserve release": "reserving",
    "reserve check": "reserving", "reserve install-hook": "reserving",
    "publish": "topics", "subscribe": "topics", "topic read": "topics", "topic last": "topics",
    "tx": "tx",
    "audit": "audit", "bench": "bench", "shellenv": "shell", "shell": "shell",
    "queue push": "queues", "queue pop": "queues", "queue done": "queues", "queue fail": "queues",
    "queue retry": "queues", "queue drop": "queues", "queue peek": "queues", "queue dead": "queues",
    "queue list": "queues",
    "task add": "tasks", "task depend": "tasks", "task assign": "tasks", "task claim": "tasks", "task next": "tasks",
    "task start": "tasks", "task progress": "tasks", "task block": "tasks", "task unblock": "tasks",
    "task release": "tasks", "task done": "tasks", "task show": "tasks", "task list": "tasks", "task board": "tasks",
    "hook": "hook",
    "halt": "control", "unhalt": "control", "engage": "control",
    "init": "setup", "config": "setup", "trust": "setup", "doctor": "setup", "demo": "setup",
    "firebase rules": "firebase",
    "migrate": "migrate",
    "install": "install", "uninstall": "install",
    "hub start": "hub", "hub stop": "hub", "hub restart": "hub", "hub status": "hub", "hub logs": "hub",
    "hub keys make": "keys", "hub keys list": "keys", "hub keys revoke": "keys",
    "completion bash": "completion", "completion zsh": "completion",
}  # fmt: skip
_MOST_SHOWN = 500  # characters of what could not be printed
STARTING = ("hub start", "hub restart")
GROUPS = {verb.rpartition(" ")[0] for verb in VERBS if " " in verb}


TOO_MANY = (EMFILE, ENFILE)  # files are open


class Line:
    """A command that is being run."""

    def __init__(self, argv: list[str], io: "Io") -> None:
        self.io = io
        self.words = Words(argv)
        self.is_quiet = argv[:1] == ["hook"] and not {"-v", "--verbose"}.intersection(argv)  # whatever goes wrong
        self._context: Context | None = None
        self._has_changed = False  # anything, so that it must not be asked for again

    @property
    def json(self) -> bool:
        return "--json" in self.words.globals

    @property
    def context(self) -> "Context":
        if self._context is None:
            self._context = self.io.context(self.words.globals)
            self._context.progress = self.progress
        return self._context

    @property
    def hub_port(self) -> "int | None":
        """The port that the hub is to have; None: any."""
        given = self.words.globals.get("--hub-port")
        if given is None:
            return int(self.context.settings["hub_port"]) if self.io.env.get("ACCORD_HUB_PORT") else None
        from accord.operations.kinds import READERS

        try:
            port: int = READERS["Port"](given)  # type: ignore[assignment]
        except ValueError as error:
            raise self.words.wrong(f"--hub-port {error}") from None
        return port

    def check_hub_port(self) -> None:
        """Refuse a port that is not the running hub's, whatever is asked; who starts one says so itself."""
        if "--hub-port" not in self.words.globals and not self.io.env.get("ACCORD_HUB_PORT"):
            return
        port = self.hub_port
        if self.words.verb in STARTING:
            return
        from accord.services.hub import check_port, status_when_ready

        found = self.context.hub.status()
        if found["running"] and not found["pid"]:
            found = status_when_ready(self.context.home.path)
        if not found.get("stopping"):
            check_port(found, port)

    def call(self, operation: str, params: "Mapping[str, object]") -> "dict[str, Any]":
        from accord.operations import call, find

        try:
            result = call(self.context, operation, params)
            self._has_changed = self._has_changed or find(operation).changes  # type: ignore[attr-defined]
            return result
        except errors.Usage as error:
            raise self.words.wrong(self._as_typed(str(error.details["reason"]))) from None

    def _as_typed(self, reason: str) -> str:
        """Beginning with the option, where it begins with the parameter that this one is."""
        param, _, rest = reason.partition(" ")
        verb = find_verb(self.words.verb)
        options = [option for option, own in verb.options().items() if own == param and param not in verb.positional]
        return f"{options[0]} {rest}" if options else reason

    def value(self, words: "Mapping[str, Any]", name: str, kind: str, default: object) -> "Any":
        """What an option says that belongs to the verb alone."""
        from accord.operations.kinds import READERS

        try:
            return READERS[kind](words.get(name, default))
        except ValueError as error:
            raise self.words.wrong(f"--{name} {error}") from None

    def progress(self, done: int, total: int, what: str = "") -> None:
        """A bar that is drawn over itself, and gone when all is done, where a person looks; `what` is done now."""
        if self.io.is_terminal(2):
            from accord.cli.show import bar, one_line

            more = f"  {one_line(what)[:60]}" if what else ""
            self.io.err(f"\r{bar(done, total)}{more}\x1b[K" if done < total else "\r\x1b[K")

    def answer(self, result: "Mapping[str, object]", text: "Callable[[], str]", styled: bool = False) -> None:
        """Print what came of it, for a program or for a person; text with styles is safe already."""
        shown = as_json({"status": "ok", **result}) if self.json else text() if styled else safe(text())
        try:
            self.io.out(shown)
        except errors.OutputClosed as error:
            if not self._has_changed:
                raise
            raise not_printed(error, shown) from None


def run(argv: list[str], io: "Io") -> int:
    """Run a command; its exit code."""
    line = Line(argv, io)
    try:
        if argv[:1] != ["halt"]:  # which cannot fail
            io.check_output()
        return _run(line)
    except (Exception, KeyboardInterrupt) as failure:
        return report(failure, line)


def not_printed(error: errors.AccordError, text: str) -> errors.AccordError:
    """For what was done, and must not be done again for want of a word of it."""
    return errors.NotPrinted(reason=error.details["reason"], text=text.strip()[:_MOST_SHOWN])


def changes(argv: list[str]) -> bool:
    """Whether a command that went well has changed something."""
    from accord.operations import find

    words = Words(argv)
    words.take_verb(VERBS, GROUPS)
    operation = find_verb(words.verb).operation if words.verb in VERBS else ""
    return bool(operation) and find(operation).changes  # type: ignore[attr-defined]


def find_verb(name: str) -> "Verb":
    module = f"accord.cli.verbs.{VERBS[name]}"
    __import__(module)
    verb: Verb = sys.modules[module].VERBS[name]
    return verb


def safe(text: str) -> str:
    """Text in which nothing is a command to a terminal."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from accord.cli.terminal import safe

    return safe(text)


def as_json(value: object) -> str:
    """JSON on one line, in which nothing is a command to a terminal."""
    text = jsontext.dumps(value)
    if not text.isascii() or "\x7f" in text:
        from accord.cli.terminal import CONTROLS

        text = text.translate(CONTROLS)
    return text + "\n"


def _run(line: Line) -> int:
    words = line.words
    if words.left[:1] in (["help"], ["version"]):
        words.left = [*words.left[1:], f"--{words.left[0]}"]
    words.take_verb(VERBS, GROUPS)
    if not words.verb or words.verb in GROUPS:
        return _without_verb(line)
    verb = find_verb(words.verb)
    params = words.read(verb)
    if "--help" in words.globals:
        from accord.cli.help import of_verb

        line.io.out(of_verb(words.verb, verb))
        return 0
    if "--version" in words.globals:
        return _version(line)
    if not verb.any_words:
        line.check_hub_port()
    return verb.run(line, params) or 0


def _without_verb(line: Line) -> int:
    if "--version" in line.words.globals:
        return _version(line)
    from accord.cli.help import overview

    line.io.out(overview(line.words.verb))
    return 0 if "--help" in line.words.globals else 1


def _version(line: Line) -> int:
    from accord import __version__

    line.answer({"version": __version__}, lambda: f"accord {__version__}\n")
    return 0


def report(failure: BaseException, line: Line) -> int:
    """Say what went wrong; the exit code."""
    if line.is_quiet and not isinstance(failure, errors.Usage):
        return 0
    if isinstance(failure, errors.AccordError):
        return _report(failure, line)
    if isinstance(failure, KeyboardInterrupt):
        return _report(errors.Interrupted(), line)
    if isinstance(failure, OSError) and failure.errno in TOO_MANY:
        return _report(errors.TooManyFiles(), line)
    if "--verbose" in line.words.globals:
        import traceback

        line.io.err("".join(traceback.format_exception(failure)))
    return _report(errors.AccordError(), line)


def _report(error: errors.AccordError, line: Line) -> int:
    # A command that was not read to its end may have asked for JSON there.
    if line.json or "--json" in line.words.left:
        from accord.errors.table import to_json

        found: Any = to_json(error)
        code, details = found["data"].values()
        shown = {"status": "error", "error_code": code, "error_message": found["message"], "details": details}
        try:
            line.io.out(as_json(shown))
            return error.exit
        except errors.OutputClosed:
            pass  # who asked for JSON is told in the other way than not at all
    line.io.err(f"accord: {safe(str(error))} [{error.code}]\n")
    return error.exit
