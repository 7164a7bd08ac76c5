"""Commands of random words, and messages of random text: always an answer, never a crash."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from accord import errors, jsontext
from accord.cli.io import LocalIo
from accord.cli.run import GROUPS, VERBS, find_verb, run
from accord.cli.words import GLOBALS, SHORT
from accord.operations.context import Context, local
from tests.cli.test_hostile import raw
from tests.cli.users import EXIT_CODES
from tests.often import often

# Watched over by `make test` as a whole; a machine under load is no failure.
UNHURRIED = settings(
    max_examples=often(300),
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# These start processes, wait or go on for ever, and have tests of their own.
OTHERS = (
    "bench", "demo", "events", "hub", "listen", "lock acquire", "lock run", "mcp", "reserve install-hook", "shell",
    "subscribe",
)  # fmt: skip
ENDLESS = ("--follow", "-f", "--watch")
NAMES = sorted(name for name in VERBS if name not in OTHERS and name.partition(" ")[0] not in OTHERS)
OPTIONS = sorted({*GLOBALS, *SHORT, *[option for name in NAMES for option in find_verb(name).options()]})
VALUES = [
    "ann", "ben", "human", "all", "ANN", "builds", "hello", "request", "0", "1", "-1", "1e3", "nan", "٣", "9" * 30,
    "../x", ".", "..", "missing", "message.txt", "binary", "folder", "folder/x", "memory:", "files:store", "sqlite:",
    ":", "redis://x", "sqlite:folder", "files:message.txt", "x" * 5000, "", " ", "-", "--", "=", "\x1b[31m", "\udcff",
    "\n",
]  # fmt: skip

# Without slashes, so that no home or store is made outside the folder of the test.
# Nor with NUL, which no word can hold; what is not UTF-8 is as the interpreter hands it on.
garbage = st.binary(max_size=10).map(lambda data: data.decode("utf-8", "surrogateescape")) | st.text(max_size=20)
garbage = garbage.map(lambda text: text.replace("/", "").replace("\0", ""))
value = st.sampled_from(VALUES) | garbage
option = st.sampled_from(OPTIONS)
verb = st.sampled_from(NAMES).map(str.split) | st.sampled_from(sorted(GROUPS)).map(lambda group: [group])
piece = st.one_of(
    st.tuples(option, value).map(list),
    st.tuples(option, value).map(lambda pair: ["=".join(pair)]),
    option.map(lambda word: [word]),
    value.map(lambda word: [word]),
)


@st.composite
def of_a_verb(draw: st.DrawFn) -> list[str]:
    """A command that is nearly right: a verb, with options of its own."""
    name = draw(st.sampled_from(NAMES))
    words = name.split()
    own = sorted(find_verb(name).options()) or ["--json"]
    for word in draw(st.lists(st.sampled_from(own), max_size=5)):
        words += [word, draw(st.sampled_from(VALUES))]
    return words + draw(st.lists(value, max_size=2)) + draw(st.sampled_from([[], ["--json"]]))


@st.composite
def of_anything(draw: st.DrawFn) -> list[str]:
    before, after = draw(st.lists(piece, max_size=3)), draw(st.lists(piece, max_size=6))
    return [word for words in [*before, draw(verb), *after] for word in words]


class Io:
    """A command's surroundings, in which all that it says is kept."""

    def __init__(self, folder: Path, stdin: bytes = b"", env: dict[str, str] | None = None) -> None:
        self.env: Mapping[str, str] = {"HOME": str(folder), "ACCORD_HOME": str(folder / "home"), **(env or {})}
        self.cwd = str(folder / "work")
        self.pid = 0
        self.request = ""
        self.printed = ""
        self.complaints = ""
        self._stdin = stdin

    def context(self, given: Mapping[str, str]) -> Context:
        return local(self.env, self.cwd, given.get("--home", ""), given.get("--engine", ""))

    def confirm(self) -> None:
        pass

    def check_output(self) -> None:
        pass

    def out(self, text: str) -> None:
        self.printed += text

    def err(self, text: str) -> None:
        self.complaints += text

    def is_terminal(self, fd: int) -> bool:
        return False

    def width(self) -> int:
        return 80

    def read_input(self, most: int) -> bytes:
        return self._stdin[:most]

    def read_given(self) -> dict[str, object]:
        found = jsontext.loads(self._stdin)
        if not isinstance(found, dict):
            raise errors.InvalidJson(reason="no object")
        return found

    def may_take(self, seconds: float) -> None:
        """It has no deadline."""

    def read_file(self, path: str, most: int) -> bytes:
        local = LocalIo()
        local.cwd = self.cwd
        return local.read_file(path, most)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One home for all examples of a test, in memory: whatever the earlier ones left behind must not matter."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="accord-test-", dir=memory if memory.is_dir() else None))
    (path / "work" / "folder").mkdir(parents=True)
    (path / "work" / "message.txt").write_text("a message\n")
    (path / "work" / "binary").write_bytes(bytes(range(256)))
    (path / "elsewhere").mkdir()
    before = os.getcwd()
    os.chdir(path / "elsewhere")  # what is made here was made in the wrong place
    for name in ("ann", "ben"):
        assert run(["register", name], Io(path)) == 0
    yield path
    os.chdir(before)
    shutil.rmtree(path)


def waits(words: list[str]) -> bool:
    """Whether a command may wait for longer than a test should."""
    if any(word.partition("=")[0] in ENDLESS for word in words):
        return True
    values = [after for word, after in pairwise(words) if word == "--wait"]
    values += [word.partition("=")[2] for word in words if word.startswith("--wait=")]
    return any(text.replace(".", "").strip("0") and text[0] not in "-n" for text in values)


def check_answer(words: list[str], code: int, io: Io) -> None:
    said = io.printed + io.complaints
    assert code in EXIT_CODES, (words, said)
    assert "INTERNAL" not in said
    assert "Traceback" not in said
    assert raw(said) == set(), said
    assert said or "completion" in words, "a command that says nothing"
    if io.printed.startswith("{"):
        found = json.loads(io.printed)
        status = "ok" if found.keys() == {"rules"} else found["status"]  # those of Firebase are JSON for people, too
        assert status == ("ok" if code in (0, 1) else "error")
    elif not {"import", "export"} & set(words):  # which go on after what is wrong with one file
        assert bool(io.complaints) == (code not in (0, 1))


@pytest.mark.covers("Q3")
@UNHURRIED
@given(words=of_a_verb() | of_anything() | st.lists(value, max_size=4), stdin=st.binary(max_size=50))
def test_commands(words: list[str], stdin: bytes, folder: Path) -> None:
    assume(not waits(words))
    (folder / ".config/cross-agent-comms/HALT").unlink(missing_ok=True)
    io = Io(folder, stdin)
    check_answer(words, run(words, io), io)


@pytest.mark.covers("Q3")
@UNHURRIED
@given(name=value, words=of_a_verb(), token=value)
def test_commands_of_an_agent(name: str, words: list[str], token: str, folder: Path) -> None:
    assume(not waits(words))
    (folder / ".config/cross-agent-comms/HALT").unlink(missing_ok=True)
    io = Io(folder, env={"ACCORD_AGENT": name, "ACCORD_TOKEN": token})
    check_answer(words, run(words, io), io)


@pytest.mark.covers("Q3")
@UNHURRIED
@given(names=st.dictionaries(st.sampled_from(["ENGINE", "INBOX_LIMIT", "MESSAGE_LIMIT", "HOME"]), value))
def test_variables(names: dict[str, str], folder: Path) -> None:
    home = names.pop("HOME", "")
    env = {f"ACCORD_{name}": text for name, text in names.items()}
    io = Io(folder, env={**env, **({"ACCORD_HOME": home} if home else {})})
    check_answer(["discover"], run(["discover"], io), io)


@pytest.mark.covers("Q3")
@UNHURRIED
@given(body=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bodies(body: bytes, folder: Path) -> None:
    """Each arrives as it was sent, or is refused for what is wrong with it."""
    (folder / ".config/cross-agent-comms/HALT").unlink(missing_ok=True)
    run(["check", "ben", "--limit", "1000"], Io(folder))
    io = Io(folder, body)
    code = run(["--json", "send", "--from", "ann", "--to", "ben", "-"], io)
    check_answer([], code, io)
    inbox = Io(folder)
    assert run(["--json", "check", "ben"], inbox) == 0
    check_answer([], 0, inbox)
    received = [message["message"] for message in json.loads(inbox.printed)["messages"]]
    try:
        text = body.decode()
    except UnicodeDecodeError:
        assert json.loads(io.printed)["error_code"] == "INVALID_ENCODING"
        assert received == []
    else:
        expected = [text] if text.strip() else []
        assert received == expected
        assert code == (0 if expected else 65)


def test_a_path_is_one_of_the_caller(folder: Path) -> None:
    """A hub runs the commands of others, and has a working directory of its own."""
    for words in (["--engine", "files:mine", "discover"], ["--engine", "sqlite:mine.db", "discover"]):
        assert run(words, Io(folder)) == 0
    assert run(["--home", "my-home", "init"], Io(folder)) == 0
    assert {"mine", "mine.db", "my-home"} <= set(os.listdir(folder / "work"))
