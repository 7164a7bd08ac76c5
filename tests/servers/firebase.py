"""A Realtime Database for tests, in a process of its own. Real ones are Google's, and no emulator can be had."""

import atexit
import http.client
import itertools
import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


class FirebaseServer:
    """Started, killed and started again at one address; with a folder it keeps what was written."""

    def __init__(self, folder: Path | None = None) -> None:
        self._journal = folder / "firebase.journal" if folder else None
        self._process: subprocess.Popen[bytes] | None = None
        self._places = itertools.count()
        self._owner = os.getpid()
        self.port = 0

    def start(self) -> "FirebaseServer":
        command = [sys.executable, "-m", "tests.servers.firebase_http", "--port", str(self.port)]
        if self._journal:
            command += ["--journal", str(self._journal)]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
        )
        assert self._process.stdout
        self.port = int(self._process.stdout.readline())
        return self

    def __enter__(self) -> "FirebaseServer":
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def kill(self) -> None:
        """As `kill -9` and a power cut do; a server whose data last in memory alone loses them."""
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
            assert self._process.stdout
            self._process.stdout.close()
            self._process = None

    stop = kill

    def restart(self) -> None:
        self.kill()
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url(self, prefix: str = "", **options: str) -> str:
        """A place in it that is empty, as a store's URL."""
        path = prefix or f"place{next(self._places)}"
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"firebase://demo/{path}?url={self.address}{more}"

    # What it is told to do.

    def say(self, do: str, **order: Any) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        try:
            connection.request("POST", "/.control", json.dumps({"do": do, **order}))
            answer = connection.getresponse()
            found = json.loads(answer.read())
            assert answer.status == 200, found
            return found
        finally:
            connection.close()

    def hook(self, kind: str, **facts: Any) -> int:
        """Have something happen to a request to come; see `firebase_hooks`."""
        return int(self.say("hook", kind=kind, **facts))

    def wait(self, hook: int) -> None:
        """Until it has taken hold of a request."""
        assert self.say("wait", hook=hook), "no such request came"

    def has_taken(self, hook: int, working: threading.Thread) -> bool:
        """Whether it took hold of a request before the work was over."""
        while working.is_alive():
            if self.say("reached", hook=hook):
                return True
        return bool(self.say("reached", hook=hook))

    def release(self, hook: int) -> None:
        self.say("release", hook=hook)

    def land(self, hook: int) -> None:
        """Let the late request land now."""
        assert self.say("land", hook=hook)

    def set(self, **settings: Any) -> None:
        self.say("set", **settings)

    def read(self, path: str) -> Any:
        return self.say("read", path=path)

    def write(self, path: str, value: Any) -> None:
        self.say("write", path=path, value=value)

    def requests(self) -> list[tuple[str, str, bool]]:
        """Those since this was asked last: method, path, and whether it was conditional."""
        return [(method, path, conditional) for method, path, conditional in self.say("requests")]


@cache
def firebase_server() -> FirebaseServer:
    """The one that tests of this process share, ended with it."""
    server = FirebaseServer().start()
    atexit.register(server.kill)
    return server
