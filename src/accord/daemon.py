"""The hub's process: it joins the hub and its doors, and ends when it is told to.

python -m accord.daemon HOME [--port=PORT] [--http-port=PORT] [--json=1]

`accord hub start` starts it so, and waits for its word on a pipe (`--told-by`) with the start held (`--gate`).
"""

import asyncio
import gc
import importlib
import os
import pkgutil
import resource
import signal
import sys
import time
from typing import Any

from accord import errors, jsontext, operations, place, platform
from accord.cli.run import VERBS, find_verb
from accord.cli.verbs.hub import where
from accord.doors import http, unix, zmq
from accord.errors.table import to_json
from accord.home import Home
from accord.hub.core import Hub
from accord.hub.feeds import HEARTBEAT_S
from accord.hub.log import Log
from accord.services.hub import READY_WITHIN_S, HubFiles
from accord.store.local import folder
from accord.store.local.gate import Gate

TICK_S = 1.0
# Where modules are that are imported when they are needed.
_LATE = ("cli", "errors", "hub", "model", "operations", "services", "settings", "store", "store.local", "store.wrap")

FILES = 8192  # that may be open at once, where the machine allows it


def main(words: list[str]) -> int:
    options = {
        name.lstrip("-").replace("-", "_"): int(value) for name, _, value in (w.partition("=") for w in words[1:])
    }
    home = Home(words[0])
    _allow_files()
    daemon = Daemon(home, options)
    try:
        daemon.take_home()
    except errors.AccordError as error:
        daemon.say({"error": to_json(error)})
        return error.exit
    return daemon.run()


def _allow_files() -> None:
    """Each who is connected is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Daemon:
    def __init__(self, home: Home, options: dict[str, int]) -> None:
        self._home = home
        self._cwd = _leave_folder()
        self._options = options
        self._files = HubFiles(home.path)
        self._told_by = options.get("told_by", -1)
        self._gate_fd = options.get("gate", -1)
        self._gate: Gate | None = None
        self._log = Log(self._files.log)
        self._beaten_at = 0.0

    def take_home(self) -> None:
        """Hold the home's lock for as long as this process lives; one that was started by hand waits its turn."""
        self._home.make()
        self._home.operator_token()  # made when there is none, so that callers have it to show
        folder.make_folder(self._files.folder)
        if self._gate_fd < 0:
            self._gate = Gate(self._files.start)
            self._gate.acquire(READY_WITHIN_S)
        self._lock = folder.open_private(self._files.lock)
        if not platform.hold(self._lock):
            raise errors.HubFailed(reason="another one runs in this home")
        os.ftruncate(self._lock, 0)

    def run(self) -> int:
        try:
            import uvloop

            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(self._serve())
        except errors.AccordError as error:
            os.close(self._lock)  # before others look
            self.say({"error": to_json(error)})
            self._log.error("not_started", error_code=error.code, reason=str(error))
            return error.exit

    async def _serve(self) -> int:
        hub = Hub(self._home, place.user_home(os.environ), self._log, self._cwd)
        doors = await self._open_doors(hub)
        self._hear_signals(hub)
        self._note(hub.status())
        self.say({"started": True, **hub.status()})
        _load_commands()
        for door in doors:
            if isinstance(door, http.Door):
                door.prepare()
        _collect_seldom()
        self._log.info("started", **hub.status())
        ticking = hub.loop.create_task(self._tick(hub, doors))
        await hub.stopping.wait()
        await self._end(hub, doors, ticking)
        return 0

    async def _open_doors(self, hub: Hub) -> list[Any]:
        # The socket comes last, so that a port that is taken leaves none behind.
        ports = self._options.get("port"), self._options.get("http_port")
        doors: list[Any] = [http.Door(hub, ports[1]), unix.Door(hub)]
        if self._home.is_own():
            doors.insert(0, zmq.Door(hub, ports[0]))  # whose keys are the owner's
        elif ports[0] is not None:
            raise errors.HubFailed(reason="only the owner of the home has the keys for a port")
        for door in doors:
            await door.open()
        return doors

    def _hear_signals(self, hub: Hub) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            hub.loop.add_signal_handler(number, hub.stopping.set)
        hub.loop.add_signal_handler(signal.SIGHUP, hub.reload)
        hub.loop.add_signal_handler(signal.SIGUSR1, lambda: self._log.info("statistics", **hub.statistics()))

    async def _tick(self, hub: Hub, doors: list[Any]) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self._look_after(hub, doors, time.monotonic())
            except Exception as error:
                hub.failed("tick", error)

    def _look_after(self, hub: Hub, doors: list[Any], now: float) -> None:
        """What is to be done once a second."""
        if not self._has_home():
            hub.stopping.set()
        for door in doors:
            door.sweep(now)
        hub.feeds.look_after()
        if now - self._beaten_at >= HEARTBEAT_S:
            self._beaten_at = now
            hub.feeds.tell_all("hub.alive", {})

    def _has_home(self) -> bool:
        """Whether others that look for a hub in this home find this one: somebody may have removed the home."""
        try:
            return os.path.samestat(os.stat(self._files.lock), os.fstat(self._lock))
        except OSError:
            return False

    async def _end(self, hub: Hub, doors: list[Any], ticking: "asyncio.Task[None]") -> None:
        """Accept nothing more, finish what was accepted, tell those who listen, and go."""
        deadline = time.monotonic() + hub.stop_within_s
        self._note({**hub.status(), "stopping": True})
        self._log.info("stopping", within_s=hub.stop_within_s)
        for door in doors:
            door.stop_accepting()
        in_time = await hub.drain(deadline)
        ticking.cancel()
        hub.feeds.tell_all("hub.stopping", {})
        for door in doors:
            door.close()
        await asyncio.sleep(0)
        self._log.info("stopped", in_time=in_time)
        hub.close(max(0.1, deadline - time.monotonic()))

    def _note(self, about: dict[str, Any]) -> None:
        """What others find in the lock; each is longer than the one before."""
        os.pwrite(self._lock, jsontext.dumps(about).encode() + b"\n", 0)

    def say(self, word: dict[str, Any]) -> None:
        """Tell whoever started this, and let others look."""
        if self._told_by >= 0:
            try:
                os.write(self._told_by, jsontext.dumps(word).encode() + b"\n")
            except BrokenPipeError:
                pass  # whoever started it is gone, and others wait for it
            os.close(self._told_by)
            self._told_by = -1
        else:
            self._print(word)
        if self._gate_fd >= 0:
            os.close(self._gate_fd)
            self._gate_fd = -1
        if self._gate is not None:
            self._gate.release()
            self._gate.close()
            self._gate = None

    def _print(self, word: dict[str, Any]) -> None:
        """Tell the person, or with --json the program, who started this by hand."""
        wrong = word.get("error")
        if self._options.get("json"):
            about = {**wrong["data"], "error_message": wrong["message"]} if wrong else word
            text = jsontext.dumps({"status": "error" if wrong else "ok", **about}) + "\n"
        elif wrong:
            text = f"accord: {wrong['message']} [{wrong['data']['error_code']}]\n"
        else:
            text = f"started: {where(word)}\n"
        try:
            os.write(2 if wrong and not self._options.get("json") else 1, text.encode())
        except OSError:
            pass  # nobody looks


def _leave_folder() -> str:
    """Where this was started, which is where relative paths of the environment are; it shall not be held."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""
    os.chdir("/")
    return folder


def _load_commands() -> None:
    """All of them, now: when they are needed, another version of accord may lie on the disk."""
    for verb in VERBS:
        find_verb(verb)
    for group, words in operations.NAMES.items():
        for word in words:
            operations.find(f"{group}.{word}")
    packages = [f"accord.{name}" for name in _LATE]
    packages += [name for name in sys.modules if name.startswith("accord.store.engines.")]
    for package in packages:
        for found in pkgutil.iter_modules(getattr(importlib.import_module(package), "__path__", ())):
            if not found.ispkg:
                importlib.import_module(f"{package}.{found.name}")
    for module in ("accord.cipherkey", "accord.proof", "accord.store.engines.firebase.rules", "difflib", "traceback"):
        importlib.import_module(module)


def _collect_seldom() -> None:
    """What there is now stays; looking through it again and again would cost more than a request does."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code)  # threads that are stuck shall not keep it
