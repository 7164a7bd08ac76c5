"""One command in two equal homes, one of which has a hub: what is printed and how it ends must be the same."""

import json
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from accord import __version__
from tests.cli.users import NOBODY, TIMEOUT_S, Done, User
from tests.hubs import Hub
from tests.often import IS_MORE
from tests.robustness.disks import need_root

pytestmark = pytest.mark.covers("Q1")

MEMORY = Path("/dev/shm")
SEND = "send --from ann --to ben --message x --id m1"


class Row(NamedTuple):
    """A command, and whether the hub does it."""

    words: "str | Sequence[str | bytes]"
    hub: bool = True
    stdin: bytes = b""
    env: Mapping[str, str | None] = {}

    @property
    def argv(self) -> "list[str | bytes]":
        return list(shlex.split(self.words)) if isinstance(self.words, str) else list(self.words)


def rows(text: str) -> list[Row]:
    """Commands that a hub does, one on each line."""
    return [Row(line.strip()) for line in text.strip().splitlines()]


ANN = {"ACCORD_AGENT": "ann"}

# Each begins in a home with the agents ann and ben, and goes on with what the rows before did.
TABLE: dict[str, list[Row]] = {
    "help": [
        Row("", hub=False),
        Row("--help", hub=False),
        Row("--version", hub=False),
        *rows("""
            help
            version
            help send
            send --help
            channel
            channel --help
            channel join -h
            check --version
        """),
        Row("hub --help", hub=False),
        Row("completion bash", hub=False),
        Row("firebase rules --uid accord"),
    ],
    "no command": [
        *rows("""
            qqqqqq
            chek ann
            channel jion x
            discover -x
            discover extra
            check a b
            check '' --peek
            check ann --limit 0
            check ann --wait nan
            check ann --peek=1
            send --to
            send --type gossip --from ann --to ben --message x
            register
            search
            ack
            '' discover
            --json=1 discover
        """),
        Row("-x", hub=False),
        Row("--", hub=False),
        Row("''", hub=False),
        Row("--home", hub=False),
        Row("trust", hub=False),
        Row("discover --home"),
    ],
    "agents": [
        *rows("""
            discover
            register zoe
            register zoe
            register ZOE --force
            register zoe --resume
            register a_b
            register human
            register -- --help
            register zed --project .
            unregister zoe
            unregister zoe
            unregister nobody
            -v discover
        """),
        Row("register mia", env=ANN),
        Row("unregister ben", env=ANN),
        Row("discover", hub=False, env={"ACCORD_AGENT": "not a name"}),
    ],
    "sending": [
        *rows("""
            send --from ann --to ben --message hello --id m1
            send --from ann --to ben --message other --id m1
            send --from ann --to ben --message ' '
            send --from ann --to ben --message a --message b
            send --from ann --message x
            send --from ann --to bem,zoe --message x
            send --from zoe --to ann --message x
            send --from human --to all --message 'to all' --id m2
            send --from ben --reply-to m1 --message yes --id m3
            send --from ben --reply-to nothing --message yes
            send --from ann --to ben --message=--json --id m4
            send --from ann --to ben --message --json
            send --from ann --to ben --message-file file --id m5
            send --from ann --to ben --message-file missing
            send --from ann --to ben --message-file .
            send --from ann --to ben --message-file latin1
        """),
        Row("send --from ann --to ben - --id m6", stdin="Grüße 😀\nand more\n".encode()),
        Row("send --from ann --to ben - --id m7", stdin=b"x" * 300_000),
        Row("send --from ann --to ben -", stdin=b"x" * 1_100_000),
        Row("send --from ann --to ben -", stdin=b"caf\xe9"),
        Row("send --from ann --to ben --message x", env={"ACCORD_MESSAGE_LIMIT": "0"}),
        Row("send --from ann --to ben --message xx", env={"ACCORD_MESSAGE_LIMIT": "1"}),
        *rows("check ben"),
    ],
    "checking": [
        *rows("""
            send --from ann --to ben --message 1 --id m1
            send --from ann --to ben --message 2 --id m2
            send --from ann --to ben --message 3 --id m3
            send --from ann --to ben --message 4 --id m4
            check ben --peek
            check ben --limit 1
            ack --identity ben m4
            ack --identity ben nothing m3
            ack --identity ann m3
            check ben --peek
            check ben --wait 0.1
            check ben --wait 0.1
            check nobody
            check human
        """),
        Row("check ann", env=ANN),
        Row("check ben", env=ANN),
        Row("check", env=ANN),
        Row("check ann", env={**ANN, "ACCORD_TOKEN": "0" * 32}),
        Row("check ann", env={"ACCORD_TOKEN": "0" * 32}),
    ],
    "reading": [
        *rows("""
            send --from ann --to ben --message 'a quick \x1b[31mfox' --conversation talk --id m1 --type question
            send --from ben --to ann --message 'a lazy dog' --conversation talk --id m2
            sent ann
            sent ann --limit 1
            sent ann --limit x
            sent nobody
            sent human
            receipt m1
            receipt nothing
            thread talk
            thread talk --limit 1
            thread m1
            thread nothing
            thread ''
            search quick
            search 'quick OR lazy'
            search '"'
            search -- --help
            search nothing
        """),
        Row("sent", env=ANN),
    ],
    "hooks": [
        Row(
            "hook start --brain claude", hub=False, stdin=b'{"session_id": "s", "cwd": "/web", "hook_event_name": "x"}'
        ),
        Row("send --from ann --to web --message hello --id m1"),
        Row("hook step --brain nobody"),
        Row("hook step --brain claude", stdin=b"nonsense"),
        Row("hook step --brain claude", stdin=b'{"session_id": "another"}'),
        Row("receipt m1"),
        Row("hook stop --brain claude", stdin=b'{"session_id": "s"}'),
        Row("hook wait --brain claude", stdin=b'{"session_id": "another"}'),
        Row("hook end --brain claude", stdin=b'{"session_id": "s"}'),
    ],
    "documents": [
        *rows("""
            doc
            doc list
            doc write plan --text one
            doc write plan --text two --base 1
            doc write plan --text three --base 1
            --json doc write plan --text three --base 1
            doc write plan
            doc write plan --file file --text x
            doc write memory/notes --file file
            doc write ../x --text x
            doc read plan
            doc read plan --revision 1
            doc read plan --revision 9
            doc read pla
            doc history plan
            doc history nothing
            doc rm plan
            doc restore plan
            doc restore plan --revision 1
            doc restore nothing
        """),
        Row("doc edit plan", hub=False),
        Row("doc edit plan", hub=False, env={"EDITOR": "true"}),
        Row("doc import file latin1 missing", hub=False),
        Row("doc export out --prefix file", hub=False),
        *rows("doc list"),
        Row("doc write plan -", stdin="Grüße".encode()),
        Row("doc write plan -", stdin=b"x" * 600_000),
        Row("doc read plan"),
    ],
    "locks": [
        *rows("""
            lock list
            lock acquire build --timeout 0
            lock acquire build --owner 'not a label'
            lock renew build --owner ann --token 1
            lock release build --owner ann --token 0
            lock acquire build --owner ann --ttl 0
            lock acquire build --owner ann --ttl 0.001 --timeout 0
            lock renew build --owner ann --token 2
            lock renew build --owner ben --token 2
            lock release build --owner ann --token 2
            lock list
        """),
        Row("lock run build --owner ann -- sh -c 'echo $ACCORD_LOCK; exit 3'", hub=False),
        Row("lock run build --owner ann -- no-such-program", hub=False),
        Row("lock run build --owner ann", hub=False),
    ],
    "reservations": [
        Row(words, hub=False)
        for words in (
            "reserve",
            "reserve list",
            "reserve add 'src/**' docs/a.md --owner ann --note 'the parser'",
            "reserve add src/x --owner ben --advisory",
            "reserve add ../x --owner ben",
            "reserve add x",
            "reserve list",
            "reserve check src/x docs/b.md --owner ben",
            "reserve check docs/b.md --owner ben",
            "reserve release",
            "reserve release docs/a.md --owner ann",
            "reserve release --all --owner ann",
            "reserve install-hook",
            "reserve check --staged",
        )
    ],
    "topics": [
        *rows("""
            publish builds hello
            publish builds hello there
            publish builds ''
            publish
            topic read builds
            topic read builds --after 1
            topic read builds --since nonsense
            topic read nothing
            topic last builds
            topic
        """),
        Row("publish builds -", stdin=b"text"),
        Row("subscribe", hub=False),
        Row("publish builds --message-file file"),
        Row("publish builds x", env=ANN),
        Row("topic read builds"),
    ],
    "transactions": [
        *rows("""
            tx
            tx --steps '[{"operation": "doc.write", "name": "a", "text": "1"}]'
            tx --steps '[{"operation": "doc.write", "name": "a", "text": "1", "base": 9}]'
            --json tx --steps '[{"operation": "doc.write", "name": "a", "text": "1", "base": 9}]'
            tx --steps '[{'
            tx --file file
        """),
        Row("tx -", stdin=b'[{"operation": "doc.write", "name": "b", "text": "1"}]'),
        Row("doc list"),
    ],
    "queues": [
        *rows("""
            queue
            queue list
            queue pop jobs
            queue pop jobs --wait 0.1
            queue push jobs build the parser
            queue push jobs urgent --priority high --tries 1
            queue push jobs later --delay 3600
            queue push jobs x --priority urgent
            queue push jobs
            queue push jobs x --file file
            queue push jobs --file file
            queue push ../x x
            queue peek jobs
            queue peek nothing
            queue list
            queue pop jobs --worker ann
            queue list
            queue done jobs 0-0-0
            queue done jobs 'not a receipt'
            queue fail jobs 0-0-0 too hard
            queue dead jobs
            queue retry jobs 9
            queue drop jobs 9
        """),
        Row("queue push jobs -", stdin="Grüße".encode()),
        Row("queue push jobs -", stdin=b"x" * 1_100_000),
        Row("queue push jobs x", env={"ACCORD_QUEUE_LIMIT": "1"}),
        Row("queue pop jobs", env=ANN),
    ],
    "tasks": [
        *rows("""
            task
            task list
            task board
            task add Write the parser --id a
            task add
            task add 'not printable: \x1b[31m'
            task add --id b --needs a --priority high Test it --text 'in short'
            task add --id c --needs zz Deploy it
            task add --id c --file file Deploy it
            task add --id d --file latin1 Deploy it
            task add --id e --assignee ben Look at it
            task depend a b
            task depend c b
            task assign c ann --session s1
            task claim b --agent ann
            task claim a
            task claim a --agent ann
            task next --agent ann
            task next --agent ben
            task next --agent cat --wait 0.1
            task start a --agent ann
            task progress a half of it --agent ann
            task release e --agent ben
            task block e no power
            task unblock e
            task show a
            task show zz
            task list --state ready
            task list --state nothing
            task board
            task done a
            task done a --agent ann all of it
            task list --agent ann
            task board --limit 1
        """),
        Row("task next", env=ANN),
        Row("task done b", env=ANN),
        Row("task add --id f --file - Read it", stdin="Grüße".encode()),
        Row("task add --id g --file - Read it", stdin=b"x" * 200_000),
        Row("task show f"),
    ],
    "channels": [
        *rows("""
            channel list
            channel join builds --identity ann
            channel join builds --identity ann
            channel join builds --identity ben
            channel list
            channel --json list
            send --from ann --channel builds --message x --id m1
            check ben
            channel leave builds --identity ben
            channel leave builds --identity ben
            send --from ann --channel builds --message x --id m2
            send --from ann --channel nothing --message x
            channel join a_b --identity ann
            channel join x --identity zoe
            channel leave no --identity ann
        """),
        Row("channel join builds", env=ANN),
    ],
    "halt": [
        *rows("""
            halt --status
            halt too hot
            halt
            halt --status
            send --from ann --to ben --message x
            check ben
            check ben --peek
            discover
            engage ann
            halt -- --json
            unhalt
            unhalt
            send --from ann --to ben --message x
            engage
            engage nobody
            engage ann
            send --from ann --to ben --message x --id m1
            engage --all
            engage all
            check ben
        """),
        Row("halt I am not sure", env=ANN),
        Row("unhalt", env=ANN),
        Row("engage --all", env=ANN),
    ],
    "settings": [
        *rows("""
            config
            init
            config extra
            --hub-port x discover
            --hub-port 99999999 discover
            --hub-port=-1 discover
        """),
        Row("config", env={"ACCORD_INBOX_LIMIT": "7"}),
        Row("config", env={"ACCORD_INBOX_LIMIT": "seven"}),
        Row("discover", env={"ACCORD_LOCK_TIMEOUT_S": "x"}),
        Row("halt --status", env={"ACCORD_LOCK_TIMEOUT_S": "x"}),
        Row("discover", env={"ACCORD_LOCK_TIMEOUT_S": "7"}, hub=False),
        Row("trust .", hub=False),
        Row("trust nowhere", hub=False),
    ],
    "odd words": [
        Row([b"register", b"\xff"], hub=False),
        Row([b"send", b"--from", b"ann", b"--to", b"ben", b"--message", b"caf\xe9"], hub=False),
        Row([b"check", b"\xed\xa0\x80"], hub=False),
        Row([b"\xff\xfe"], hub=False),
        Row("check ann", hub=False, env={"ACCORD_TOKEN": "\udcff"}),
        Row(["register", "../x"]),
        Row(["register", "\x1b[31m"]),
        Row(["register", "\u202eann"]),
        Row(["register", "x" * 100_000]),
        Row(["check", "a\nb"]),
        Row(["check", "--limit", "9" * 5000, "ann"]),
        Row(["send", "--from", "é", "--to", "ben", "-"]),
        Row(["thread", "\x9b31m \x07"]),
        Row(["--=x", "discover"]),
        Row(["discover", "--"]),
    ],
    "other places": [
        Row("discover --home other", hub=False),
        Row("--home=other register ann", hub=False),
        Row("--home=other check ann", hub=False),
        Row("--home /dev/null discover", hub=False),
        Row("--engine sqlite:other.db register zoe", hub=False),
        Row("--engine sqlite:other.db discover", hub=False),
        Row("--engine nothing:x discover", hub=False),
        Row("--engine nothing discover", hub=False),
        Row("discover", hub=False, env={"HOME": "other-user"}),
        Row("discover", env={"ACCORD_HOME": "../.accord"}),
        Row("discover", env={"ACCORD_HOME": None}),
        Row("discover", env={"ACCORD_HOME": "~/.accord/"}),
    ],
}


@pytest.fixture
def both() -> Iterator[tuple[User, User, Hub]]:
    """Two who are in the same situation, but that the home of the second has a hub."""
    folders = [Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY if MEMORY.is_dir() else None)) for _ in "12"]
    alone, other = (User(folder) for folder in folders)
    hub = Hub(other.home, other.env)
    try:
        hub.start()
        for user in (alone, other):
            for name in ("ann", "ben"):
                user.json("register", name)
            (user.work / "file").write_text("from a file")
            (user.work / "latin1").write_bytes(b"caf\xe9")
            (user.work / "accord.yml").write_text("inbox_limit: 50\n")
        yield alone, other, hub
    finally:
        hub.close()
        for folder in folders:
            shutil.rmtree(folder)


def masked(done: Done, user: User) -> tuple[int, str, str]:
    """What was printed, without what differs from one time to the next, and without the hub itself."""

    def mask(text: str) -> str:
        text = text.replace(str(user.folder), "FOLDER").replace(user.folder.name, "NAME")
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?", "TIME", text)
        text = re.sub(r"\b[0-9a-f]{8}-\d{13}-[0-9a-f]{16}\b", "RECEIPT", text)
        text = re.sub(r"\b[0-9a-f]{16}\b", "HASH", text)
        text = re.sub(r"though [\d.]+ s were waited", "though SOME were waited", text)
        return re.sub(r'"hub":\{.*?\}', '"hub":null', text)

    return done.code, mask(done.out), mask(done.err)


def commands(hub: Hub) -> int:
    """How many commands it has done to their end."""
    with closing(hub.connect()) as connection:
        return int(connection.call("hub.statistics", {}, TIMEOUT_S).get("commands_done", 0))


@pytest.mark.parametrize("name", TABLE)
def test_the_same_with_a_hub_and_without(name: str, both: tuple[User, User, Hub]) -> None:
    alone, other, hub = both
    for at, row in enumerate(TABLE[name]):
        ways = [row.argv, ["--json", *row.argv]]
        for argv in ways if IS_MORE else ways[at % 2 :][:1]:
            before = commands(hub)
            expected = masked(alone.run(*argv, stdin=row.stdin, env=row.env), alone)
            found = masked(other.run(*argv, stdin=row.stdin, env=row.env), other)
            assert found == expected, argv
            assert commands(hub) - before == row.hub, f"{argv}: done {'locally' if row.hub else 'by the hub'}"
    assert hub.log("failure") == []


def test_the_table_has_every_verb_that_a_hub_does() -> None:
    from accord.cli.forward import is_here
    from accord.cli.run import VERBS

    used = {" ".join(map(str, row.argv)) for some in TABLE.values() for row in some if row.hub}
    for verb in VERBS:
        if not is_here(verb.split(" ")):
            assert any(text.startswith(verb) for text in used), verb
    assert sum(len(some) for some in TABLE.values()) >= 60


def test_what_they_leave_behind_is_the_same(both: tuple[User, User, Hub]) -> None:
    """Tokens, and what is stored, as somebody without a hub reads it."""
    alone, other, hub = both
    for user in (alone, other):
        for given in ("register zoe", "unregister ben", "register ben", SEND, "register ann --force"):
            assert user.run(*given.split()).code == 0
        assert user.run("check", "ben").code == 0
    hub.close()
    for words in (["discover"], ["sent", "ann"], ["check", "ann"], ["check", "ben"], ["check", "zoe"]):
        assert masked(other.run(*words), other) == masked(alone.run(*words), alone)
    modes = [
        {str(path.relative_to(user.home)): path.stat().st_mode for path in (user.home / "agents").rglob("*")}
        for user in (alone, other)
    ]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("words", ["discover", "check ben --peek", "nonsense", "config", "send --help"])
def test_the_same_at_a_terminal(words: str, both: tuple[User, User, Hub]) -> None:
    """To the byte: colours, and lines as long as the terminal is wide."""
    alone, other, hub = both
    found = []
    for user in (alone, other):
        user.json("send", "--from", "ann", "--to", "ben", "--message", "word " * 100)
        before = commands(hub)
        code, screen = user.at_terminal(*words.split())
        done = Done(code, screen.decode(), "")
        found.append(masked(done, user))
    assert found[0] == found[1]
    assert commands(hub) == before + 1


def test_a_hub_of_another_version_is_left_alone(both: tuple[User, User, Hub]) -> None:
    """As after an upgrade: the command does it itself."""
    _, other, hub = both
    before = commands(hub)
    program = f"import accord; accord.__version__ = '{__version__}.1'; from accord.cli.main import main; main()"
    done = other.run("-c", program, "--json", "discover", command=(sys.executable,))
    assert done.code == 0
    assert [one["identity"] for one in done.json["identities"]] == ["human", "ann", "ben"]
    assert commands(hub) == before


@pytest.mark.covers("S14.1")
def test_a_socket_in_somebody_elses_home_is_not_spoken_to(both: tuple[User, User, Hub]) -> None:
    """It could ask for any file of ours; the home is refused as without one."""
    need_root()
    alone, _, _ = both
    heard = threading.Event()
    there = alone.home / "hub"
    there.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(str(there / "socket"))
        trap.listen()
        for path in (alone.home, there, there / "socket"):
            os.chown(path, NOBODY, NOBODY)

        def wait() -> None:
            try:
                trap.accept()
                heard.set()
            except OSError:
                pass  # nobody came

        waiting = threading.Thread(target=wait)
        waiting.start()
        done = alone.run("--json", "send", "--from", "ann", "--to", "ben", "--message-file", "file")
        trap.shutdown(socket.SHUT_RDWR)
        waiting.join(20)
    assert json.loads(done.out)["error_code"] == "DATA_DIR_ERROR"
    assert not heard.is_set()
