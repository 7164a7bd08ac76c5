"""The hub's process, seen from outside: is there one, starting it, stopping it.

hub/lock            held by the hub for as long as it lives; holds what it says of itself
hub/start           held from before somebody looks whether there is a hub until theirs is ready
hub/socket          where it is reached
hub/log.jsonl       what happened in it

Whether a hub runs is whether the lock is held, and nothing else: a hub that was killed leaves nothing to mislead.
"""

import os
import signal
import sys
import time

from accord import errors, jsontext, place, platform
from accord.store.local import folder
from accord.store.local.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

READY_WITHIN_S = 10.0  # unless the settings say otherwise
STOP_WITHIN_S = 10.0

ANSWER_WITHIN_S = 2.0  # when it is asked whether it is there

_STARTED_S = 5.0  # when many want to start it, who all ask
_GRACE_S = 2.0  # after its deadline, for a hub to end by itself
_LOOK_S = 0.5  # for what is only good to know
_MOST_BYTES = 4096


class HubFiles:
    """The files of one home's hub."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.folder = f"{home}/{place.HUB}"
        self.lock = f"{self.folder}/lock"
        self.start = f"{self.folder}/start"
        self.log = f"{self.folder}/log.jsonl"
        self.socket = place.socket_path(home)


class Outside:
    """The hub of a home, for those who are not in it."""

    def __init__(self, home: str) -> None:
        self._home = home

    def status(self) -> "dict[str, Any]":
        return status(self._home)

    def answers(self, within_s: float = ANSWER_WITHIN_S) -> bool:
        return self._ask("hub.ping", within_s) is not None

    def stop(self, deadline_s: float) -> bool:
        return stop(self._home, deadline_s)

    def listeners(self) -> "dict[str, dict[str, Any]]":
        """As the hub tells; none where there is no hub, or it does not answer."""
        return self._ask("hub.listeners", _LOOK_S) or {}

    def listener(self, name: str) -> "dict[str, Any] | None":
        return self.listeners().get(name)

    def _ask(self, method: str, timeout_s: float) -> "dict[str, Any] | None":
        """The hub's answer; None where there is no hub, or it says nothing for so long."""
        from accord.client import Connection

        try:
            connection = Connection(place.socket_path(self._home), timeout_s)
        except OSError:
            return None
        try:
            return connection.call(method, {}, timeout_s)
        except (OSError, errors.AccordError):
            return None
        finally:
            connection.close()


def status(home: str) -> "dict[str, Any]":
    """What the hub says of itself, with `running`; `stopping` once it takes nothing more."""
    files = HubFiles(home)
    nothing = {"running": False, "pid": None, "port": None, "http_port": None, "socket": None, "version": None}
    try:
        fd = os.open(files.lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return {**nothing, "home": home}
    except OSError as error:
        raise folder.refusal(error, files.lock) from None
    try:
        if not platform.is_held(fd):
            return {**nothing, "home": home}
        said = os.pread(fd, _MOST_BYTES, 0)
    finally:
        os.close(fd)
    return {"running": True, **_read(said), "home": home}


def start(home: str, options: "Mapping[str, int]", timeout_s: float = READY_WITHIN_S) -> "dict[str, Any]":
    """Start a hub unless there is one; what it says of itself, with `started`.

    Of any number who ask at once one starts it, and the others wait until it is ready.
    """
    files = HubFiles(home)
    folder.make_folder(files.folder)
    gate = Gate(files.start)
    try:
        gate.acquire(timeout_s)
        try:
            found = _settled(home, timeout_s)
            if not found["running"]:
                _spawn(files, gate, options, timeout_s)
                return {"started": True, **status(home)}
        finally:
            gate.release()
    finally:
        gate.close()
    check_port(found, options.get("port"))
    if not Outside(home).answers(_STARTED_S):
        now = status(home)
        if now["pid"] == found["pid"] and not now.get("stopping"):
            raise errors.HubSilent(pid=found["pid"], timeout_seconds=_STARTED_S)
        return start(home, options, timeout_s)  # it went away just now
    return {"started": False, **found}


def status_when_ready(home: str, timeout_s: float = READY_WITHIN_S) -> "dict[str, Any]":
    """As `status`, after a hub that is just being started is there."""
    found = status(home)
    if found["running"] and not found["pid"]:
        gate = Gate(HubFiles(home).start)
        try:
            gate.acquire(timeout_s)
            gate.release()
        finally:
            gate.close()
        found = status(home)
    return found


def _settled(home: str, timeout_s: float) -> "dict[str, Any]":
    """As `status`, after a hub that is just stopping is gone."""
    found = status(home)
    if found.get("stopping") and platform.wait_for_end(found["pid"], timeout_s):
        found = status(home)
    if found.get("stopping"):
        reason = f"the one before it, process {found['pid']}, did not end within {timeout_s:g} s"
        raise errors.HubFailed(reason=reason, timeout_seconds=timeout_s)
    return found


def stop(home: str, deadline_s: float) -> bool:
    """Stop the hub if there is one, and wait until it is gone; whether there was one."""
    found = status_when_ready(home)
    pid = found["pid"]
    if not found["running"] or not pid:
        return False
    _ask_to_stop(home, pid, deadline_s)
    if not platform.wait_for_end(pid, deadline_s + _GRACE_S) and status(home)["pid"] == pid:
        _signal(home, pid, signal.SIGKILL)  # it is stuck, and loses nothing that was acknowledged
        platform.wait_for_end(pid, _GRACE_S)
    return True


def check_port(found: "Mapping[str, Any]", port: "int | None") -> None:
    """Refuse a port that is not the running hub's."""
    if port and found["running"] and found["port"] != port:
        there = f" on port {port}; one runs on port {found['port']}, which is used when no port is given"
        raise errors.HubNotRunning(
            home=found["home"], there=there, command=f"restart --port {port}", port=found["port"]
        )


def _ask_to_stop(home: str, pid: int, deadline_s: float) -> None:
    """Over its socket, which tells it the deadline; a hub that does not answer gets a signal."""
    from accord import proof
    from accord.client import Connection
    from accord.home import Home

    try:
        connection = Connection(place.socket_path(home), _GRACE_S)
        try:
            shown = proof.make(Home(home).operator_token(), "session.open hub.stop")
            connection.call("session.open", {"operator": shown, "purpose": "hub.stop"}, _GRACE_S)
            connection.call("hub.stop", {"deadline": deadline_s}, _GRACE_S)
        finally:
            connection.close()
    except (OSError, errors.AccordError):
        _signal(home, pid, signal.SIGTERM)
        _signal(home, pid, signal.SIGCONT)  # one that was stopped hears nothing before


def _signal(home: str, pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise errors.HubOfAnother(home=home, pid=pid) from None


def _spawn(files: HubFiles, gate: Gate, options: "Mapping[str, int]", timeout_s: float) -> None:
    """Start the process and wait for its word. It inherits the gate: should we die, nobody starts a second one."""
    import subprocess

    told, tell = os.pipe()
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    crash = folder.open_private(f"{files.folder}/crash.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "accord.daemon",
                files.home,
                f"--told-by={tell}",
                f"--gate={gate.fileno()}",
                *words,
            ],
            stdin=subprocess.DEVNULL,
            stdout=crash,
            stderr=crash,
            env={name: value for name, value in os.environ.items() if name not in ("ACCORD_AGENT", "ACCORD_TOKEN")},
            pass_fds=(tell, gate.fileno()),
            start_new_session=True,
        )
    finally:
        os.close(tell)
        os.close(crash)
    try:
        word = _word(told, time.monotonic() + timeout_s)
    finally:
        os.close(told)
    if word is None:
        if process.poll() is None:
            reason = f"it did not say that it is ready within {timeout_s:g} s"
            raise errors.HubFailed(reason=reason, timeout_seconds=timeout_s)
        raise errors.HubFailed(reason=_last_line(files))
    if "error" in word:
        from accord.errors.table import from_json

        raise from_json(word["error"])
    process.returncode = 0  # it lives on, and is nobody's child to wait for


def _word(fd: int, deadline: float) -> "dict[str, Any] | None":
    """What the new hub says when it is ready or gives up; None when it says nothing."""
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    said = b""
    while not said.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            return None
        piece = os.read(fd, _MOST_BYTES)
        if not piece:
            return None
        said += piece
    return _read(said)


def _read(text: bytes) -> "dict[str, Any]":
    try:
        found = jsontext.loads(text)
    except errors.InvalidJson:
        found = None
    empty = {"pid": None, "port": None, "http_port": None, "socket": None, "version": None}
    return found if isinstance(found, dict) else empty


def _last_line(files: HubFiles) -> str:
    try:
        with open(f"{files.folder}/crash.txt", "rb") as file:
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "it ended without a word"
