"""The hub: its store, its threads, and how a request gets to its operation and the answer back."""

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from accord import __version__, errors, operations
from accord.home import Home
from accord.hub.feeds import Feeds
from accord.hub.log import Log
from accord.hub.session import Session
from accord.hub.waker import Waker
from accord.hub.witness import Witness
from accord.hub.writer import Writer
from accord.operations.context import Context, engine_of, open_in, tokens_of
from accord.services.halt import Halt, HaltAtLook
from accord.services.hub import HubFiles
from accord.settings import Settings

REQUEST_S = 30.0
MOST_THREADS = 500
MOST_WAITS = 200  # requests that wait for something, each in a thread of its own


class Request:
    """One operation that somebody asked for, on its way through the hub."""

    __slots__ = ("asked", "context", "done", "error", "name", "params", "result")

    def __init__(
        self, context: Context, name: str, params: Mapping[str, object], asked: Any, done: "Callable[[Request], None]"
    ) -> None:
        self.context = context
        self.name = name
        self.params = params
        self.asked = asked  # what the door knows it by
        self.done = done  # called in the loop's thread, with this
        self.result: Any = None
        self.error: BaseException | None = None

    def work(self) -> Any:
        return operations.call(self.context, self.name, self.params)


class Hub:
    def __init__(self, home: Home, user_home: str, log: Log, cwd: str = "") -> None:
        self.home = home
        self._cwd = cwd  # where it was started
        self.files = HubFiles(home.path)
        self.log = log
        self.halt = Halt(user_home)
        self.settings = self._read_settings()
        self.engine = engine_of(home, self.settings)
        self.tokens = tokens_of(home, self.settings)
        self.store = open_in(home, self.settings)
        self.key_name: str = getattr(self.store, "key_name", "")
        self.key_place = self.settings.key_place()
        self.loop = asyncio.get_running_loop()
        self.pool = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="call")
        self._group_halt = HaltAtLook(user_home)
        self.writer = Writer(self.store, self._tell, self._group_halt.look)
        self.feeds = Feeds(self)
        self.witness = Witness(home.path, self.store)
        self.started_at = time.time()
        self.stopping = asyncio.Event()
        self.stop_within_s = 10.0
        self.ports: dict[str, int | None] = {"port": None, "http_port": None}
        self.counts: dict[str, int] = {}  # what happened how often, for the log and the metrics
        self.commands = 0  # that are being run
        self._waits = 0
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.waker = Waker(self, os.geteuid())

    # What operations ask of the hub they run in.

    def answers(self) -> bool:
        return True

    def status(self) -> dict[str, Any]:
        return {
            "running": True,
            "pid": os.getpid(),
            **self.ports,
            "socket": self.files.socket,
            "version": __version__,
            "home": self.home.path,
        }

    def stop(self, deadline_s: float) -> bool:
        self.stop_within_s = deadline_s
        self.loop.call_soon_threadsafe(self.stopping.set)
        return True

    def listeners(self) -> dict[str, dict[str, Any]]:
        return self.feeds.listeners()

    def listener(self, name: str) -> dict[str, Any] | None:
        return self.feeds.listener(name)

    # What the doors ask of it.

    def session(self, pid: int = 0, uid: int | None = None) -> Session:
        return Session(self.home, self.tokens, pid, os.geteuid() if uid is None else uid)

    def context(self, session: Session, writing: bool) -> Context:
        """What an operation gets to see when this caller asks for it."""
        store: Any = self.writer.ledger if writing else self.store
        halt = self._group_halt if writing else self.halt
        context = Context(self.home, halt, self.settings, session, lambda: store)
        context.hub = self
        context.hashes = session.hashes
        context.is_gone = lambda: session.gone or self.stopping.is_set()
        return context

    def call(self, request: Request, waits: bool) -> None:
        """Have an operation done; `request.done` is called when it is."""
        function = operations.find(request.name)
        if waits and self._waits >= MOST_WAITS:
            raise errors.TooBusy(most=MOST_WAITS, what="requests that wait")
        if function.changes and not function.beyond and not waits:  # type: ignore[attr-defined]
            self.writer.submit(request)
        else:
            self.pool.submit(self._run, request, waits)
            self._waits += waits
        self._more_busy()

    def run_in_thread(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        """Do something that may block; `done` is called in the loop's thread."""

        def run() -> None:
            result, error = None, None
            try:
                result = work()
            except BaseException as failure:
                error = failure
            self.loop.call_soon_threadsafe(finish, result, error)

        def finish(result: Any, error: BaseException | None) -> None:
            self._less_busy(1)
            done(result, self.told("", error) if isinstance(error, errors.StoreTooNew) else error)

        self.pool.submit(run)
        self._more_busy()

    def count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def reload(self) -> None:
        """Read the settings anew. Where the store is stays as it is until the hub starts anew."""
        try:
            self.settings = self._read_settings()
            self.log.info("reloaded")
        except errors.AccordError as error:
            self.log.error("not_reloaded", error_code=error.code, reason=str(error))

    async def drain(self, deadline: float) -> bool:
        """Wait until all that was accepted is done; whether it was in time."""
        try:
            await asyncio.wait_for(self._idle.wait(), max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            return False
        return True

    def close(self, timeout_s: float) -> None:
        self.feeds.close()
        self.writer.close(timeout_s)
        self.waker.close(timeout_s)
        self.witness.close(timeout_s)
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.log.close()

    def statistics(self) -> dict[str, Any]:
        return {
            "uptime_s": round(time.time() - self.started_at, 1),
            "threads": threading.active_count(),
            "in_progress": self._busy,
            "listeners": len(self.feeds),
            "commits": self.writer.groups,
            "changes": self.writer.jobs,
            **self.counts,
        }

    def _read_settings(self) -> Settings:
        """The home's own; a hub belongs to no project."""
        settings = Settings(self.home.path, self._cwd, os.environ, {}, ("", b""))
        settings.files()
        return settings

    def _run(self, request: Request, waits: bool) -> None:
        try:
            request.result = request.work()
        except BaseException as error:
            request.error = error
        self.loop.call_soon_threadsafe(self._answer_one, request, waits)

    def _answer_one(self, request: Request, waits: bool) -> None:
        self._waits -= waits
        self._answer([request])

    def _tell(self, group: list[Request]) -> None:
        self.loop.call_soon_threadsafe(self._answer, group)

    def _answer(self, group: list[Request]) -> None:
        for request in group:
            if request.error is not None:
                request.error = self.told(request.name, request.error)
            try:
                request.done(request)
            except Exception as error:  # of one caller, which is nothing to the others
                self.failed(request.name, error)
        self._less_busy(len(group))

    def told(self, where: str, error: BaseException) -> errors.AccordError:
        """What is told of an error. A store that a newer accord has written to is none for this hub any more."""
        if isinstance(error, errors.StoreTooNew):
            self.log.error("outdated")
            self.stopping.set()
            return errors.HubOutdated(path=error.details["path"])
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return errors.TooManyFiles()
        if not isinstance(error, errors.AccordError):
            self.failed(where, error)
            return errors.AccordError()
        return error

    def failed(self, where: str, error: BaseException) -> None:
        """Note what should never happen."""
        import traceback

        self.count("failures")
        frames = traceback.extract_tb(error.__traceback__)
        at = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        self.log.error("failure", where=where, kind=type(error).__name__, at=at)

    def _more_busy(self) -> None:
        self._busy += 1
        self._idle.clear()

    def _less_busy(self, by: int) -> None:
        self._busy -= by
        if not self._busy:
            self._idle.set()
