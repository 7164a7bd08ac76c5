"""Strangers get nothing of a group's home, and members neither each other's tokens nor the operator's right."""

import errno
import os
import stat

import pytest

from tests.group.members import ASK, HELLO, TEAM, Machine, Member, modes
from tests.hub.hubs import wait_until


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
