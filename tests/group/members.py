"""Users of one machine, as processes with a uid and groups of their own: two share a home, and one is a stranger."""

import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.users import TIMEOUT_S, Done
from tests.hub.hubs import wait_until
from tests.robustness.homes import ROOT

TEAM = 61_000  # the group of ann and ben
HELLO = ("send", "--from", "ann", "--to", "ben", "--message", "hello")


class Process:
    """One process of a user, on its way or at its end."""

    def __init__(self, files: str) -> None:
        self._files = files

    @property
    def pid(self) -> int:
        return int(wait_until(lambda: self._read("pid"), "its pid"))

    def done(self) -> Done:
        code = int(wait_until(lambda: self._read("code"), "its end", 2 * TIMEOUT_S))
        found = Done(code, self._read("out"), self._read("err"))
        assert "Traceback" not in found.err, found.err
        return found

    def said(self) -> str:
        return self._read("out")

    def kill(self) -> Done:
        if not self._read("code"):
            os.kill(self.pid, signal.SIGKILL)
        return self.done()

    def _read(self, name: str) -> str:
        path = Path(f"{self._files}.{name}")
        return path.read_text() if path.exists() else ""


class Forks:
    """The process from which those of all users come."""

    def __init__(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(Path(__file__).with_name("forks.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"

    def ask(self, what: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


class Machine:
    """Where these users live: each has a folder, and there is one for a home that they share."""

    def __init__(self, folder: Path, forks: "Forks") -> None:
        self.folder = folder
        self._forks = forks
        self.home = folder / "srv" / "accord"
        self.home.parent.mkdir(mode=0o777)
        self.home.parent.chmod(0o777)
        self._numbers = itertools.count()
        self._notes = folder / "notes"
        self._notes.mkdir(mode=0o700)
        self.ann = Member(self, "ann", 61_001, [TEAM])
        self.ben = Member(self, "ben", 61_002, [TEAM])
        self.eve = Member(self, "eve", 61_003, [])

    def start(self, what: str, words: tuple[str, ...], **more: Any) -> Process:
        files = str(self._notes / str(next(self._numbers)))
        self._forks.ask({"what": what, "words": words, "files": files, **more})
        return Process(files)

    def settings(self, text: str) -> None:
        """What ann, whose home it is, sets for all."""
        path = self.home / "accord.yml"
        path.write_text(text)
        path.chmod(0o644)
        os.chown(path, self.ann.uid, TEAM)


class Member:
    def __init__(self, machine: Machine, name: str, uid: int, groups: list[int]) -> None:
        self._machine = machine
        self.uid = uid
        self.groups = groups
        self.folder = machine.folder / name
        self.folder.mkdir(mode=0o700)
        os.chown(self.folder, uid, uid)
        self.env = {"HOME": str(self.folder), "ACCORD_HOME": str(machine.home), "PATH": "/usr/bin:/bin"}
        self.umask = 0o077

    def start(self, *words: str, what: str = "accord", **env: str) -> Process:
        more = {"uid": self.uid, "groups": self.groups, "env": {**self.env, **env}, "umask": self.umask}
        return self._machine.start(what, words, **more)

    def run(self, *words: str, what: str = "accord", **env: str) -> Done:
        return self.start(*words, what=what, **env).done()

    def json(self, *words: str, **env: str) -> Any:
        done = self.run("--json", *words, **env)
        assert (done.code, done.err) == (0, ""), done
        return done.json

    def refused(self, *words: str, **env: str) -> str:
        """The code of the error that a command ends with."""
        done = self.run("--json", *words, **env)
        assert done.code, done
        return done.error

    @contextmanager
    def hub(self) -> Iterator[Process]:
        """A hub that this user runs."""
        process = self.start(str(self._machine.home), "--http-port=0", what="hub")
        lock = self._machine.home / "hub/lock"
        try:
            wait_until(lambda: lock.exists() and str(process.pid) in lock.read_text(), "a hub")
            yield process
        finally:
            process.kill()

    def asks(self, method: str, params: dict[str, Any], **shown: str) -> Any:
        """What the hub answers to a request of this user: a result or the code of an error; "" where nobody answers."""
        done = self.run(str(self._machine.home), json.dumps(shown), method, json.dumps(params), what=ASK)
        assert done.code == 0, done
        return json.loads(done.out)


ASK = """
import json, sys
from accord import errors, place
from accord.client import Connection
home, shown, method, params = sys.argv[1:]
try:
    connection = Connection(place.socket_path(home), 10)
    connection.call("session.open", json.loads(shown), 10)
    print(json.dumps(connection.call(method, json.loads(params), 10)))
except errors.AccordError as error:
    print(json.dumps(error.code))
except OSError:
    print('""')
"""


@contextmanager
def machine(forks: Forks) -> Iterator[Machine]:
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=memory if memory.is_dir() else None))
    folder.chmod(0o755)
    try:
        yield Machine(folder, forks)
    finally:
        shutil.rmtree(folder)


def modes(home: Path) -> dict[str, str]:
    """Of all that is in it."""
    return {str(path.relative_to(home)): stat.filemode(path.lstat().st_mode) for path in home.rglob("*")}
