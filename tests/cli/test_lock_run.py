"""`lock run`: a command that runs only while its lock is held, and is otherwise as if nobody stood between."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from accord import platform
from tests.cli.users import ACCORD, User
from tests.operations.processes import until_it_waits

pytestmark = pytest.mark.covers("S6")

LOST = 75


def until(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    return bool(platform.process_started(pid))


def start(user: User, *command: str, ttl: str = "60") -> "subprocess.Popen[bytes]":
    """It runs when this returns; its last word is the file that it makes then."""
    process = user.start("lock", "run", "build", "--owner=ann", f"--ttl={ttl}", "--", *command)
    made = user.work / command[-1]
    until(made.exists, "command that runs")
    return process


def pid_in(file: Path) -> int:
    until(lambda: file.exists() and file.read_text().endswith("\n"), f"{file.name}")
    return int(file.read_text())


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_its_exit_code_is_the_commands(user: User, script: str, code: int) -> None:
    done = user.run("lock", "run", "build", "--owner", "ann", "--", "sh", "-c", script)
    assert (done.code, done.out, done.err) == (code, "", "")
    assert user.json("lock", "list")["locks"] == []


def test_who_has_no_name_has_one_of_the_process(user: User) -> None:
    said = user.run("--json", "lock", "run", "build", "--", ACCORD, "lock", "list", "--json")
    assert said.code == 0, said.err
    [lock] = said.json["locks"]
    host, _, pid = lock["owner"].rpartition(".")
    assert host
    assert pid.isdigit()
    named = user.run("lock", "run", "build", "--", ACCORD, "lock", "list", "--json", env={"ACCORD_AGENT": "ann"})
    assert named.json["locks"][0]["owner"] == "ann"
    assert user.run("lock", "acquire", "build").error == "USAGE"  # somebody else has to release it


def test_what_the_command_says_and_reads_is_untouched(user: User) -> None:
    done = user.run(
        "lock", "run", "build", "--owner", "ann", "--", "sh", "-c", "cat; echo oops >&2", stdin=b"from a pipe\n"
    )
    assert (done.out, done.err) == ("from a pipe\n", "oops\n")


def test_its_words_are_its_own(user: User) -> None:
    done = user.run("lock", "run", "build", "--owner", "ann", "--", "echo", "--json", "--", "-h", "a b")
    assert done.out == "--json -- -h a b\n"


def test_it_can_write_in_the_name_of_its_lock(user: User) -> None:
    script = f'{ACCORD} doc write log --text x --fence "$ACCORD_LOCK:$ACCORD_LOCK_TOKEN"'
    for n in (1, 2):
        done = user.run("lock", "run", "a lock", "--owner", "ann", "--", "sh", "-c", script)
        assert done.code == 0, done
        assert user.run("doc", "write", "log", "--text", "y", "--fence", f"a lock:{n}").error == "FENCED"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--", "no-such-program"], 127, "no-such-program cannot be run: there is no such program"),
        (["--", "/"], 127, "cannot be run"),
        (["--", ""], 127, "cannot be run"),
        (["--"], 2, "Write the command after --"),
        ([], 2, "Write the command after --"),
        (["true"], 2, "one word too many"),
    ],
)
def test_what_cannot_be_run(user: User, words: list[str], code: int, said: str) -> None:
    done = user.run("lock", "run", "build", "--owner", "ann", *words)
    assert done.code == code
    assert said in done.err
    assert user.json("lock", "list")["locks"] == []


def test_a_lock_that_is_held_is_waited_for_and_no_longer(user: User) -> None:
    token = user.json("lock", "acquire", "build", "--owner", "ben")["token"]
    done = user.run("lock", "run", "build", "--owner", "ann", "--timeout", "0.2", "--", "touch", "made")
    assert (done.code, done.error) == (75, "LOCK_HELD")
    assert not (user.work / "made").exists()
    waiting = user.start("lock", "run", "build", "--owner", "ann", "--", "touch", "made")
    until(lambda: user.json("lock", "list")["locks"][0]["waiting"], "one who waits")
    user.json("lock", "release", "build", "--owner", "ben", "--token", str(token))
    assert waiting.wait(20) == 0
    assert (user.work / "made").exists()
    waiting.communicate()


def test_it_is_renewed_while_the_command_runs(user: User) -> None:
    process = start(user, "sh", "-c", "touch $0; sleep 4", "made", ttl="1.5")
    assert user.run("lock", "acquire", "build", "--owner", "ben", "--timeout", "1.5").error == "LOCK_HELD"
    assert process.wait(20) == 0
    assert process.communicate() == (b"", b"")
    assert user.json("lock", "acquire", "build", "--owner", "ben", "--timeout", "0")["token"] == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on_to_the_whole_group(user: User, number: signal.Signals) -> None:
    inside = "echo \\$\\$ > inner; touch made; exec sleep 60"
    script = f"trap 'exit 9' 1 2 15; sh -c \"{inside}\""
    old = signal.signal(number, signal.SIG_DFL)  # no shell traps what is ignored, as HUP is under nohup
    try:
        process = start(user, "sh", "-c", script, "made")
    finally:
        signal.signal(number, old)
    inner = pid_in(user.work / "inner")
    process.send_signal(number)
    assert process.wait(20) == 9
    assert not is_running(inner)
    process.communicate()
    assert user.json("lock", "list")["locks"] == []


def test_any_lease_and_a_parent_that_ignores_its_children(user: User) -> None:
    old = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        process = user.start("lock", "run", "build", "--owner=ann", "--ttl=1000000000", "--", "sh", "-c", "exit 5")
    finally:
        signal.signal(signal.SIGCHLD, old)
    assert process.wait(20) == 5
    assert process.communicate() == (b"", b"")


def test_what_reads_its_output_keeps_the_terminal(user: User) -> None:
    """As a pager does."""
    shell = Terminal(user)
    shell.say(f"{ACCORD} lock run build --owner ann -- echo one | sh -c 'cat; read word </dev/tty; echo got-$word'\n")
    shell.expect("one\r\n")
    shell.say("hello\n")
    shell.expect("got-hello")
    assert shell.end() == 0


def test_a_signal_that_was_ignored_stays_so(user: User) -> None:
    """As under nohup."""
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start(user, "sh", "-c", "touch $0; sleep 0.5; exit 3", "made")
    finally:
        signal.signal(signal.SIGHUP, old)
    process.send_signal(signal.SIGHUP)
    assert process.wait(20) == 3
    process.communicate()


STUBBORN = "trap '' 15; echo $$ > pid; touch $0; while :; do sleep 0.05; done"


@pytest.mark.parametrize(("script", "at_least_s"), [("echo $$ > pid; touch $0; sleep 60", 0), (STUBBORN, 5)])
def test_a_lease_that_is_lost_ends_the_group(user: User, script: str, at_least_s: float) -> None:
    """Somebody stops the process that renews it, and another gets the lock."""
    process = start(user, "sh", "-c", script, "made", ttl="2")
    pid = pid_in(user.work / "pid")
    until_it_waits(process.pid)  # stopped while it renews, it would hold up everybody
    process.send_signal(signal.SIGSTOP)
    assert user.json("lock", "acquire", "build", "--owner", "ben")["token"] == 2
    process.send_signal(signal.SIGCONT)
    began = time.monotonic()
    assert process.wait(30) == LOST
    assert time.monotonic() - began >= at_least_s
    assert b"ben got it since, with 2. Acquire it again. [LOCK_LOST]" in process.communicate()[1]
    assert not is_running(pid)
    assert [lock["owner"] for lock in user.json("lock", "list")["locks"]] == ["ben"]


def test_one_that_slept_through_its_lease_goes_on_if_nobody_took_it(user: User) -> None:
    process = start(user, "sh", "-c", "touch $0; sleep 5; exit 4", "made", ttl="2")
    process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    process.send_signal(signal.SIGCONT)
    assert process.wait(20) == 4
    process.communicate()


def test_renewals_that_keep_failing_end_the_group(user: User) -> None:
    """The store is no longer there to be asked."""
    process = start(user, "sh", "-c", "echo $$ > pid; touch $0; sleep 60", "made", ttl="1")
    pid = pid_in(user.work / "pid")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_STORE, str(user.home / "store.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    assert holder.stdout.readline() == b"held\n"
    began = time.monotonic()
    until(lambda: not is_running(pid), "end of the command")
    assert time.monotonic() - began < 5
    holder.communicate()
    assert process.wait(60) == LOST
    assert b"it was not renewed in time" in process.communicate()[1]


HOLD_STORE = """
import sys
from accord.store.engines.sqlite import Sqlite
with Sqlite(sys.argv[1]).exclusive():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("script", ["echo $$ > pid; touch $0; sleep 60; :", "sleep 60 & echo $! > pid; touch $0; wait"])
def test_a_command_does_not_outlive_the_one_who_holds_its_lock(user: User, script: str) -> None:
    process = start(user, "sh", "-c", script, "made")
    pid = pid_in(user.work / "pid")
    process.kill()
    process.communicate(timeout=20)  # nobody holds on to its output either
    until(lambda: not is_running(pid), "end of the command")


@pytest.mark.parametrize("round", range(5))
def test_a_command_that_kills_who_has_started_it_ends_too(user: User, round: int) -> None:
    """However soon it does that."""
    script = "echo $$ > pid; touch $0; kill -9 $PPID; exec sleep 60"
    process = start(user, "sh", "-c", script, "made")
    pid = pid_in(user.work / "pid")
    process.communicate(timeout=20)
    until(lambda: not is_running(pid), "end of the command")


@pytest.mark.parametrize("ignored", ["", "trap '' 15;"])
def test_what_it_leaves_in_the_background_ends_before_the_lock_is_released(user: User, ignored: str) -> None:
    script = f"({ignored} exec sleep 60) & echo $! > pid; touch $0; sleep 0.3; exit 3"
    process = start(user, "sh", "-c", script, "made", ttl="1")
    pid = pid_in(user.work / "pid")
    assert user.json("lock", "acquire", "build", "--owner", "ben", "--timeout", "20")["token"] == 2
    assert not is_running(pid)
    assert process.wait(20) == 3
    assert process.communicate() == (b"", b"")


def test_what_it_leaves_in_the_background_does_not_outlive_the_one_who_ends_it(user: User) -> None:
    script = "(trap '' 15; exec sleep 60) & echo $! > pid; sleep 0.3; touch $0"
    process = start(user, "sh", "-c", script, "made")
    pid = pid_in(user.work / "pid")
    time.sleep(0.5)  # the command has ended, and what is left is asked to
    process.kill()
    process.communicate(timeout=20)
    until(lambda: not is_running(pid), "end of what was left")


def test_no_guard_is_left_behind(user: User) -> None:
    process = start(user, "sh", "-c", "touch $0; until [ -e counted ]; do sleep 0.05; done", "made")
    guards = children(process.pid)
    assert len(guards) == 2, "the command and its guard"
    (user.work / "counted").touch()
    assert process.wait(20) == 0
    until(lambda: not any(is_running(pid) for pid in guards), "end of the guard")
    process.communicate()


def children(pid: int) -> list[int]:
    if sys.platform != "linux":
        pytest.skip("only Linux tells of children")
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_command_has_the_terminal_and_gives_it_back(user: User) -> None:
    """It reads from it, is interrupted at it, and afterwards the shell reads again."""
    shell = Terminal(user)
    shell.say(f"{ACCORD} lock run build --owner ann -- sh -c 'echo rea\"\"dy; read word; echo got-$word'\n")
    shell.expect("ready")
    shell.say("hello\n")
    shell.expect("got-hello")
    shell.say(f"{ACCORD} lock run build --owner ann -- sh -c 'echo now-$((1+1)); exec sleep 60'; echo code-$?\n")
    shell.expect("now-2")
    shell.say("\x03")
    shell.expect("code-130")
    shell.say("read word; echo then-$word\n")
    time.sleep(0.2)
    shell.say("bye\n")
    shell.expect("then-bye")
    assert shell.end() == 0


def test_a_command_that_is_stopped_at_the_terminal_goes_on(user: User) -> None:
    shell = Terminal(user)
    shell.say("set -m\n")
    shell.say(f"{ACCORD} lock run build --owner ann -- sh -c 'echo now-$((1+1)); read word; exit 6'; echo code-$?\n")
    shell.expect("now-2")
    shell.say("\x1a")
    shell.expect("code-1")  # 128 and SIGTSTP or SIGSTOP: the shell has it back
    shell.say("fg; echo end-$?\n")
    time.sleep(0.5)
    shell.say("go on\n")
    shell.expect("end-6")
    assert shell.end() == 0


class Terminal:
    """A shell at a terminal of its own."""

    def __init__(self, user: User) -> None:
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(user.work)
            os.execve("/bin/bash", ["bash", "--norc", "-i"], {**user.env, "PS1": "", "TERM": "dumb"})
        self._seen = b""
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def say(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def expect(self, text: str) -> None:
        deadline = time.monotonic() + 20
        while text.encode() not in self._seen:
            assert time.monotonic() < deadline, self._seen
            if self._poll.poll(1000):
                self._seen += os.read(self._fd, 4096)
        self._seen = self._seen.partition(text.encode())[2]

    def end(self) -> int:
        self.say("exit 0\n")
        assert platform.wait_for_end(self._pid, 20)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
