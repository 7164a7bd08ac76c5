"""A command that is run for somebody, in a process group of its own, which ends when this process does.

The group has the terminal's foreground while it runs, as it would if a shell had started it. Should this process be
killed, a guard ends the group: a fork that waits for the end of a pipe, which only this process holds open.
"""

import os
import select
import signal
import stat
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

KILL_AFTER_S = 5.0
_DEAD_AFTER_S = 1.0  # of what is killed and not reaped by then, nothing runs any more

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LOOK_S = 0.02
_LONGEST_WAIT_S = 3600.0


class Signals:
    """Signals to this process, to be taken one after another: those to be passed on, and that a child changed."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted)
        for number in _FORWARDED:
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
                signal.signal(number, _noted)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # to take the terminal back from the group

    def wait(self, timeout_s: float) -> "Sequence[int]":
        """Those that came, or nothing after so long."""
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        poll.poll(min(max(timeout_s, 0.0), _LONGEST_WAIT_S) * 1000)
        try:
            return os.read(self._out, 100)
        except BlockingIOError:
            return b""

    def wake(self) -> None:
        """End a wait, from another thread."""
        os.write(self._in, bytes([signal.SIGCHLD]))


class Child:
    def __init__(self, words: "Sequence[str]", env: "Mapping[str, str]") -> None:
        """Start it; an OSError when there is no such program."""
        is_piped = stat.S_ISFIFO(os.fstat(1).st_mode)  # to somebody who may need the terminal as well
        self._terminal = _has_foreground() and not is_piped
        self._guard = _guard()  # before the command: this process may be killed as soon as that runs
        try:
            self._process = subprocess.Popen(words, env=env, process_group=0, preexec_fn=self._begin)
        except BaseException:
            self._dismiss_guard()
            raise
        self._group = self._process.pid
        self._code: int | None = None

    def look(self) -> int | None:
        """Take note of what happened to it; its exit code once it ended, 128 and the signal where that ended it."""
        while self._code is None:
            pid, status = os.waitpid(self._group, os.WNOHANG | os.WUNTRACED)
            if not pid:
                break
            if os.WIFSTOPPED(status):
                self._stop_too()
            else:
                code = os.waitstatus_to_exitcode(status)
                self._code = self._process.returncode = code if code >= 0 else 128 - code
                self._give_terminal(os.getpgrp())
        return self._code

    def send(self, number: int) -> None:
        """Signal the whole group."""
        try:
            os.killpg(self._group, number)
        except (ProcessLookupError, PermissionError):
            pass  # nobody is left in it, or nobody but zombies

    def end(self) -> None:
        """End what is left of the group, if anything is: ask it to, and kill what is there after a while."""
        _end(self._group, self.look)
        self._dismiss_guard()

    def _dismiss_guard(self) -> None:
        os.write(self._guard, b".")
        os.close(self._guard)

    def _begin(self) -> None:
        """In the child, before the command: whoever reads from the terminal in the background is stopped."""
        os.write(self._guard, b"%d " % os.getpid())
        self._give_terminal(os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)

    def _stop_too(self) -> None:
        """It was stopped at the terminal: so is this process, for the shell to notice, until both go on."""
        if self._terminal:
            self._give_terminal(os.getpgrp())
            os.kill(0, signal.SIGSTOP)
            if _has_foreground():
                self._give_terminal(self._group)
            self.send(signal.SIGCONT)

    def _give_terminal(self, group: int) -> None:
        try:
            if self._terminal:
                os.tcsetpgrp(0, group)
        except OSError:
            pass  # it was closed meanwhile


def _has_foreground() -> bool:
    """Whether standard input is a terminal, and this process is in its foreground."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _guard() -> int:
    """Start a process that ends a group when what is returned is closed, unless a dot was written there last.

    The group's number is written there first.
    """
    here, there = os.pipe()
    if os.fork() == 0:
        try:
            os.setsid()
            os.closerange(0, here)  # a lock that this process holds must end with it
            os.closerange(here + 1, 65536)
            signal.set_wakeup_fd(-1)
            said = b""
            while piece := os.read(here, 100):
                said += piece
            if said and not said.endswith(b"."):
                _end(int(said), lambda: None)
        finally:
            os._exit(0)
    os.close(here)
    return there


def _end(group: int, look: "Callable[[], object]") -> None:
    try:
        os.killpg(group, signal.SIGTERM)
        os.killpg(group, signal.SIGCONT)  # what is stopped cannot end
        _watch(group, look, KILL_AFTER_S)
        os.killpg(group, signal.SIGKILL)
        _watch(group, look, _DEAD_AFTER_S)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left in it, or nobody but zombies


def _watch(group: int, look: "Callable[[], object]", longest_s: float) -> None:
    """For so long, until there is nobody to signal."""
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline:
        look()
        os.killpg(group, 0)
        time.sleep(_LOOK_S)


def _noted(number: int, frame: object) -> None:
    """The wakeup descriptor has it."""
