"""A home that a group shares: its members work together under their own uids, and nobody else gets anything."""

import errno
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.users import User
from tests.group.members import ASK, TEAM, Machine, Member
from tests.hub.hubs import somebody, wait_until
from tests.need import need
from tests.robustness.disks import need_root

HELLO = ("send", "--from", "ann", "--to", "ben", "--message", "hello")


def modes(home: Path) -> dict[str, str]:
    return {str(path.relative_to(home)): stat.filemode(path.lstat().st_mode) for path in home.rglob("*")}


@pytest.mark.covers("S14.1")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777], ids="umask-{:03o}".format)
def test_modes_whatever_the_umask(umask: int, team: Machine) -> None:
    """All is for the group and nobody else, but for the operator's things and the tokens."""
    for member in (team.ann, team.ben):
        member.umask = umask
    team.ann.json("register", "ann")
    with team.ben.hub():
        team.ben.json("register", "ben")
        team.ann.json(*HELLO)
        team.ben.json("check", "ben")
        team.ann.json("doc", "write", "plan", "--text", "one")
        team.ben.json("doc", "write", "plan", "--text", "two")
        team.ben.json("search", "hello")
        team.ann.json("audit", "--verify")
        found = modes(team.home)
    secret = {name for name in found if name.startswith("operator") or name.endswith(".token")}
    assert sorted(name.rpartition("/")[2] for name in secret) == ["ann.token", "ben.token", "operator", "token"]
    assert {found.pop(name) for name in secret} == {"drwx------", "-rw-------"}
    shared = set(found.values()) - {"-rw-r--r--"}  # the settings, which ann has written herself
    assert shared == {"drwxrws---", "-rw-rw----", "srw-rw----"}, found
    assert [name for name, mode in found.items() if mode == "-rw-r--r--"] in ([], ["accord.yml"])
    assert stat.filemode(team.home.stat().st_mode) == "drwxrws---"
    assert {path.stat().st_gid for path in team.home.rglob("*") if "operator" not in str(path)} == {TEAM}
    assert [name for name in found if name.endswith(".new")] == []


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


@pytest.mark.covers("S14.1", "R20")
def test_a_stranger_who_gets_to_the_socket_is_not_served(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    with users.ann.hub():
        for path in (users.home, users.home / "hub", users.home / "hub/socket"):
            path.chmod(path.stat().st_mode | 0o007)
        raw = ASK.replace("try:", "place.is_ours = lambda folder: True\ntry:", 1)
        words = (str(users.home), "{}", "hub.ping", "{}")
        assert users.eve.run(*words, what=raw).out == '""\n'
        assert users.ben.run(*words, what=raw).out == '""\n', "a home that is open to all is no group's any more"
        for path in (users.home, users.home / "hub", users.home / "hub/socket"):
            path.chmod(path.stat().st_mode & ~0o007)
        assert users.ben.run(*words, what=raw).out == "{}\n"


@pytest.mark.covers("S14.1", "T3.6")
@pytest.mark.parametrize("verb", ["discover", "register eve", "doc read plan", "hub start", "init", "audit", "doctor"])
def test_a_stranger_is_refused(verb: str, users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    users.ann.json("doc", "write", "plan", "--text", "secret")
    before = modes(users.home)
    done = users.eve.run("--json", *verb.split())
    assert "secret" not in done.out
    assert done.code == 1 if verb == "doctor" else done.error == "DATA_DIR_ERROR", done
    assert modes(users.home) == before


@pytest.mark.covers("S14.1")
def test_who_leaves_the_group_is_out(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    users.ben.json("register", "ben")
    users.ben.groups = []
    assert users.ben.refused("discover") == "DATA_DIR_ERROR"
    with users.ann.hub():
        assert users.ben.asks("hub.ping", {}) == ""
    users.ann.groups = []
    done = users.ann.run("--json", "discover")  # its owner too: what they made would not be the group's
    assert (done.error, done.json["details"]["errno"]) == ("DATA_DIR_ERROR", errno.EPERM)
    assert str(TEAM) in done.json["error_message"]


@pytest.mark.covers("S14.1", "T3.6")
def test_root_is_refused_as_in_any_home_of_another(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    root = Member(users, "root", 0, [TEAM])
    assert root.refused("discover") == "DATA_DIR_ERROR"
    assert root.refused("hub", "start") == "DATA_DIR_ERROR"


@pytest.mark.covers("S14.1")
def test_members_are_no_operators(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    users.ann.json("register", "ann")
    for verb in ("init", "unhalt", "engage ann", "trust .", "hub keys make ben", "hub stop"):
        assert users.ben.refused(*verb.split()) == "NOT_PERMITTED", verb
    token = (users.home / "operator/token").read_text().strip()
    with users.ann.hub():
        assert users.ben.asks("hub.keys_list", {}) == "NOT_PERMITTED"
        assert users.ann.asks("hub.keys_list", {}, operator=token) == {"keys": []}
        assert stat.filemode((users.home / "hub/keys").stat().st_mode) == "drwx------"
    with users.ben.hub() as hub:
        assert users.ann.asks("hub.keys_list", {}, operator=token) == "NOT_PERMITTED"  # it cannot know
        assert users.ann.refused("hub", "stop") == "HUB_OF_ANOTHER"
        assert users.ann.json("engage", "ann")["engaged"] == []
        os.kill(hub.pid, 15)
        assert hub.done().code == 0


@pytest.mark.covers("S14.1")
def test_what_a_member_puts_in_the_place_of_the_operators_is_refused(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    planted = f"""
import os
home = {str(users.home)!r}
os.rename(f"{{home}}/operator", f"{{home}}/old")
os.umask(0)
os.mkdir(f"{{home}}/operator")
open(f"{{home}}/operator/token", "w").write("planted")
"""
    assert users.ben.run(what=planted).code == 0
    for member in (users.ann, users.ben):
        assert member.refused("unhalt") == "DATA_DIR_ERROR"
    users.ben.run(what=f"import shutil; shutil.rmtree({str(users.home / 'operator')!r})")
    assert users.ben.refused("unhalt") == "NOT_PERMITTED"
    assert not (users.home / "operator").exists()
    readable = users.home.parent / "hers"
    readable.mkdir()
    (readable / "token").write_text("known to all")
    os.chown(readable / "token", users.ann.uid, TEAM)
    assert users.ben.run(what=f"import os; os.symlink({str(readable)!r}, {str(users.home / 'operator')!r})").code == 0
    assert users.ann.refused("unhalt") == "DATA_DIR_ERROR"
    (users.home / "operator").unlink()
    (users.home / "accord.yml").write_text("engine: sqlite:/tmp/elsewhere.db\n")
    os.chown(users.home / "accord.yml", users.ben.uid, TEAM)
    assert users.ann.refused("discover") == "INVALID_CONFIG"


@pytest.mark.covers("S14.1")
def test_tokens_are_their_members(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    users.ann.json("register", "ann")
    users.ben.json("register", "ben")
    assert users.ben.refused(*HELLO) == "TOKEN_MISSING"
    assert users.ann.refused("check", "ben") == "TOKEN_MISSING"  # though she is the operator
    assert users.ben.refused("register", "ann", "--resume") == "TOKEN_MISSING"
    token = users.home / "agents/ann.token"
    look = "import os, sys; print(os.access(sys.argv[1], os.R_OK))"
    assert (users.ben.run(str(token), what=look).out, users.ann.run(str(token), what=look).out) == ("False\n", "True\n")
    users.ben.json("register", "ann", "--force")
    assert token.stat().st_uid == users.ben.uid
    assert users.ann.refused(*HELLO) == "TOKEN_MISSING"


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
def test_a_command_is_not_sent_to_the_hub_of_another(users: Machine) -> None:
    """Who sits at the socket is shown what the command shows, and asks it for tokens."""
    users.ann.json("init", "--group", str(TEAM))
    users.ann.json("register", "ann")
    spy = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listening.listen()
while True:
    connection, _ = listening.accept()
    print(connection.recv(1000), flush=True)
    connection.close()
"""
    with users.ann.hub():
        pass
    (users.home / "hub/socket").unlink()
    process = users.ben.start(str(users.home / "hub/socket"), what=spy)
    wait_until((users.home / "hub/socket").exists, "the spy")
    users.ann.json(
        "send",
        "--from",
        "ann",
        "--to",
        "ann",
        "--message",
        "secret",
        ACCORD_TOKEN=(users.home / "agents/ann.token").read_text().strip(),
    )
    assert process.kill().out in ("", "b''\n")


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
from accord.store.engines.files import disk
from tests.robustness.worker import make_changes
disk.RESTART_EVERY = 8
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


MAKE = """
import sys, time
from accord import errors
from accord.store.local import folder
from accord.store.open import open_store
home, at = sys.argv[1:]
while time.time() < float(at):
    pass
for n in range(1000):
    try:
        folder.make_folder(f"{home}/folder{n}")
        open(folder.open_private(f"{home}/folder{n}/file"), "rb").close()
        if n < 100:
            open_store(f"sqlite:{home}/store{n}.db").close()
    except errors.AccordError as error:
        print(error)
"""


@pytest.mark.covers("S14.1")
def test_who_comes_while_another_makes_something_may_use_it(users: Machine) -> None:
    users.ann.json("init", "--group", str(TEAM))
    at = str(time.time() + 0.2)
    racing = [member.start(str(users.home), at, what=MAKE) for member in (users.ann, users.ben)]
    assert [process.done().out for process in racing] == ["", ""]
    assert {path.stat().st_uid for path in users.home.glob("folder*")} == {users.ann.uid, users.ben.uid}, "no race"


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


@pytest.mark.covers("S14.1")
def test_which_groups_and_homes(users: Machine) -> None:
    ann = users.ann
    assert ann.refused("init", "--group", "no-such-group") == "GROUP_NOT_FOUND"
    done = ann.run("--json", "init", "--group", "0")
    assert (done.error, done.json["details"]["yours"]) == ("NOT_IN_GROUP", f"{TEAM}, {ann.uid}")
    made = ann.json("init", "--group", str(TEAM))
    assert (made["group"], made["closed_above"]) == (str(TEAM), None)
    assert ann.json("init", "--group", str(TEAM))["group"] == str(TEAM)  # once more
    assert ann.refused("init", "--group", str(ann.uid)) == "HOME_IN_USE"
    own = {"ACCORD_HOME": str(ann.folder / "own")}
    assert ann.json("init", **own)["group"] is None
    assert ann.refused("init", "--group", str(TEAM), **own) == "HOME_IN_USE"
    deep = {"ACCORD_HOME": str(users.home.parent / ("long" * 30))}
    assert ann.refused("init", "--group", str(TEAM), **deep) == "DATA_DIR_ERROR"
    closed = ann.json("init", "--group", str(TEAM), ACCORD_HOME=str(ann.folder / "closed"))
    assert closed["closed_above"] == str(ann.folder)
    assert "chmod o+x" in ann.run("init", ACCORD_HOME=str(ann.folder / "closed")).out


@pytest.mark.covers("S14.1")
def test_a_private_home_stays_so_in_a_folder_of_a_group(users: Machine) -> None:
    os.chown(users.home.parent, users.ann.uid, TEAM)
    users.home.parent.chmod(0o2770)
    for first in (["register", "ann"], ["unregister", "ann"], ["hub", "status"], ["init"]):
        users.ann.run(*first, ACCORD_HOME=str(users.home.parent / first[0]))
    found = {name: mode for name, mode in modes(users.home.parent).items() if not name.startswith("hub")}
    assert {"register/store.db", "unregister", "init/store.db"} <= set(found)
    assert set(found.values()) == {"drwx------", "-rw-------"}, found


@pytest.mark.covers("S14.1")
def test_alone_in_a_group() -> None:
    """What can be seen without other users: a home for one's own group, with and without a hub."""
    with somebody() as user:
        check_alone(user, os.getegid())


def check_alone(user: User, gid: int) -> None:
    user.json("init", "--group", str(gid))
    user.json("hub", "start")
    user.json("register", "ann")
    user.json("send", "--from", "ann", "--to", "ann", "--message", "hello")
    assert len(user.json("check", "ann")["messages"]) == 1
    assert user.json("doctor")["healthy"]
    found = modes(user.home)
    private = {name for name, mode in found.items() if mode in ("drwx------", "-rw-------")}
    assert {name.split("/")[0] for name in private} == {"operator", "agents", "hub"}, private
    assert {name for name in private if name.startswith("agents")} == {"agents/ann.token"}
    assert {name.split("/")[1] for name in private if name.startswith("hub")} == {"keys"}
    assert set(found.values()) == {"drwxrws---", "-rw-rw----", "srw-rw----", "drwx------", "-rw-------"}
    assert json.loads((user.home / "hub/lock").read_text())["port"]


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
