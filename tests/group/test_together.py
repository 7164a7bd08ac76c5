"""Members of a group work together in one home, each under their own uid."""

import subprocess
import sys

import pytest

from tests.group.members import HELLO, TEAM, Machine, modes
from tests.hub.hubs import wait_until
from tests.need import need
from tests.robustness.disks import need_root


@pytest.mark.covers("S14.1", "S14.3")
@pytest.mark.parametrize("host", ["nobody", "ann", "ben"])
def test_members_work_together(host: str, team: Machine) -> None:
    """Without a hub, and with one that either of them runs."""
    if host == "nobody":
        work_together(team)
        return
    with getattr(team, host).hub():
        work_together(team)


def work_together(team: Machine) -> None:
    ann, ben = team.ann, team.ben
    ann.json("register", "ann")
    ben.json("register", "ben")
    ann.json(*HELLO)
    (message,) = ben.json("check", "ben")["messages"]
    assert (message["from"], message["message"]) == ("ann", "hello")
    ben.json("send", "--from", "ben", "--to", "ann", "--reply-to", message["message_id"], "--message", "to you too")
    assert len(ann.json("check", "ann")["messages"]) == 1

    held = ann.json("lock", "acquire", "build", "--owner", "ann")
    assert ben.refused("lock", "acquire", "build", "--owner", "ben", "--timeout", "0") == "LOCK_HELD"
    ann.json("lock", "release", "build", "--owner", "ann", "--token", str(held["token"]))
    ben.json("lock", "acquire", "build", "--owner", "ben")

    ann.json("doc", "write", "plan", "--text", "one")
    ben.json("doc", "write", "plan", "--text", "two", "--base", "1")
    assert ann.refused("doc", "write", "plan", "--text", "three", "--base", "1") == "CONFLICT"
    assert ann.json("doc", "read", "plan")["text"] == "two"

    assert len(ben.json("search", "hello")["messages"]) == 1
    assert len(ann.json("search", "hello")["messages"]) == 1
    who = {entry["operation"]: entry["who"] for entry in ann.json("audit")["entries"]}
    assert who["mail.send"] == f"uid:{ben.uid}"
    assert {entry["who"] for entry in ben.json("audit")["entries"]} == {f"uid:{ann.uid}", f"uid:{ben.uid}"}
    ben.json("audit", "--verify")
    for member in (ann, ben):
        assert member.json("doctor")["healthy"]


@pytest.mark.covers("S14.1", "R20")
def test_a_hub_serves_members_under_their_own_uid(team: Machine) -> None:
    for host, guest in ((team.ann, team.ben), (team.ben, team.ann)):
        with host.hub():
            assert guest.asks("doc.write", {"name": "note", "text": "x"})["by"] == f"uid:{guest.uid}"
            assert host.asks("doc.write", {"name": "note", "text": "y"})["by"] == f"uid:{host.uid}"
            assert guest.asks("agent.register", {"identity": "guest"}) == "GO_LOCAL"
            assert team.eve.asks("hub.ping", {}) == ""


@pytest.mark.covers("S14.1", "T0.2")
def test_mail_is_pushed_by_the_hub_of_another(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    users.ann.json("register", "ann")
    users.ben.json("register", "ben")
    for host in (users.ann, users.ben):
        with host.hub():
            listener = users.ben.start("--json", "listen", "ben")
            users.ann.json(*HELLO)
            try:
                assert "hello" in wait_until(listener.said, "a message")
            finally:
                listener.kill()


@pytest.mark.covers("S14.1", "X8")
def test_a_halt_is_of_one_user(users: Machine) -> None:
    """The hub obeys that of whoever runs it, and a command that of whoever gives it."""
    users.ann.json("init", "--group", str(TEAM))
    users.ann.json("register", "ann")
    users.ben.json("register", "ben")
    with users.ann.hub():
        users.ben.json("halt")
        assert users.ben.refused("send", "--from", "ben", "--to", "ann", "--message", "x") == "HALTED"
        users.ann.json(*HELLO)
    own = {"ACCORD_HOME": str(users.ben.folder / "own")}
    users.ben.json("unhalt", **own)
    answer = ("send", "--from", "ben", "--to", "ann", "--message", "x")
    assert users.ben.refused(*answer) == "NOT_ENGAGED"
    users.ben.json("register", "ben", "--force")
    users.ben.json(*answer)


@pytest.mark.covers("S14.1")
def test_an_edit_by_hand_of_a_member_is_taken_in(users: Machine) -> None:
    """Though their editor left a file that others may only read."""
    users.ann.json("init", "--group", str(TEAM), ACCORD_ENGINE=f"files:{users.home}/store")
    users.settings("engine: files:store\n")
    users.ann.json("doc", "write", "plan", "--text", "one")
    (path,) = users.home.rglob("plan*.txt")
    edit = (
        "import os, sys; os.unlink(sys.argv[1]); open(sys.argv[1], 'w').write('by hand'); os.chmod(sys.argv[1], 0o644)"
    )
    assert users.ann.run(str(path), what=edit).code == 0
    assert users.ben.json("doc", "read", "plan")["text"] == "by hand"
    users.ben.json("doc", "write", "plan", "--text", "two")
    assert users.ann.json("doc", "read", "plan")["text"] == "two"
    assert users.ann.json("doc", "history", "plan")["versions"][1]["size"] == len("by hand")


RACE = """
import sys
from accord.store.engines.files import writer
from tests.robustness.worker import make_changes
writer.RESTART_EVERY = 8
url, first, last = sys.argv[1:]
make_changes(url, int(first), int(last))
"""


@pytest.mark.covers("S14.1", "S1")
@pytest.mark.parametrize("engine", ["sqlite:{}/other.db", "files:{}/other", "files:{}/other?lock=mkdir"])
def test_races_of_members(engine: str, users: Machine) -> None:
    """Several processes of each make the store, and then change the same things; some are killed."""
    users.ann.json("init", "--group", str(TEAM))
    url, each = engine.format(users.home), 25
    firsts = range(1, 6 * each, each)
    racing = [
        (users.ann, users.ben)[number % 2].start(url, str(first), str(first + each - 1), what=RACE)
        for number, first in enumerate(firsts)
    ]
    doomed = [member.start(url, "1001", "2000", what=RACE) for member in (users.ann, users.ben)]
    done = [process.done() for process in racing[:3]]
    for process in doomed:
        process.kill()
    done += [process.done() for process in racing[3:]]
    said = [line for one in done for line in one.out.splitlines()]
    assert [line for line in said if line.startswith("failed")] == [], done
    assert sum(line.startswith("acknowledged") for line in said) == 6 * each
    last = users.ben.run(url, "5001", "5001", what=RACE)
    assert "acknowledged 5001" in last.out, last
    assert set(modes(users.home).values()) <= {"drwxrws---", "-rw-rw----", "drwx------", "-rw-------"}


@pytest.mark.covers("S14.1")
def test_members_register_at_once(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    members = (users.ann, users.ben)
    racing = [members[n % 2].start("register", f"agent-{n // 2}") for n in range(8)]
    done = [process.done() for process in racing]
    assert sorted(one.code for one in done) == [0] * 4 + [73] * 4, done
    for n in range(4):
        winner = members[0] if done[2 * n].code == 0 else members[1]
        assert (users.home / f"agents/agent-{n}.token").stat().st_uid == winner.uid
        winner.json("check", f"agent-{n}")


HIDDEN = """
import os, signal
from accord import platform
other = os.fork()
if not other:
    signal.pause()
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
found = [platform.process_started(pid) for pid in (other, os.getpid(), 99999)]
assert (found[0], found[2]) == (platform.HIDDEN, ""), found
assert found[1].isdigit()
"""


@pytest.mark.covers("S14.1", "S3")
def test_a_process_that_the_system_hides_is_not_taken_for_gone() -> None:
    """Or the lock of another member would be broken. In a /proc of its own: others see the setting too."""
    need_root()
    mount = 'mount -o remount,hidepid=2 /proc && exec "$@"'
    own_proc = [need("unshare"), "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", mount, "sh"]
    done = subprocess.run([*own_proc, sys.executable, "-c", HIDDEN], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
