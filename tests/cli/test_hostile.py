"""What others wrote, or typed, or named: refused, or shown so that it is no command to a terminal."""

import json
import os
import re
import unicodedata
from pathlib import Path

import pytest

from accord import errors
from accord.cli import main
from tests.cli.users import ACCORD, EXIT_CODES, Done, User
from tests.robustness.disks import need_root

MAIL = ("send", "--from", "ann", "--to", "ben")

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
EVIL = (
    "\x1b]52;c;cm0gLXJm\x07 \x1b]0;title\x1b\\ \x1b[31mred \x1b[2J \x1bP1$r\x1b\\ \x9b31m \x9d52;c;eA==\x9c "
    f"\x85 \x7f \x08\x08\x08 \r overwritten \x00 \x0e \x0b \x0c {BIDI} end"
)
OWN = re.compile(rb"\x1b\[(?:0|1|2)m")  # the colours of accord itself


def raw(text: str) -> set[str]:
    """What in a text would act on a terminal, but for ends of lines and tabs."""
    return {char for char in text if unicodedata.category(char) == "Cc" and char not in "\n\t"} | (
        set(text) & set(BIDI)
    )


def check_harmless(done: Done) -> None:
    assert raw(done.out + done.err) == set(), done


def evil_body() -> bytes:
    return EVIL.encode()


@pytest.mark.covers("Q4")
def test_messages(ann: User) -> None:
    assert ann.run(*MAIL, "--conversation", "talk", "-", stdin=evil_body()).code == 0
    for verb in (["check", "ben", "--peek"], ["sent", "ann"], ["thread", "talk"], ["search", "overwritten"]):
        people, programs = ann.run(*verb), ann.run("--json", *verb)
        assert people.code == programs.code == 0
        check_harmless(people)
        check_harmless(programs)
        assert "overwritten" in people.out
        assert r"\u001b]52;c;cm0gLXJm\u0007" in people.out
        (message,) = programs.json["messages"]
        assert message["message"] == EVIL, "a program gets exactly what was sent"


@pytest.mark.covers("Q4")
def test_messages_at_a_terminal(ann: User) -> None:
    assert ann.run(*MAIL, "--conversation", "talk", "-", stdin=evil_body()).code == 0
    for verb in (["check", "ben", "--peek"], ["sent", "ann"], ["thread", "talk"], ["search", "overwritten"]):
        for words in (verb, ["--json", *verb]):
            code, screen = ann.at_terminal(*words)
            assert code == 0
            shown = OWN.sub(b"", screen).replace(b"\r\n", b"\n").decode()
            assert raw(shown) == set(), shown
            assert "overwritten" in shown


@pytest.mark.covers("Q4")
@pytest.mark.parametrize(
    "words",
    [
        [EVIL], [f"--{EVIL}"], ["check", EVIL], ["check", f"--{EVIL}"], ["register", EVIL], ["send", "--to", EVIL],
        ["send", "--from", "ann", "--to", "ben", "--message-file", EVIL], ["ack", "--identity", "ann", EVIL],
        ["--engine", EVIL, "discover"], ["--engine", f"sqlite:{EVIL}", "discover"], ["thread", EVIL],
        ["check", "ann", "--limit", EVIL], ["send", "--type", EVIL, "--from", "ann", "--to", "ben", "--message", "x"],
        ["trust", EVIL], ["channel", EVIL], ["channel", "join", EVIL, "--identity", "ann"], ["discover", EVIL],
        ["thread", "--", EVIL.replace(" ", "")], ["search", EVIL], ["engage", EVIL], ["completion", EVIL],
        ["send", "--conversation", EVIL, "--from", "ann", "--to", "ben", "--message", "x"],
    ],
)  # fmt: skip
def test_errors(words: list[str], ann: User) -> None:
    words = [word.replace("\0", "") for word in words]  # which no command line can hold
    for asked in (words, ["--json", *words], ["-v", *words]):
        done = ann.run(*asked)
        assert done.code in EXIT_CODES, done
        check_harmless(done)
    screen = ann.at_terminal(*words)[1]
    assert raw(OWN.sub(b"", screen).replace(b"\r\n", b"\n").decode()) == set()


@pytest.mark.covers("Q4")
def test_the_reason_of_a_halt(ann: User) -> None:
    """Anybody may write the file."""
    for reason in (EVIL.replace("\0", ""), "\udcff"):
        check_harmless(ann.run("halt", os.fsencode(reason)))
        for words in (["discover"], [*MAIL, "--message", "x"], ["halt"], ["check", "ann"]):
            for asked in (words, ["--json", *words]):
                check_harmless(ann.run(*asked))


@pytest.mark.covers("Q4")
@pytest.mark.parametrize("name", [EVIL.replace("\0", "").replace("/", ""), "a\nb"], ids=["controls", "line"])
def test_paths(name: str, user: User) -> None:
    """A home, a project and a file to send, in a folder that somebody else gave its name."""
    folder = user.folder / name
    folder.mkdir()
    (folder / "accord.yml").write_text("message_limit: nonsense\n")
    for words in (["config"], ["trust", "."], ["discover"]):
        check_harmless(user.run(*words, cwd=folder))
        check_harmless(user.run("--json", *words, cwd=folder))
    (folder / "accord.yml").write_text("engine: memory\n")
    check_harmless(user.run("discover", cwd=folder))
    for words in (["trust", "."], ["config"], ["init"], ["register", "ann"], ["discover"]):
        done = user.run(*words, "--home", "home", cwd=folder)
        check_harmless(done)
    check_harmless(user.run("send", "--from", "ann", "--to", "ann", "--message-file", str(folder), cwd=folder))


@pytest.mark.covers("Q3")
@pytest.mark.parametrize("part", ["home", "folder", "file"])
def test_names_that_are_not_utf8(part: str, ann: User) -> None:
    """On Linux a name is bytes."""
    folder = os.fsencode(ann.folder) + b"/\xff\xfe"
    os.mkdir(folder)
    with open(folder + b"/accord.yml", "wb") as file:
        file.write(b"inbox_limit: 7\nengine: ''\n")
    where = Path(os.fsdecode(folder))
    for asked in ([], ["--json"]):
        if part == "home":
            for words in (["init"], ["register", "ann"], ["check", "ann"], ["search", "x"], ["config"]):
                done = ann.run(*words, *asked, "--home", folder + b"/home")
                assert done.code in EXIT_CODES, (words, done)
        elif part == "folder":
            for words in (["config"], ["trust", "."], ["config"], ["discover"]):
                done = ann.run(*words, *asked, cwd=where)
                assert done.code in EXIT_CODES, (words, done)
        else:
            done = ann.run(*MAIL, *asked, "--message-file", folder + b"/accord.yml")
            assert done.code == 0, done
        if asked:
            json.loads(done.out)


@pytest.mark.covers("Q3")
@pytest.mark.parametrize("name", ["ACCORD_TOKEN", "ACCORD_AGENT", "ACCORD_ENGINE", "ACCORD_INBOX_LIMIT", "HOME"])
def test_variables_that_are_not_utf8(name: str, ann: User) -> None:
    for words in (["check", "ann"], [*MAIL, "--message", "x"], ["config"]):
        for asked in (words, ["--json", *words]):
            assert ann.run(*asked, env={name: "\udcff"}).code in EXIT_CODES


@pytest.mark.covers("Q3", "T3.11")
@pytest.mark.parametrize(
    "bad", [b"\xff", b"caf\xe9", b"\xc3", b"\xed\xa0\x80", b"ok\x80ok", b"\xf5\x80\x80\x80"], ids=str
)
def test_messages_that_are_not_text(bad: bytes, ann: User) -> None:
    (ann.work / "file").write_bytes(bad)
    for done in (
        ann.run(*MAIL, "--message-file", "file"),
        ann.run(*MAIL, "-", stdin=bad),
        ann.run(*MAIL, "--message", bad),
    ):
        assert (done.code, done.out, done.error) == (65, "", "INVALID_ENCODING")
    assert ann.json("check", "ben")["messages"] == []


@pytest.mark.covers("Q3")
def test_binary_files(ann: User) -> None:
    done = ann.run(*MAIL, "--message-file", ACCORD.replace("accord", "python"))
    assert done.error in ("INVALID_ENCODING", "MESSAGE_TOO_LARGE")
    (ann.work / "zeros").write_bytes(bytes(100))
    assert ann.run(*MAIL, "--message-file", "zeros").code == 0
    assert ann.json("check", "ben")["messages"][0]["message"] == "\0" * 100


@pytest.mark.covers("T3.10")
def test_messages_that_are_too_large(ann: User) -> None:
    most = 1 << 20
    large = ann.work / "large"
    large.write_bytes(b"x" * (most + 1))
    sparse = ann.work / "sparse"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)  # it would fill the memory if it was read
    for words, stdin, found in (
        (["--message-file", "large"], b"", most + 1),
        (["--message-file", "sparse"], b"", 1 << 40),  # which is known before it is read
        (["--message-file", "/dev/zero"], b"", f"more than {most}"),
        (["-"], b"x" * (most + 1), f"more than {most}"),
    ):
        done = ann.run("--json", *MAIL, *words, stdin=stdin)
        assert (done.code, done.error) == (65, "MESSAGE_TOO_LARGE"), done
        assert done.json["details"] == {"most": most, "found": found}
    large.write_bytes(b"x" * most)
    assert ann.run(*MAIL, "--message-file", "large").code == 0
    assert len(ann.json("check", "ben")["messages"][0]["message"]) == most


@pytest.mark.covers("T3.9")
@pytest.mark.parametrize("blank", ["", " ", "\n\t\r\n", "\u3000\u2003", "\x1c\x85"], ids=ascii)
def test_messages_of_nothing(blank: str, ann: User) -> None:
    for done in (ann.run(*MAIL, "--message", blank), ann.run(*MAIL, "-", stdin=blank.encode())):
        assert (done.code, done.error) == (65, "EMPTY_MESSAGE_NOT_ALLOWED"), done


@pytest.mark.covers("Q3")
def test_files_that_are_none(ann: User) -> None:
    os.mkfifo(ann.work / "fifo")
    (ann.work / "loop").symlink_to("loop")
    for name in ("missing", ".", "loop", "", "/proc/self/mem", "x" * 300, "file/below"):
        done = ann.run(*MAIL, "--message-file", name)
        assert (done.code, done.error) == (66, "FILE_UNREADABLE"), (name, done)
    done = ann.run(*MAIL, "--message-file", "fifo")  # nobody writes; it must not wait for ever
    assert done.error in ("FILE_UNREADABLE", "EMPTY_MESSAGE_NOT_ALLOWED")


@pytest.mark.covers("T2.5", "Q3")
@pytest.mark.parametrize(
    "name",
    [
        "../x", "..", ".", "/etc/passwd", "a/b", "a\\b", "a b", "a\nb", "a\tb", "a\x1b[31m", "x" * 65, "x" * 10_000,
        "", "-", "--", "a-", "-a", "1a", "a_b", "ann.token", "é", "\uff41", "\u202eann", "\u0130", "\u212a", "all",
        "hub", "human", "broadcast", "ALL", b"\xff", "a" * 131_000,
    ],
    ids=lambda name: f"{ascii(name)[:20]}-{len(name)}",
)  # fmt: skip
def test_hostile_names(name: str | bytes, user: User) -> None:
    user.json("register", "ann")
    before = sorted(path for path in user.folder.rglob("*"))
    for words in (["register", "--", name], ["unregister", "--identity", name], ["register", "--force", "--", name]):
        done = user.run(*words)
        assert done.code in (2, 65), done
        assert done.error in ("INVALID_IDENTITY", "INVALID_ENCODING", "USAGE")
        check_harmless(done)
        assert len(done.err) < 1000
    assert sorted(path for path in user.folder.rglob("*")) == before
    assert [found["identity"] for found in user.json("discover")["identities"]] == ["human", "ann"]


@pytest.mark.covers("Q3")
@pytest.mark.parametrize("most", [6, 7, 8, 9, 10, 12])
@pytest.mark.parametrize("option", ["", "--json"])
def test_too_few_files_may_be_open(most: int, option: str, ann: User) -> None:
    """Not even the errors may be there to be loaded then."""
    for verb in ("send --from ann --to ben --message x", "search x", "nonsense", "doctor"):
        done = ann.run(command=("/bin/sh", "-c", f"ulimit -n {most}; exec accord {option} {verb}"))
        assert done.code in EXIT_CODES, (verb, done)
        if done.code == 71:
            assert done.error == "TOO_MANY_FILES", (verb, done)
            assert set(done.json if option else ()) in (set(), {"status", "error_code", "error_message", "details"})


def test_the_last_words_are_those_of_the_errors() -> None:
    for (exit, code, text), kind in (
        (main._INTERNAL, errors.AccordError),
        (main._INTERRUPTED, errors.Interrupted),
        (main._TOO_MANY_FILES, errors.TooManyFiles),
    ):
        assert (exit, code, text) == (kind.exit, kind.code, kind.text)


@pytest.mark.covers("Q3")
def test_a_file_that_cannot_be_written_is_not_said_to_be_unreadable(ann: User) -> None:
    done = ann.run("doctor", "--log", "/proc/nothing")
    assert done.error == "FILE_UNWRITABLE", done
    assert "/proc/nothing cannot be written" in done.err


@pytest.mark.covers("Q3")
def test_what_may_not_be_read_is_said_to_be_so(ann: User) -> None:
    need_root()
    for path in [ann.home, *ann.home.rglob("*")]:
        os.chown(path, 54321, -1)
    (ann.home / "agents/ann.token").chmod(0)
    done = ann.as_nobody(*MAIL, "--message", "x", env={"ACCORD_AGENT": "ann"}, user=54321)
    assert done.error == "DATA_DIR_ERROR", done
    assert "this user may not read it" in done.err
    (ann.home).chmod(0)
    done = ann.as_nobody("discover", user=54321)
    assert "this user may not read and write there" in done.err
