"""What is made in a home of a group is for the group and nobody else, whatever the umask, from the first moment."""

import json
import os
import stat
import time

import pytest

from tests.cli.users import User
from tests.group.members import HELLO, TEAM, Machine, modes
from tests.hub.hubs import somebody


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
