"""`accord doc edit`: an editor, and what others write meanwhile; no text is ever lost."""

import os
import pty
import signal
import stat
import time
from pathlib import Path

import pytest

from tests.cli.users import ACCORD, Done, User

pytestmark = pytest.mark.covers("S5")


WITH_HUB = pytest.mark.parametrize("has_hub", [False, True], ids=["alone", "hub"], indirect=True)


@pytest.fixture
def user(user: User) -> User:
    """Whose temporary files lie in a folder of their own."""
    (user.folder / "tmp").mkdir()
    user.env["TMPDIR"] = str(user.folder / "tmp")
    return user


def editor(user: User, *scripts: str, name: str = "editor") -> dict[str, str | None]:
    """The environment of somebody with an editor that runs one script after another, the last one for ever.

    In a script the file is `$1`, and `theirs` writes what another one does.
    """
    path = user.work / name
    steps = [f"{n})\n{script}\n;;" for n, script in enumerate(scripts[:-1])]
    path.write_text(
        f"""#!/bin/sh
theirs() {{ printf "$1" | {ACCORD} doc write plan - >/dev/null; }}
step=$(cat {path}.step 2>/dev/null || echo 0); echo $((step + 1)) >{path}.step
case $step in
{chr(10).join(steps)}
*)
{scripts[-1]}
;;
esac
"""
    )
    path.chmod(0o755)
    return {"EDITOR": str(path)}


def write(user: User, text: str) -> None:
    user.json("doc", "write", "plan", "--text", text)


def text_of(user: User) -> str:
    return user.run("doc", "read", "plan").out


def left(user: User) -> list[Path]:
    """The files that were not removed."""
    return [path for path in (user.folder / "tmp").rglob("*") if path.is_file()]


def kept(user: User, done: Done) -> str:
    """The text that could not be written, and that the error names the file of."""
    [path] = left(user)
    assert done.error == "NOT_WRITTEN"
    assert str(path) in done.err
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    return path.read_text(errors="replace")


@WITH_HUB
def test_what_is_edited_is_written(user: User) -> None:
    write(user, "one\n")
    done = user.run("doc", "edit", "plan", env=editor(user, 'echo two >>"$1"'))
    assert (done.code, done.out, done.err) == (0, "plan is at revision 2\n", "")
    assert text_of(user) == "one\ntwo\n"
    assert left(user) == []


def test_an_edit_keeps_the_end(user: User) -> None:
    def end() -> object:
        return user.json("doc", "read", "plan")["expires_at"]

    user.json("doc", "write", "plan", "--text=one", "--ttl=3600")
    before = end()
    assert before
    user.run("doc", "edit", "plan", env=editor(user, 'echo two >>"$1"'))
    assert (text_of(user), end()) == ("onetwo\n", before)
    user.run("doc", "edit", "plan", "--ttl=0", env=editor(user, 'echo three >>"$1"', name="other"))
    assert end() is None


def test_a_new_document(user: User) -> None:
    done = user.run("--json", "doc", "edit", "memory/notes.md", env=editor(user, 'basename "$1" >"$1"'))
    assert (done.json["revision"], done.json["changed"]) == (1, True)
    assert user.run("doc", "read", "memory/notes.md").out == "text.md\n"  # editors go by the end of the name


def test_what_is_not_changed_is_not_written(user: User) -> None:
    write(user, "one")
    for name, revision in (("plan", 1), ("nothing", 0)):
        done = user.run("doc", "edit", name, env=editor(user, "true"))
        assert (done.code, done.out) == (0, f"{name} was not changed\n")
        assert user.json("doc", "edit", name, env=editor(user, "true"))["revision"] == revision
    assert [one["name"] for one in user.json("doc", "list")["documents"]] == ["plan"]
    assert left(user) == []


def test_visual_comes_before_editor_and_has_words(user: User) -> None:
    write(user, "one\n")
    wanted = editor(user, 'echo "$1" >"$2"')["EDITOR"]
    done = user.run("doc", "edit", "plan", env={"VISUAL": f"{wanted} 'two words; false'", "EDITOR": "false"})
    assert done.code == 0, done
    assert text_of(user) == "two words; false\n"


def test_changes_that_do_not_meet_are_merged(user: User) -> None:
    write(user, "a\nb\nc\n")
    env = editor(user, "theirs 'a\\nb\\nC\\n'; sed -i s/a/A/ \"$1\"")
    done = user.run("doc", "edit", "plan", env=env)
    assert (done.code, done.out) == (0, "plan is at revision 3\n")
    assert "revision 2" in done.err
    assert "both changes" in done.err
    assert text_of(user) == "A\nb\nC\n"
    assert left(user) == []


@WITH_HUB
def test_changes_that_meet_are_shown_until_somebody_chooses(user: User) -> None:
    write(user, "a\nb\nc\n")
    first = "theirs 'a\\ntheirs\\nc\\n'; sed -i s/b/mine/ \"$1\""
    second = f"cp \"$1\" {user.folder}/seen; theirs 'a\\ntheirs\\nc\\nmore\\n'; printf 'a\\nboth\\nc\\n' >\"$1\""
    done = user.run("doc", "edit", "plan", env=editor(user, first, second))
    assert (done.code, done.out) == (0, "plan is at revision 4\n"), done
    assert (user.folder / "seen").read_text() == (
        "a\n<<<<<<< yours\nmine\n||||||| revision 1\nb\n=======\ntheirs\n>>>>>>> revision 2\nc\n"
    )
    assert text_of(user) == "a\nboth\nc\nmore\n"
    assert left(user) == []


@pytest.mark.parametrize("second", ["true", 'echo more >>"$1"', "false"])
def test_nobody_chooses(user: User, second: str) -> None:
    """Nothing with marks in it is written; the file has both texts."""
    write(user, "a\n")
    done = user.run("doc", "edit", "plan", env=editor(user, 'theirs "theirs\\n"; echo mine >"$1"', second))
    text = kept(user, done)
    assert "mine\n" in text
    assert "theirs\n" in text
    assert text_of(user) == "theirs\n"


def test_it_is_removed_meanwhile(user: User) -> None:
    write(user, "a\n")
    env = editor(user, f'{ACCORD} doc rm plan >/dev/null; echo mine >"$1"', 'echo chosen >"$1"')
    done = user.run("doc", "edit", "plan", env=env)
    assert (done.code, done.out) == (0, "plan is at revision 3\n"), done
    assert text_of(user) == "chosen\n"


def test_others_wrote_the_same(user: User) -> None:
    write(user, "a\n")
    done = user.run("doc", "edit", "plan", env=editor(user, 'theirs "b\\n"; echo b >"$1"'))
    assert (done.code, done.out) == (0, "plan is at revision 2\n")


@pytest.mark.parametrize(
    ("script", "text", "why"),
    [
        ('echo mine >"$1"; exit 3', "mine\n", "ended with 3"),
        ('echo mine >"$1"; kill -9 $$', "mine\n", "ended with -9"),
        ("printf 'caf\\351' >\"$1\"", "caf\ufffd", "not UTF-8"),
        ('head -c 600000 /dev/zero >"$1"', "\0" * 600_000, "at most"),
        ('echo mine >"$1"', "mine\n", "no longer counts"),
    ],
    ids=["fails", "dies", "latin-1", "too large", "fenced"],
)
def test_what_cannot_be_written_is_kept(user: User, script: str, text: str, why: str) -> None:
    write(user, "one\n")
    done = user.run("doc", "edit", "plan", "--fence", "never-granted:7", env=editor(user, script))
    assert done.code == 75
    assert why in done.err
    assert kept(user, done) == text
    assert text_of(user) == "one\n"


@pytest.mark.parametrize("command", ["false", "no-such-editor", "'"])
def test_an_editor_that_does_nothing(user: User, command: str) -> None:
    write(user, "one\n")
    done = user.run("doc", "edit", "plan", env={"EDITOR": command})
    assert done.error == ("USAGE" if command == "'" else "EDITOR_FAILED")
    assert left(user) == []


def test_an_editor_that_removes_the_file(user: User) -> None:
    write(user, "one\n")
    done = user.run("doc", "edit", "plan", env=editor(user, 'rm "$1"'))
    assert done.error == "FILE_UNREADABLE"
    assert left(user) == []
    assert text_of(user) == "one\n"


def test_without_a_terminal_there_must_be_an_editor(user: User) -> None:
    write(user, "one\n")
    assert user.run("doc", "edit", "plan").error == "USAGE"
    assert user.run("doc", "edit").error == "USAGE"
    assert user.run("doc", "edit", "../x", env={"EDITOR": "true"}).error == "INVALID_NAME"


def test_an_interrupt_is_the_editors(user: User) -> None:
    """At a terminal Ctrl-C reaches both; one that goes on after it loses nothing."""
    write(user, "one\n")
    env = editor(user, f'trap "echo two >>$1" INT; touch {user.folder}/ready; sleep 0.1; sleep 0.5; sleep 0.1; exit 0')
    environment = {**user.env, **env, "TERM": "xterm"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(ACCORD, [ACCORD, "doc", "edit", "plan"], {k: v for k, v in environment.items() if v})
    signal.alarm(20)
    while not (user.folder / "ready").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    os.write(terminal, b"\x03")
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.alarm(0)
    os.close(terminal)
    assert code == 0
    assert text_of(user) == "one\ntwo\n"
