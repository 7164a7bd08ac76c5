"""All that a verb sees of the world outside: what it prints, reads and is told. A hub gives it another one."""

import os
import sys

from accord import errors

# What brains look at of what their hooks get; the result of a tool is there too, and can be long.
GIVEN = ("session_id", "cwd", "hook_event_name", "prompt", "agent_id", "answered", "prompt_response")
_MOST_GIVEN = 64 << 20

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from accord.operations.context import Context

    class Io(Protocol):
        env: Mapping[str, str]
        cwd: str
        pid: int  # of the command, whoever runs it; 0: not known
        request: str

        def context(self, given: Mapping[str, str]) -> Context: ...

        def confirm(self) -> None: ...

        def check_output(self) -> None: ...

        def out(self, text: str) -> None: ...

        def err(self, text: str) -> None: ...

        def is_terminal(self, fd: int) -> bool: ...

        def width(self) -> int: ...

        def read_input(self, most: int) -> bytes: ...

        def read_file(self, path: str, most: int) -> bytes: ...

        def read_given(self) -> dict[str, object]: ...

        def may_take(self, seconds: float) -> None: ...


class LocalIo:
    """This process's own."""

    def __init__(self) -> None:
        self.env: Mapping[str, str] = os.environ
        self.pid = os.getpid()
        self.request = ""  # under which a hub was asked for this before
        self.can_print = _fill_gaps()
        self._input: list[bytes] = []  # what was read of it
        try:
            self.cwd = os.getcwd()
        except OSError:
            self.cwd = ""  # it was removed, and nothing is relative to it any more

    def context(self, given: "Mapping[str, str]") -> "Context":
        """What the operations of a command see, by its global options."""
        from accord.operations.context import local

        return local(self.env, self.cwd, given.get("--home", ""), given.get("--engine", ""), self.request)

    def confirm(self) -> None:
        """Return when what was printed is out of our hands; here it is already."""

    def check_output(self) -> None:
        """Refuse to start what could not be answered."""
        if not self.can_print:
            raise errors.OutputClosed(reason="standard output is closed")

    def out(self, text: str) -> None:
        try:
            _write(1, text)
        except OSError as error:
            raise errors.OutputClosed(reason=error.strerror) from None

    def err(self, text: str) -> None:
        try:
            _write(2, text)
        except OSError:
            pass  # there is nobody left to tell

    def is_terminal(self, fd: int) -> bool:
        return os.isatty(fd)

    def width(self) -> int:
        try:
            return os.get_terminal_size(1).columns or 80
        except OSError:
            return 80

    def read_input(self, most: int) -> bytes:
        """Standard input, unless it is longer. It is kept for who asks again, as after a hub that was lost."""
        try:
            return _read(0, most, self._input)
        except OSError as error:
            raise errors.FileUnreadable(path="standard input", reason=error.strerror) from None

    def read_given(self) -> dict[str, object]:
        """What a hook gets as a JSON object on standard input: the fields that some brain looks at.

        And `command`: how a shell where it runs calls this accord.
        """
        from accord import jsontext

        found = jsontext.loads(self.read_input(_MOST_GIVEN), _MOST_GIVEN)
        if not isinstance(found, dict):
            raise errors.InvalidJson(reason="standard input holds no object")
        return {**{name: found[name] for name in GIVEN if name in found}, "command": _command(self.env)}

    def may_take(self, seconds: float) -> None:
        """Have a hook, which has a deadline, end within so long from now; 0: it has none any more."""
        import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum

        _signal.setitimer(_signal.ITIMER_REAL, seconds)

    def read_file(self, path: str, most: int) -> bytes:
        """A file, unless it is larger; its size is looked at first."""
        if not self.cwd and not os.path.isabs(path):
            raise errors.FileUnreadable(path=path, reason="the working directory is gone")
        try:
            fd = os.open(os.path.join(self.cwd, path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            os.set_blocking(fd, True)  # a pipe that nobody writes to is at its end, and any other is waited for
        except (OSError, ValueError) as error:
            raise errors.FileUnreadable(path=path, reason=getattr(error, "strerror", "") or str(error)) from None
        try:
            size = os.fstat(fd).st_size
            if size > most:
                raise errors.MessageTooLarge(most=most, found=size)
            return _read(fd, most, [])
        except OSError as error:
            raise errors.FileUnreadable(path=path, reason=error.strerror) from None
        finally:
            os.close(fd)


def _command(env: "Mapping[str, str]") -> str:
    """By its name, where the PATH leads to this one under it; else by its path."""
    path = os.path.abspath(sys.argv[0])
    name = os.path.basename(path)
    if name != "accord":
        return "accord"  # `python -m accord`
    for folder in env.get("PATH", "").split(os.pathsep):
        found = f"{folder}/{name}"
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return name if os.path.realpath(found) == os.path.realpath(path) else path
    return path


def _read(fd: int, most: int, pieces: list[bytes]) -> bytes:
    """All of a file: the pieces that were read before, and the others, the last of which is empty."""
    size = sum(map(len, pieces))
    while size <= most and pieces[-1:] != [b""]:
        pieces.append(os.read(fd, 65536))
        size += len(pieces[-1])
    if size > most:
        raise errors.MessageTooLarge(most=most, found=f"more than {most}")
    return b"".join(pieces)


def _write(fd: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    written = 0
    while written < len(data):
        try:
            written += os.write(fd, data[written:])
        except BlockingIOError:
            import select

            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()


def _fill_gaps() -> bool:
    """Put something in the place of closed standard streams, or the store's files would land there and be printed to.

    Whether there is a standard output.
    """
    closed = []
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            closed.append(os.open(os.devnull, os.O_RDWR))
    return 1 not in closed
