"""`accord listen --exec`: a command for each message, one at a time; what fails is tried again."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.users import User
from tests.hub.hubs import TIMEOUT_S, bodies, complaint, daemon_program, foreground, running, wait_until

MANY = 6

# Notes each message, and then does what the file `how` says for its text: an exit code, or a wait for the file `go`.
PROGRAM = """#!/usr/bin/env python3
import json, os, sys, time
text = json.loads(sys.stdin.read())["message"]
with open("ran", "a") as ran:
    ran.write(text + "\\n")
if text in open("wait").read().split():
    while not os.path.exists("go"):
        time.sleep(0.01)
sys.exit(text in open("fail").read().split())
"""


class Mail:
    """A listener with a command, and what became of each message."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.work = user.work
        (self.work / "on-mail").write_text(PROGRAM)
        (self.work / "on-mail").chmod(0o755)
        self.let()

    def let(self, wait: str = "", fail: str = "") -> None:
        (self.work / "wait").write_text(wait)
        (self.work / "fail").write_text(fail)

    def send(self, *texts: str) -> None:
        for text in texts:
            self.user.json("send", "--from", "ann", "--to", "ben", "--message", text)

    @contextmanager
    def listening(self, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
        with running(self.user, "listen", "ben", "--exec", "./on-mail", *options) as process:
            yield process

    def ran(self) -> list[str]:
        path = self.work / "ran"
        return path.read_text().split() if path.exists() else []

    def wait_for(self, *texts: str) -> None:
        """Until just these were run, in this order."""
        wait_until(lambda: len(self.ran()) >= len(texts), f"{texts} run, and not only {self.ran()}")
        assert self.ran() == list(texts)

    def wait_for_unread(self, *texts: str) -> None:
        wait_until(lambda: bodies(self.user, "ben") == list(texts), f"unread: {texts}")


@pytest.fixture
def mail(hub: User) -> Mail:
    return Mail(hub)


def numbers(first: int, last: int) -> list[str]:
    return [f"m{n}" for n in range(first, last + 1)]


@pytest.mark.covers("T1.6", "T0.2")
def test_what_a_command_took_is_acknowledged(mail: Mail) -> None:
    mail.send(*numbers(1, MANY))
    with mail.listening() as listener:
        mail.wait_for(*numbers(1, MANY))
        mail.wait_for_unread()
        mail.send("later")
        mail.wait_for(*numbers(1, MANY), "later")
        mail.wait_for_unread()
        listener.terminate()
        assert listener.wait(TIMEOUT_S) == 0


@pytest.mark.covers("T1.6")
def test_what_failed_is_tried_again_until_it_is_cured(mail: Mail) -> None:
    """It holds nothing else up, comes again later each time on the same connection, and no other does."""
    mail.send("m1", "m2", "m3")
    mail.let(fail="m2")
    with mail.listening() as listener:
        mail.wait_for("m1", "m2", "m3", "m2")
        mail.wait_for_unread("m2")
        mail.send("m4")
        wait_until(lambda: mail.ran().count("m2") >= 3, "m2 tried again")
        mail.let()
        mail.wait_for_unread()
        assert sorted(set(mail.ran())) == numbers(1, 4)
        assert [mail.ran().count(text) for text in ("m1", "m3", "m4")] == [1, 1, 1]
        complaint(listener, "the command ended with 1")
        listener.send_signal(signal.SIGUSR1)
        assert json.loads(complaint(listener, "statistics"))["connections"] == 1


@pytest.mark.covers("T1.6")
def test_what_failed_and_was_acknowledged_by_hand_is_not_tried_again(mail: Mail) -> None:
    mail.send("m1", "m2")
    mail.let(fail="m1")
    with mail.listening():
        mail.wait_for("m1", "m2")
        (message,) = mail.user.json("check", "ben", "--peek")["messages"]
        mail.user.json("ack", "--identity", "ben", message["message_id"])
        tried = mail.ran().count("m1")
        mail.send("m3")
        wait_until(lambda: "m3" in mail.ran(), "m3")
        with pytest.raises(AssertionError):
            wait_until(lambda: mail.ran().count("m1") > tried, "m1 again", 2.5)


@pytest.mark.covers("T1.6", "T3.16")
def test_without_acknowledging(mail: Mail) -> None:
    """Each is run once, what failed is tried again, and all stay unread; also after connecting anew."""
    mail.send("m1", "m2", "m3")
    mail.let(fail="m2")
    with mail.listening("--no-ack") as listener:
        mail.wait_for("m1", "m2", "m3", "m2")
        mail.send("m4")
        wait_until(lambda: "m4" in mail.ran(), "m4")
        mail.let()
        wait_until(lambda: mail.ran().count("m2") >= 3, "m2 tried again")
        listener.send_signal(signal.SIGHUP)
        mail.send("m5")
        wait_until(lambda: "m5" in mail.ran(), "m5")
        assert [mail.ran().count(text) for text in ("m1", "m3", "m4", "m5")] == [1, 1, 1, 1]
        assert bodies(mail.user, "ben") == numbers(1, 5)
        found = mail.user.json("sent", "ann")["messages"]
        assert [message["states"][0]["state"] for message in found] == ["handed_over"] * 5


@pytest.mark.covers("T3.15")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_command_that_runs(number: int, mail: Mail) -> None:
    """Which is acknowledged; the others of the same push are not begun."""
    mail.send(*numbers(1, MANY))
    mail.let(wait="m2")
    with mail.listening() as listener:
        mail.wait_for("m1", "m2")
        listener.send_signal(number)
        (mail.work / "go").touch()
        assert listener.wait(TIMEOUT_S) == 0
    assert mail.ran() == ["m1", "m2"]
    assert bodies(mail.user, "ben") == numbers(3, MANY)


@pytest.mark.covers("T1.6")
def test_a_listener_that_is_killed_leaves_unread_only_what_ran(mail: Mail) -> None:
    mail.send(*numbers(1, MANY))
    mail.let(wait="m4")
    with mail.listening() as listener:
        mail.wait_for(*numbers(1, 4))
        listener.kill()
        assert listener.wait(TIMEOUT_S) == -signal.SIGKILL
        (mail.work / "go").touch()
    assert bodies(mail.user, "ben") == numbers(4, MANY)
    with mail.listening():
        mail.wait_for(*numbers(1, 4), *numbers(4, MANY))
        mail.wait_for_unread()


@pytest.mark.covers("X8")
def test_a_halt_stops_it_after_the_command_that_runs(mail: Mail) -> None:
    """It goes on when its agent was engaged again, on the same connection."""
    mail.send(*numbers(1, MANY))
    mail.let(wait="m2", fail="m1")
    with mail.listening() as listener:
        mail.wait_for("m1", "m2")
        mail.user.json("halt", "--reason", "enough")
        (mail.work / "go").touch()
        complaint(listener, "waiting: Everything is halted")
        assert mail.ran() == ["m1", "m2"]
        mail.user.json("unhalt")
        complaint(listener, "accord engage")
        assert mail.ran() == ["m1", "m2"]
        mail.let()
        mail.user.json("engage", "ben")
        mail.wait_for_unread()
    assert sorted(mail.ran()) == ["m1", *numbers(1, MANY)]


REFUSING = """
import accord.errors as errors, accord.services.mail as mail
REFUSALS = {
    "STORAGE_FULL": errors.StorageFull(path="the disk"),
    "LOCK_TIMEOUT": errors.LockTimeout(path="gate", timeout_seconds=1.0, holder="process 7", pid=7),
    "TOO_BUSY": errors.TooBusy(most=1, what="requests"),
    "REQUEST_TIMEOUT": errors.RequestTimeout(method="mail.ack", timeout_seconds=30.0),
}
def refusing(work):
    def refuse(*all):
        if os.path.exists(os.environ["REFUSES"]):
            raise REFUSALS[open(os.environ["REFUSES"]).read()]
        return work(*all)
    return refuse
mail.acknowledge, mail.hand_over = refusing(mail.acknowledge), refusing(mail.hand_over)
"""


@pytest.mark.covers("T1.6", "T3.5")
@pytest.mark.parametrize("code", ["STORAGE_FULL", "LOCK_TIMEOUT", "TOO_BUSY", "REQUEST_TIMEOUT"])
@pytest.mark.parametrize(
    "options",
    [pytest.param([], id="printed"), pytest.param(["--exec", "./on-mail"], id="for a command", marks=pytest.mark.more)],
)
def test_what_cannot_be_noted_for_now_is_waited_for(options: list[str], code: str, ann: User) -> None:
    """Nothing is lost, nothing is given out twice, and the listener lives on."""
    refuses = ann.folder / "refuses"
    ann.env["REFUSES"] = str(refuses)
    with foreground(ann, *daemon_program(ann, REFUSING)):
        mail = Mail(ann)
        mail.send("m1", "m2")
        refuses.write_text(code)
        out = ann.work / "printed"
        with out.open("wb") as file, running(ann, "listen", "ben", "--json", *options, out=file) as listener:
            complaint(listener, "waiting: ")
            time.sleep(0.6)
            assert listener.poll() is None
            assert bodies(ann, "ben") == ["m1", "m2"]
            refuses.unlink()
            mail.wait_for_unread()
            mail.send("m3")
            mail.wait_for_unread()
            listener.terminate()
            assert listener.wait(TIMEOUT_S) == 0
        printed = [json.loads(line)["message"] for line in out.read_text().splitlines()]
        assert (mail.ran() if options else printed) == ["m1", "m2", "m3"]
