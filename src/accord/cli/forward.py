"""A command in the hub of its home: it is sent there whole, and what comes back is printed. Most of it imports nothing.

The hub runs the same verb. Where there is no hub, or it is none for this command, or it goes away before anything was
printed, the command is run here; under the same request, so that what the hub did already is not done twice.
"""

import os
from itertools import pairwise

from accord import __version__, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.io import LocalIo
    from accord.client import Connection

SILENCE_S = 2.0  # a hub says once a second that it is still at it

# Verbs, and groups of them, that need their own process, or look at the hub from outside.
HERE = (
    "audit",
    "bench",
    "completion",
    "demo",
    "doc edit",
    "doc export",
    "doc import",
    "doctor",
    "events",
    "hook start",  # writes where its program says
    "hub",
    "install",
    "listen",
    "lock run",
    "mcp",
    "migrate",
    "reserve",
    "shell",
    "shellenv",
    "subscribe",
    "trust",
    "uninstall",
)
_WITH_VALUE = ("--home", "--engine", "--hub-port")
_VARIABLES = ("HOME", "NO_COLOR", "TERM", "CLAUDE_PID")
_KEY = place.KEY_VARIABLE
_SECRETS = (_KEY, place.PASSWORD_VARIABLE, place.OTHER_PASSWORD_VARIABLE)  # told to nobody: the hub has its own


def reach(argv: list[str], io: "LocalIo") -> "Connection | None":
    """The hub, if there is one and this may be a command for it."""
    words, named = _look(argv)
    home = place.home_path(named, io.cwd, io.env)
    path = place.socket_path(os.path.abspath(home)) if io.cwd and os.path.isabs(home) else ""
    if not words or is_here(words) or not io.can_print or not path or not os.path.exists(path):
        return None
    if _names_password(argv):
        return None
    from accord.client import Connection

    try:
        connection = Connection(path, SILENCE_S)
    except OSError:
        return None
    if place.is_shared(os.path.dirname(path)) and not _is_own(connection):
        connection.close()
        return None
    return connection


def _is_own(connection: "Connection") -> bool:
    """Whether this user runs the hub. Another member of the group shall not be shown this one's tokens and files."""
    from accord import platform

    return platform.peer_of(connection.raw)[0] == os.geteuid()


def is_here(words: list[str]) -> bool:
    """Whether a command that starts with these words is one for its own process."""
    return words[0] in HERE or " ".join(words[:2]) in HERE


def run(connection: "Connection", argv: list[str], io: "LocalIo") -> int | None:
    """The exit code of a command that the hub has run; None when it is to be run here."""
    try:
        home = os.path.abspath(place.home_path(_look(argv)[1], io.cwd, io.env))
        return _Command(connection, io, home).run(argv)
    except (Exception, KeyboardInterrupt) as failure:
        from accord.cli.run import Line, report

        return report(failure, Line(argv, io))
    finally:
        connection.close()


class _Command:
    """One command, on its way to the hub and back."""

    def __init__(self, connection: "Connection", io: "LocalIo", home: str) -> None:
        self._connection = connection
        self._io = io
        self._home = home
        self._has_printed = False

    def run(self, argv: list[str]) -> int | None:
        from accord import errors

        self._argv = argv
        try:
            self._connection.send({"jsonrpc": "2.0", "id": 1, "method": "cli.run", "params": self._params(argv)})
            while message := self._connection.receive(SILENCE_S):
                if "method" in message:
                    self._serve(message)
                elif "result" in message:
                    return self._end(message["result"])
                elif not self._has_printed:
                    return None  # GO_LOCAL, or it is too busy
                else:
                    break
            reason = "it ended early"
        except errors.InvalidJson:
            return None  # a word that is no text
        except OSError as error:
            reason = str(error)
        if not self._has_printed:
            return None
        lost = errors.HubLost(reason=reason)
        self._io.err(f"accord: {lost} [{lost.code}]\n")  # with --json too: one object was printed already
        return lost.exit

    def _end(self, result: "dict[str, Any]") -> int:
        code = int(result["exit"])
        try:
            self._write(result["write"])
        except Exception as error:
            from accord.cli.run import changes, not_printed
            from accord.errors import OutputClosed  # which loads all errors: only where there is one

            if not isinstance(error, OutputClosed) or code or not changes(self._argv):
                raise
            raise not_printed(error, "".join(text for fd, text in result["write"] if fd == 1)) from None
        return code

    def _params(self, argv: list[str]) -> "dict[str, Any]":
        import time

        io = self._io
        io.request = f"{int(time.time() * 1000):012x}{os.urandom(10).hex()}"
        return {
            "version": __version__,
            "argv": argv,
            "cwd": io.cwd,
            "env": {name: _told(name, io.env[name]) for name in io.env if _is_told(name)},
            "terminal": [io.is_terminal(fd) for fd in range(3)],
            "width": io.width() if io.is_terminal(1) else 80,
            "request": io.request,
            "project": self._project(),
            "key": self._key(),
            "tokens": self._tokens(),
            "given": self._given(),
        }

    def _given(self) -> "dict[str, Any] | None":
        """What a hook gets on standard input, which the hub would ask for; it says what is wrong with anything else."""
        if _look(self._argv)[0][:1] != ["hook"]:
            return None
        from accord.errors import AccordError

        try:
            return self._io.read_given()
        except AccordError:
            return None

    def _tokens(self) -> dict[str, str]:
        """Those that the hub would ask for, with their files: of whom the command names, who mostly is who acts."""
        words = self._argv
        named = [word for option, word in pairwise(words) if option in ("--from", "--identity")]
        names = {self._io.env.get("ACCORD_AGENT", ""), *named, *_look(words)[0][1:2]}
        paths = [f"{self._home}/agents/{name}.token" for name in names if name.replace("-", "").isalnum()]
        found = {path: _word_in(path) for path in paths}
        return {path: token for path, token in found.items() if token}

    def _proof(self, nonce: object) -> str:
        """That this is the operator, where it is. The token itself is shown to nobody."""
        token = "" if self._io.env.get("ACCORD_AGENT") else _word_in(f"{self._home}/operator/token")
        # Anything else could hold words of another command.
        if not token or not isinstance(nonce, str) or not nonce.isalnum() or len(nonce) > 64:
            return ""
        from accord import proof

        return proof.make(token, proof.of_command(nonce, self._argv))

    def _key(self) -> str:
        """The name of the key in the environment, so that a hub with another one writes nothing with it, or plainly."""
        if _KEY not in self._io.env:
            return ""
        from accord import cipherkey

        return cipherkey.name_of(cipherkey.read(self._io.env[_KEY]))

    def _project(self) -> list[str]:
        """The project's settings: the hub opens no path that its callers name."""
        path = place.project_file(self._io.cwd, self._home)
        if not path:
            return ["", ""]
        with open(path, "rb") as file:
            text = file.read(1 << 20)
        return [path, text.decode("utf-8", "surrogateescape")]

    def _serve(self, message: "dict[str, Any]") -> None:
        """Do what only this process can: print, read, show a token."""
        from accord.errors import AccordError

        id = message.get("id")
        try:
            answer = {"result": self._do(message["method"], message["params"])}
        except AccordError as error:
            if id is None:
                raise
            from accord.errors.table import to_json

            answer = {"error": to_json(error)}
        if id is not None:
            self._connection.send({"jsonrpc": "2.0", "id": id, **answer})

    def _do(self, method: str, params: "dict[str, Any]") -> "dict[str, Any]":
        if method == "cli.write":
            self._write(params["write"])
            return {}
        if method == "cli.token":
            path = os.path.abspath(params["path"])
            inside = path.startswith(f"{self._home}/agents/") and path.endswith(".token")
            return {"token": _word_in(path) if inside else ""}
        if method == "cli.proof":
            return {"proof": self._proof(params["nonce"])}
        if method == "cli.read_input" and self._names("-"):
            return _data(self._io.read_input(params["most"]))
        if method == "cli.read_given" and "hook" in self._argv:
            return {"given": self._io.read_given()}
        if method == "cli.may_take" and "hook" in self._argv:
            self._io.may_take(params["seconds"])
            return {}
        if method == "cli.read_file" and self._names(params["path"]):
            return _data(self._io.read_file(params["path"], params["most"]))
        return {}  # cli.alive, or what the command has not asked for

    def _names(self, path: str) -> bool:
        """Whether the command itself names a file: whoever sits at the socket gets no other."""
        return any(word == path or word.endswith(f"={path}") for word in self._argv)

    def _write(self, pieces: "list[tuple[int, str]]") -> None:
        for fd, text in pieces:
            self._has_printed = True
            if fd == 1:
                self._io.out(text)
            else:
                self._io.err(text)


def _look(argv: list[str]) -> tuple[list[str], str]:
    """The words that are no options, the verb first, and the home that is named.

    The hub looks again; a wrong guess costs a question, and nothing else.
    """
    plain: list[str] = []
    home = ""
    words = iter(argv)
    for word in words:
        if word == "--":
            break
        if word in _WITH_VALUE:
            value = next(words, "")
            home = value if word == "--home" else home
        elif word.startswith("--home="):
            home = word[7:]
        elif word and not word.startswith("-"):
            plain.append(word)
    return plain, home


def _is_told(variable: str) -> bool:
    if variable.startswith("ACCORD_"):
        return variable not in _SECRETS
    return variable in _VARIABLES or variable in place.ENGINE_VARIABLES


def _told(variable: str, value: str) -> str:
    """A store's URL goes without its password: which store is meant can be seen from the rest."""
    return _without_password(value) if variable == "ACCORD_ENGINE" else value


def _names_password(argv: list[str]) -> bool:
    """Whether a password stands where all can see it, which will be refused; the hub need not see it too."""
    pairs = [(word, after) for word, after in pairwise([*argv, ""]) if word.partition("=")[0] == "--engine"]
    urls = [after if word == "--engine" else word[9:] for word, after in pairs]
    return any(_without_password(url) != url for url in urls)


def _without_password(url: str) -> str:
    if "@" not in url and "?" not in url:
        return url
    from accord.store.remote.login import shown

    return shown(url)


def _data(data: bytes) -> "dict[str, Any]":
    from binascii import b2a_base64

    return {"data": b2a_base64(data, newline=False).decode()}


def _word_in(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(200).decode("utf-8", "replace").strip()
    except OSError:
        return ""
