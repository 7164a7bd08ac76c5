"""Homes that cannot be used, full disks, and homes that are used: for whom, and by whom."""

import errno
import os
import pwd
import shutil
import stat
from pathlib import Path

import pytest

from tests.cli.users import EXIT_CODES, NOBODY, Done, User, contents
from tests.robustness.disks import need_root, small_disk

MAIL = ("send", "--from", "ann", "--to", "ben", "--message")
VERBS = [["discover"], ["register", "zoe"], [*MAIL, "x"], ["check", "ann"], ["init"], ["search", "x"]]


def check_refused(done: Done, path: Path, number: int) -> None:
    assert (done.code, done.error, done.err) == (73, "DATA_DIR_ERROR", ""), done
    assert Path(done.json["details"]["path"]).is_relative_to(path), done
    assert done.json["details"]["errno"] == number, done
    assert str(path) in done.json["error_message"]


@pytest.mark.covers("T3.6")
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_home_that_is_a_file(verb: list[str], user: User) -> None:
    user.home.write_text("something else")
    check_refused(user.run("--json", *verb), user.home, errno.ENOTDIR)
    below = user.home / "below"
    check_refused(user.run("--json", *verb, "--home", str(below)), user.home, errno.ENOTDIR)
    assert user.home.read_text() == "something else"
    people = user.run(*verb)
    assert (people.code, people.error, people.out) == (73, "DATA_DIR_ERROR", "")


@pytest.mark.covers("T3.6")
def test_what_only_the_operator_may_names_the_home_too(user: User) -> None:
    """And does not take its owner for an agent."""
    user.home.write_text("something else")
    (user.work / "accord.yml").touch()
    for verb in (["trust", "."], ["engage", "--all"]):
        check_refused(user.run("--json", *verb), user.home, errno.ENOTDIR)


@pytest.mark.covers("T3.6")
@pytest.mark.parametrize("where", ["/proc/accord", "/proc/accord/home", "/dev/null", "/sys/accord"])
def test_a_home_where_none_can_be(where: str, user: User) -> None:
    done = user.run("--json", "discover", "--home", where)
    assert (done.code, done.error) == (73, "DATA_DIR_ERROR"), done
    assert done.json["details"]["errno"] in (errno.ENOENT, errno.EPERM, errno.EACCES, errno.ENOTDIR)


@pytest.mark.covers("T3.6")
@pytest.mark.parametrize("where", ["x" * 5000, "/".join(["x" * 250] * 20), "a\nb", "\x1b[31m", "x" * 300], ids=len)
def test_a_home_with_a_strange_name(where: str, user: User) -> None:
    done = user.run("--json", "discover", "--home", where)
    if len(where) < 256:
        assert done.code == 0
        assert (user.work / where).is_dir()
    else:
        assert (done.code, done.error, done.json["details"]["errno"]) == (73, "DATA_DIR_ERROR", errno.ENAMETOOLONG)


@pytest.mark.covers("T3.6")
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_home_of_somebody_else(verb: list[str], ann: User) -> None:
    """Readable or not, it is refused, and stays as it is."""
    need_root()
    before = contents(ann.home)
    for mode in (0o755, 0o777, 0o700):
        ann.home.chmod(mode)
        done = ann.as_nobody("--json", *verb)
        # Whichever is met first: that the home is another's, or that a file in it is.
        check_refused(done, ann.home, errno.EPERM if "it belongs to user" in done.out else errno.EACCES)
    assert contents(ann.home) == before


@pytest.mark.covers("T3.6")
def test_somebody_elses_home_is_refused_to_root_as_well(ann: User) -> None:
    need_root()
    os.chown(ann.home, NOBODY, NOBODY)
    done = ann.run("--json", "discover")
    check_refused(done, ann.home, errno.EPERM)
    assert str(NOBODY) in done.json["error_message"]


@pytest.mark.covers("T3.6")
@pytest.mark.parametrize("mode", [0o000, 0o500, 0o300, 0o600], ids="{:03o}".format)
def test_a_home_that_its_owner_closed(mode: int, user: User) -> None:
    need_root()
    os.chown(user.folder, NOBODY, NOBODY)
    assert user.as_nobody("register", "ann").code == 0
    user.home.chmod(mode)
    check_refused(user.as_nobody("--json", "check", "ann"), user.home, errno.EACCES)
    check_refused(user.as_nobody("--json", "register", "ben"), user.home, errno.EACCES)
    user.home.chmod(0o700)
    assert user.as_nobody("check", "ann").code == 0


@pytest.mark.covers("T3.6")
@pytest.mark.parametrize("part", ["agents", "agents/ann.token"])
def test_a_token_that_cannot_be_read(part: str, user: User) -> None:
    need_root()
    os.chown(user.folder, NOBODY, NOBODY)
    assert user.as_nobody("register", "ann").code == 0
    (user.home / part).chmod(0)
    check_refused(user.as_nobody("--json", "check", "ann"), user.home / "agents", errno.EACCES)


@pytest.mark.covers("T3.6")
def test_where_no_home_can_be_made(user: User) -> None:
    need_root()
    check_refused(user.as_nobody("--json", "discover"), user.home, errno.EACCES)
    assert not user.home.exists()


@pytest.mark.covers("T3.6")
def test_a_home_on_a_disk_that_may_only_be_read(user: User, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        home = disk.path / "home"
        user.json("--home", str(home), "register", "ann")
        disk.mount_again("ro")
        check_refused(user.run("--json", "--home", str(home), "check", "ann"), home, errno.EROFS)
        check_refused(user.run("--json", "--home", str(disk.path / "new"), "discover"), disk.path, errno.EROFS)


@pytest.mark.covers("T3.6")
@pytest.mark.parametrize("name", ["store.db", "agents", "cache", "operator"])
def test_a_link_or_a_folder_where_a_file_should_be(name: str, ann: User) -> None:
    """Each is an error with a code and a cure, or does no harm."""
    path = ann.home / name
    if path.is_dir():
        path.rename(ann.folder / "aside")
        path.write_text("something else")
    elif path.exists():
        path.unlink()
        path.mkdir()
    for verb in [*VERBS, ["register", "ann", "--resume"], ["unregister", "ann"], ["trust", "."], ["config"]]:
        done = ann.run("--json", *verb)
        assert done.code in EXIT_CODES, (verb, done)
        assert done.json["status"] == ("ok" if done.code == 0 else "error")


@pytest.mark.covers("T3.5")
def test_a_full_disk(user: User, tmp_path: Path) -> None:
    """What was there can be read, nothing is half-written, and all works again when there is room."""
    with small_disk(tmp_path / "disk", "3m") as disk:
        user.env["ACCORD_HOME"] = str(disk.path / "home")
        for name in ("ann", "ben"):
            user.json("register", name)
        user.json(*MAIL, "before")
        disk.fill()
        for words in ([*MAIL, "x" * 100_000], ["register", "zoe"], [*MAIL, "during"]):
            done = user.run("--json", *words)
            assert (done.code, done.error, done.err) == (74, "STORAGE_FULL", ""), (words, done)
            assert "Free some space" in done.json["error_message"]
        assert [found["identity"] for found in user.json("discover")["identities"]] == ["human", "ann", "ben"]
        peeked = user.json("check", "ben", "--peek")
        assert [message["message"] for message in peeked["messages"]] == ["before"]
        disk.free()
        user.json(*MAIL, "after")
        user.json("register", "zoe")
        assert [message["message"] for message in user.json("check", "ben")["messages"]] == ["before", "after"]
        assert len(user.json("sent", "ann")["messages"]) == 2


@pytest.mark.covers("T3.5")
def test_a_registration_that_found_no_room_leaves_nothing(user: User, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "3m") as disk:
        user.env["ACCORD_HOME"] = str(disk.path / "home")
        user.json("register", "ann")
        disk.fill()
        assert user.run("register", "zoe").error == "STORAGE_FULL"
        assert sorted(os.listdir(disk.path / "home" / "agents")) == [".lock", "ann.token"]


@pytest.mark.covers("T3.5", "T1.6")
def test_a_disk_too_full_to_acknowledge_on(user: User, tmp_path: Path) -> None:
    """What `check` printed and could not acknowledge comes again."""
    with small_disk(tmp_path / "disk", "3m") as disk:
        user.env["ACCORD_HOME"] = str(disk.path / "home")
        for name in ("ann", "ben"):
            user.json("register", name)
        user.json(*MAIL, "before")
        disk.fill()
        done = user.run("check", "ben")
        assert "before" in done.out
        assert (done.code, done.err.rpartition("[")[2]) == (74, "STORAGE_FULL]\n"), done
        disk.free()
        assert len(user.json("check", "ben")["messages"]) == 1
        assert len(user.json("check", "ben")["messages"]) == 0


@pytest.mark.covers("T3.5", "T3.6")
@pytest.mark.parametrize("words", [["register", "ann"], ["discover"], ["init"]], ids=lambda words: words[0])
def test_a_disk_with_no_room_for_a_home(words: list[str], user: User, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "3m") as disk:
        disk.fill()
        user.env["ACCORD_HOME"] = str(disk.path / "home")
        done = user.run("--json", *words)
        assert (done.code, done.error) == (74, "STORAGE_FULL"), done
        disk.free()
        user.json(*words)


@pytest.mark.covers("S14.1")
@pytest.mark.parametrize("umask", [0o000, pytest.param(0o777, marks=pytest.mark.more)], ids="umask-{:03o}".format)
def test_private_whatever_the_umask(umask: int, user: User) -> None:
    """As a user to whom the bits matter: root would not notice a home that its owner cannot enter."""
    need_root()
    os.chown(user.folder, NOBODY, NOBODY)
    os.chown(user.work, NOBODY, NOBODY)
    user.env["ACCORD_HOME"] = str(user.folder / "deep" / "home")
    (user.work / "accord.yml").write_text("inbox_limit: 5\n")
    halts = user.folder / ".config"

    for words in (
        ["init"], ["register", "ann"], ["register", "ben"], ["config"], ["trust", "."], [*MAIL, "secret"],
        ["search", "secret"], ["check", "ben"], ["halt", "lunch"], ["unhalt"], ["engage", "--all"],
        ["register", "ann", "--force"],
    ):  # fmt: skip
        done = user.as_nobody(*words, umask=umask)
        assert done.code == 0, (words, done)
    top = user.folder / "deep"
    found = [top, *top.rglob("*"), halts, *halts.rglob("*")]
    modes = {str(path.relative_to(user.folder)): stat.filemode(path.lstat().st_mode) for path in found}
    assert set(modes.values()) == {"drwx------", "-rw-------"}, modes
    for part in ("store.db", "agents/ann.token", "operator/token", f"cache/settings-{NOBODY}.json", "cache/search.db"):
        assert f"deep/home/{part}" in modes


def test_two_homes_never_mix(user: User) -> None:
    homes = [str(user.folder / name) for name in ("one", "two")]
    for number, home in enumerate(homes):
        user.json("--home", home, "register", "ann")
        user.json("--home", home, "send", "--from", "ann", "--to", "ann", "--message", f"in {number}")
    tokens = {(Path(home) / "agents/ann.token").read_text() for home in homes}
    assert len(tokens) == 2
    for number, home in enumerate(homes):
        (message,) = user.json("--home", home, "check", "ann", "--peek")["messages"]
        assert message["message"] == f"in {number}"
        (found,) = user.json("--home", home, "search", "in")["messages"]
        assert found["message_id"] == message["message_id"]
        other = user.run("--home", homes[1 - number], "--json", "ack", "--identity", "ann", message["message_id"])
        assert other.error == "MESSAGE_NOT_FOUND"
        token = (Path(home) / "agents/ann.token").read_text().strip()
        strange = user.run("--home", homes[1 - number], "check", "ann", env={"ACCORD_TOKEN": token})
        assert strange.code == 77, strange
    assert not user.home.exists()


def test_reading_without_a_home_makes_none(user: User) -> None:
    for words in (["config"], ["--help"], ["check", "--help"], ["config", "--json"]):
        assert user.run(*words).code == 0
    assert not user.home.exists()


def test_a_removed_working_directory(user: User) -> None:
    """What names no relative path works; what does is refused, and not looked for elsewhere."""
    user.json("register", "ann")
    gone = user.folder / "gone"
    gone.mkdir()

    def run(*words: str) -> Done:
        gone.mkdir(exist_ok=True)
        program = f"rmdir {gone} && exec accord " + " ".join(words)
        return user.run(command=("/bin/sh", "-c", program), cwd=gone)

    assert run("check", "ann").code == 0
    assert run("config").code == 0
    done = run("send", "--from", "ann", "--to", "ann", "--message-file", "etc/passwd")
    assert done.code == 66, f"it sent a file of another folder: {done}"


def test_a_relative_home_in_a_removed_working_directory(user: User, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    elsewhere = Path("/", user.folder.name)
    done = user.run(
        command=("/bin/sh", "-c", f"rmdir {gone} && exec accord --json init --home {elsewhere.name}"), cwd=gone
    )
    made = elsewhere.exists()
    shutil.rmtree(elsewhere, ignore_errors=True)
    assert not made, "it made a home at the root of the file system"
    assert (done.code, done.error) == (73, "DATA_DIR_ERROR"), done


def test_no_home_folder(user: User) -> None:
    """Without $HOME the password file knows; a user who is not in it is told what to do."""
    need_root()
    done = user.as_nobody("--json", "config", env={"HOME": None, "ACCORD_HOME": None})
    assert done.json["home"] == f"{pwd.getpwuid(NOBODY).pw_dir}/.accord"
    assert user.run("discover", env={"HOME": None}).code == 0


def test_no_home_folder_at_all(user: User) -> None:
    """A user who is not in the password file, as in a container, is told what to do."""
    need_root()
    user.work.chmod(0o777)
    for words in (["discover"], ["halt"]):
        done = user.as_nobody("--json", *words, env={"HOME": None, "ACCORD_HOME": None}, user=54321)
        assert list(user.work.iterdir()) == [], "a folder called ~ was made"
        assert (done.code, done.error) == (73, "DATA_DIR_ERROR"), done
