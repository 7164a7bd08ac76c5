"""What a command is connected to: nothing, a reader that goes away, a terminal, somebody who presses Control-C."""

import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import accord
from tests.cli.users import ACCORD, EXIT_CODES, INTERRUPTED, TIMEOUT_S, Done, User, contents, read_all
from tests.need import need

MAIL = ("send", "--from", "ann", "--to", "ben", "--message")


def shell(user: User, program: str) -> Done:
    return user.run(command=("/bin/sh", "-c", program))


@pytest.mark.covers("T1.6", "Q3")
@pytest.mark.parametrize("how", [">&-", ">/dev/full", ">&- <&-", "| :"])
def test_what_nobody_read_comes_again(how: str, ann: User) -> None:
    assert ann.run(*MAIL[:-1], "-", stdin=b"x" * 500_000).code == 0
    for options in ("", "--json"):
        program = (
            f"accord check ben {options} {how}" if how != "| :" else f"(accord check ben {options}; echo $? >code) | :"
        )
        done = shell(ann, program)
        code = int((ann.work / "code").read_text()) if how == "| :" else done.code
        assert code == 74, done
        assert "OUTPUT_CLOSED" in done.err or options
    assert len(ann.json("check", "ben")["messages"]) == 1


@pytest.mark.covers("Q3")
@pytest.mark.parametrize("how", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-", "<&- >&-"])
def test_closed_streams_harm_nothing(how: str, ann: User) -> None:
    """The first files that are opened then get the numbers of the streams, and what is printed must not go there."""
    verbs = ["discover", "register zoe", "send --from ann --to ben --message hello", "check ben", "config", "nonsense"]
    verbs += ["search hello", "init", "channel join builds --identity ann", "--json discover", "unregister zoe", "-v x"]
    for verb in verbs:
        done = shell(ann, f"accord {verb} {how}")
        assert done.code in EXIT_CODES, (verb, done)
    for path, found in contents(ann.home).items():
        if found is not None and not path.endswith((".db", "-wal", "-shm")):
            for printed in (b"accord:", b"usage", b"status", b"registered", b"identity", b"nothing"):
                assert printed not in found or path.startswith("cache/settings"), (path, found)
    assert ann.run("check", "ben", "--peek").code == 0
    assert ann.run("discover").code == 0
    # What could not be answered is not begun.
    assert len(ann.json("sent", "ann")["messages"]) == (0 if ">&-" in how.replace("2>&-", "") else 1)


def test_a_send_that_could_not_be_reported_does_not_ask_for_another(ann: User) -> None:
    """It was sent, and sending it again would send it twice."""
    done = shell(ann, " ".join(["accord", *MAIL, "hello", ">&-"]))
    assert done.code == 74
    sent = len(ann.json("sent", "ann")["messages"])
    assert sent == 0 or "Run it again" not in done.err, done.err


@pytest.mark.covers("Q3")
def test_a_stream_that_does_not_wait(ann: User) -> None:
    """Programs that start agents often hand on such a pipe; a full one is not a closed one."""
    assert ann.run(*MAIL[:-1], "-", stdin=b"x" * 500_000).code == 0
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = ann.start("check", "ben", out=writer)
    os.close(writer)
    time.sleep(0.2)  # until it is full
    with open(reader, "rb") as pipe:
        found = pipe.read()
    complaints = process.communicate(timeout=TIMEOUT_S)[1]
    assert (process.returncode, complaints) == (0, b"")
    assert found.count(b"x") >= 500_000


def wait_until_it_waits(pid: int) -> None:
    """Until a `check --wait` watches its store, or has a hub do so."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        found = open_files(pid)
        if ("inotify" in found or "socket:" in found) and Path(f"/proc/{pid}/wchan").read_text() != "0":
            return
        time.sleep(0.01)
    pytest.fail("it never waited")


def open_files(pid: int) -> str:
    found = ""
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += os.readlink(path)
        except FileNotFoundError:
            pass  # it was closed meanwhile
    return found


@pytest.mark.covers("Q3")
def test_control_c_during_a_wait(ann: User) -> None:
    with ann.start("check", "ben", "--wait", "10") as process:
        wait_until_it_waits(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == INTERRUPTED
    assert out == b""
    check_one_line(err)


@pytest.mark.covers("Q3")
def test_control_c_at_a_terminal(ann: User) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(ACCORD, [ACCORD, "check", "ben", "--wait", "10"], ann.env)
    wait_until_it_waits(pid)
    os.write(terminal, b"\x03")
    screen = read_all(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == INTERRUPTED
    check_one_line(screen.replace(b"^C", b"").replace(b"\r\n", b"\n"))


def check_one_line(said: bytes) -> None:
    assert said.count(b"\n") == 1, said
    assert b"interrupted" in said.lower()


def moments(user: User) -> Iterator[int]:
    """The numbers of the calls with which a `check` opens files, from the first file of accord on."""
    log = user.folder / "log"
    user.run(ACCORD, "check", "ben", "--peek", command=(need("strace"), "-qq", "-e", "trace=openat", "-o", str(log)))
    opened = log.read_text().splitlines()
    first = next(number for number, line in enumerate(opened) if "/accord/" in line)
    yield from range(first + 2, len(opened) + 1, 3)


@pytest.mark.covers("Q3")
def test_control_c_at_any_moment(ann: User) -> None:
    """From the first line of accord on, there is no traceback, and what was sent is unread or acknowledged."""
    ann.json(*MAIL, "hello")
    wrong = []
    for moment in moments(ann):
        inject = f"inject=openat:signal=SIGINT:when={moment}"
        tracing = (need("strace"), "-qq", "-e", "trace=openat", "-e", inject, "-o", "/dev/null", ACCORD)
        done = subprocess.run([*tracing, "check", "ben", "--peek"], capture_output=True, env=ann.env, check=False)
        if done.returncode not in (0, INTERRUPTED, -signal.SIGINT) or b"Traceback" in done.stderr:
            wrong.append((moment, done.returncode, done.stderr[-300:]))
    assert not wrong, wrong[:2]
    assert len(ann.json("check", "ben")["messages"]) == 1


@pytest.mark.covers("I6")
@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "0"}, False),
        ({"NO_COLOR": ""}, True),  # as no-color.org has it
        ({"TERM": "dumb"}, False),
    ],
    ids=str,
)
def test_colour_on_a_terminal(env: dict[str, str], expected: bool, ann: User) -> None:
    ann.json(*MAIL, "hello")
    for words in (["discover"], ["check", "ben", "--peek"], ["config"], ["sent", "ann"]):
        code, screen = ann.at_terminal(*words, env=env)
        assert code == 0
        assert (b"\x1b[" in screen) == expected, screen
        assert screen.count(b"\x1b[0m") * 2 == screen.count(b"\x1b")


@pytest.mark.covers("I6")
def test_no_colour_elsewhere(ann: User) -> None:
    ann.json(*MAIL, "hello")
    for words in (["discover"], ["check", "ben", "--peek"], ["config"], ["sent", "ann"]):
        assert "\x1b" not in ann.run(*words, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"}).out
        code, screen = ann.at_terminal(*words, "--json")
        assert (code, b"\x1b" in screen) == (0, False)
    # Its input is a terminal, and its output is not.
    out = ann.work / "out"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve("/bin/sh", ["sh", "-c", f"accord discover >{out}"], {**ann.env, "TERM": "xterm"})
    os.waitpid(pid, 0)
    os.close(terminal)
    assert "identity" in out.read_text()
    assert "\x1b" not in out.read_text()


@pytest.mark.covers("I6")
def test_a_person_sees_how_far_long_work_has_come(ann: User) -> None:
    with accord.open(str(ann.home)) as home:
        for n in range(1001):  # a page of the store, and one more
            home.mail.send(sender="ann", to=["ben"], message=f"word{n}")
    code, screen = ann.at_terminal("search", "word7")
    assert code == 0
    bar, _, rest = screen.partition(b"\r\x1b[K")
    assert b"] 1,000 of 1,001" in bar
    assert b"from ann" in rest
    assert b"of 1,001" not in rest, "gone when all is done"
    (ann.home / "cache/search.db").unlink()
    piped = ann.run("search", "word7")
    assert piped.code == 0
    assert not piped.err


@pytest.mark.covers("Q3")
@pytest.mark.parametrize("how", [">/dev/full", "| :"])
@pytest.mark.parametrize("option", ["", "--json"])
def test_what_was_done_and_could_not_be_printed(how: str, option: str, ann: User) -> None:
    """Whoever ran it again would send it twice."""
    program = " ".join(["accord", option, *MAIL, "hello"])
    if how == "| :":
        done = shell(ann, f"mkfifo gone; : <gone & (sleep 0.1; {program}; echo $? >code) >gone")
        code = int((ann.work / "code").read_text())
    else:
        done = shell(ann, f"{program} {how}")
        code = done.code
    (message,) = ann.json("sent", "ann")["messages"]
    assert (code, done.error) == (74, "NOT_PRINTED"), done
    assert message["message_id"] in done.err
    assert "Run it again" not in done.err
