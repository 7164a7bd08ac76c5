"""Hubs for tests: each is a process, started when it is first needed, and killed at the end, which must do no harm."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord import place
from accord.client import Connection
from accord.services.hub import status

TIMEOUT_S = 20.0
_NOT_FOR_HUBS = ("ACCORD_AGENT", "ACCORD_TOKEN")


class Hub:
    """The hub of one home."""

    def __init__(self, home: Path, env: Mapping[str, str], **more: str) -> None:
        self.home = home
        self._env = env  # as it is when the hub starts
        self._more = more
        self._process: subprocess.Popen[bytes] | None = None
        self.callers: list[Any] = []  # closed with it

    @property
    def pid(self) -> int:
        return self.start().pid

    def start(self) -> "subprocess.Popen[bytes]":
        """The process, which can be reached when this returns."""
        if self._process is not None:
            return self._process
        told, tell = os.pipe()
        env = {name: value for name, value in {**self._env, **self._more}.items() if name not in _NOT_FOR_HUBS}
        command = [sys.executable, "-m", "accord.daemon", str(self.home), f"--told-by={tell}"]
        with (self.home.parent / "hub-says").open("wb") as says:
            self._process = subprocess.Popen(
                command, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=says, stderr=says, pass_fds=(tell,)
            )
        os.close(tell)
        with open(told, "rb") as words:
            word = words.readline()
        assert b'"started"' in word, word + (self.home.parent / "hub-says").read_bytes()
        return self._process

    def close(self) -> None:
        for caller in self.callers:
            caller.close()
        self.callers.clear()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def connect(self) -> Connection:
        self.start()
        return Connection(place.socket_path(str(self.home)), TIMEOUT_S)

    def operator(self) -> Connection:
        """A connection that may do everything."""
        connection = self.connect()
        connection.call("session.open", {"operator": self.operator_token()}, TIMEOUT_S)
        return connection

    def status(self) -> dict[str, Any]:
        """What it says of itself, with its ports."""
        self.start()
        return status(str(self.home))

    def operator_token(self) -> str:
        return (self.home / "operator/token").read_text().strip()

    def statistics(self) -> dict[str, Any]:
        """What it has counted by now."""
        before = len(self.log("statistics"))
        os.kill(self.pid, signal.SIGUSR1)
        deadline = time.monotonic() + TIMEOUT_S
        while len(found := self.log("statistics")) == before:
            assert time.monotonic() < deadline, "it tells no statistics"
            time.sleep(0.005)
        return found[-1]

    def log(self, event: str) -> list[dict[str, Any]]:
        return logged(self.home, event)


def logged(home: Path, event: str) -> list[dict[str, Any]]:
    """What a hub noted of this kind; nothing yet where it has only just begun."""
    path = home / "hub/log.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""  # it may be writing a line
    lines = [json.loads(line) for line in whole.splitlines()]
    return [line for line in lines if line["event"] == event]
