"""Worker processes that are heard, killed and replaced."""

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.readable import readable
from tests.robustness.homes import WORKER_ENV

PROGRAM = [sys.executable, "-S", "-c", "from tests.robustness.histories_worker import main; main()"]
LONGEST_SILENCE_S = 30


class Crew:
    """Processes that do one task in one store. Each has a name, and a file for its history in `folder`."""

    def __init__(self, task: str, url: str, folder: Path) -> None:
        self._task = task
        self._url = url
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: BaseException | TracebackType | None) -> None:
        """Let all of them finish what they do, and end."""
        for process in self._processes.values():
            _close_pipes(process)
        codes = {name: _end(process) for name, process in self._processes.items()}
        assert kind is not None or not any(codes.values()), f"some did not end well: {codes}"

    def start(self, name: str, seed: int, is_faulty: bool) -> None:
        arguments = [self._task, self._url, name, str(seed), str(self.history_of(name))]
        command = [*PROGRAM, *arguments, *(["faulty"] if is_faulty else [])]
        pipe = subprocess.PIPE
        self._processes[name] = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=WORKER_ENV, bufsize=0)

    def history_of(self, name: str) -> Path:
        return self._folder / f"{name}.history"

    def say(self, name: str, line: str) -> None:
        stdin = self._processes[name].stdin
        assert stdin is not None
        stdin.write(f"{line}\n".encode())

    def hear(self) -> list[tuple[str, str]]:
        """Wait until somebody speaks: who, and what they say."""
        outputs = {process.stdout: name for name, process in self._processes.items() if process.stdout}
        ready = readable(list(outputs), LONGEST_SILENCE_S)
        assert ready, f"nobody has said anything for {LONGEST_SILENCE_S} seconds"
        heard = []
        for output in ready:
            said = output.read(65536)
            assert said, f"{outputs[output]} ended by itself"
            # Lines are short, and each was written at once: none comes in halves.
            heard += [(outputs[output], line) for line in said.decode().splitlines()]
        return heard

    def kill(self, name: str) -> list[str]:
        """Kill a process while it works; what it had said last."""
        process = self._processes.pop(name)
        process.kill()
        assert process.wait() == -signal.SIGKILL, f"{name} ended by itself, with {process.returncode}"
        assert process.stdout is not None
        last = process.stdout.read().decode().splitlines()
        _close_pipes(process)
        return last


def _end(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(LONGEST_SILENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
