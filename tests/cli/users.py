"""Somebody who runs the real `accord`, with a home, a PATH and a working directory that nobody else uses."""

import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from accord.errors import AccordError, table

ACCORD = str(Path(sys.executable).parent / "accord")
NOBODY = 65534
INTERRUPTED = 130

# All that a command may end with: it went well, help was shown for want of a verb, or one of the errors. Not INTERNAL,
# nor those that only a program can make, by using a store that it closed.
EXIT_CODES = {0, 1, INTERRUPTED} | {
    kind.exit for kind in vars(table).values() if isinstance(kind, type) and issubclass(kind, AccordError)
} - {AccordError.exit}
TIMEOUT_S = 20

# As another user, who may not reach this interpreter's own files: all that commands use is imported before.
AS_NOBODY = [sys.executable, "-c", """
import _blake2, difflib, importlib, os, pkgutil, select, sys, traceback, yaml
import accord, accord.cli, accord.cli.main
for found in pkgutil.walk_packages(accord.__path__, "accord."):
    if found.name.split(".")[1] not in ("testing", "demo", "api", "__main__", "doors", "hub"):
        importlib.import_module(found.name)
user = int(sys.argv.pop(1))
os.setgroups([])
os.setgid(user)
os.setuid(user)
accord.cli.main.main()
"""]  # fmt: skip


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The code of the error that was reported, to a program or to a person."""
        return str(self.json["error_code"]) if not self.err else self.err.rpartition("[")[2].rstrip("]\n")


class User:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".accord"
        self.work = folder / "work"
        self.work.mkdir()
        self.env = {
            "HOME": str(folder),
            "ACCORD_HOME": str(self.home),
            "PATH": f"{Path(ACCORD).parent}:/usr/bin:/bin",
        }

    def run(
        self,
        *words: str | bytes,
        stdin: bytes = b"",
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        command: tuple[str, ...] | list[str] = (ACCORD,),
        umask: int = -1,
    ) -> Done:
        """Run a command to its end; a variable that is None in `env` is not set."""
        done = subprocess.run(
            [*command, *words],
            input=stdin or None,
            stdin=None if stdin else subprocess.DEVNULL,
            capture_output=True,
            env=self._env(env),
            cwd=cwd or self.work,
            umask=umask,
            timeout=TIMEOUT_S,
            check=False,
        )
        found = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in found.err, found.err
        return found

    def json(self, *words: str | bytes, env: Mapping[str, str | None] | None = None) -> Any:
        """What a command that goes well answers."""
        done = self.run("--json", *words, env=env)
        assert (done.code, done.err) == (0, ""), done
        return done.json

    def as_nobody(
        self, *words: str, env: Mapping[str, str | None] | None = None, user: int = NOBODY, umask: int = -1
    ) -> Done:
        return self.run(str(user), *words, env=env, command=AS_NOBODY, umask=umask)

    def start(self, *words: str, out: int = subprocess.PIPE, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [ACCORD, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            env=self._env(more.pop("env", None)),
            cwd=self.work,
            **more,
        )

    def at_terminal(
        self, *words: str, env: Mapping[str, str | None] | None = None, width: int = 0
    ) -> tuple[int, bytes]:
        """Run a command at a terminal of its own; its exit code, and every byte that reached the terminal."""
        environment = {"TERM": "xterm", **self._env(env)}
        pid, fd = pty.fork()
        if pid == 0:
            try:
                os.chdir(self.work)
                termios.tcsetwinsize(0, (24, width))
                os.execve(ACCORD, [ACCORD, *words], environment)
            finally:
                os._exit(99)
        signal.alarm(TIMEOUT_S)
        screen = read_all(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        signal.alarm(0)
        return code, screen

    def _env(self, changes: Mapping[str, str | None] | None) -> dict[str, str]:
        return {name: value for name, value in {**self.env, **(changes or {})}.items() if value is not None}


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder, with what is in the files."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def read_all(terminal: int) -> bytes:
    """What is printed at a terminal until nobody has it open."""
    screen = b""
    try:
        while piece := os.read(terminal, 65536):
            screen += piece
    except OSError:
        pass  # as Linux says that it is gone
    os.close(terminal)
    return screen
