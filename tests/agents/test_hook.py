"""`accord hook` as real programs run it, by recordings of what they gave it; `record.py` makes them."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from accord import brains
from accord.cli.io import GIVEN
from accord.cli.verbs.hook import BRAINS
from accord.model import HALTED
from accord.wake import TEXT
from tests.agents.record import FIRST, HOME, RECORDINGS, SECOND
from tests.cli.users import ACCORD, Done, User
from tests.hubs import Hub

pytestmark = pytest.mark.covers("I3")

NAME = "web-app"
TIMEOUT_S = 20.0
LONGEST_S = 2.0  # that a hook may take, in the middle of a turn


class Event(NamedTuple):
    """What a hook is given, what it then hands over, and how far the two messages have got by then."""

    name: str
    hands_over: str
    first: str
    second: str


# ann sends FIRST before the first step, and SECOND before the first stop.
TURN = {
    "claude": [
        Event("start", "", "", ""),
        Event("prompt", "", "", ""),
        Event("step", FIRST, "handed_over", ""),  # of two tools
        Event("step", "", "seen", ""),
        Event("stop", SECOND, "seen", "handed_over"),
        Event("stop", "", "seen", "seen"),
        Event("end", "", "seen", "seen"),
    ],
    "codex": [
        Event("start", "", "", ""),
        Event("prompt", "", "", ""),
        Event("step", FIRST, "handed_over", ""),
        Event("step", "", "handed_over", ""),
        Event("step", "", "handed_over", ""),
        Event("stop", SECOND, "seen", "handed_over"),
        Event("stop", "", "seen", "seen"),
        Event("end", "", "seen", "seen"),
    ],
    "gemini": [
        Event("start", "", "", ""),
        Event("prompt", "", "", ""),
        Event("step", FIRST, "handed_over", ""),
        Event("step", "", "handed_over", ""),
        Event("step", "", "handed_over", ""),
        Event("stop", SECOND, "seen", "handed_over"),
        Event("prompt", "", "seen", "handed_over"),  # what was handed over, come back as a prompt
        Event("stop", "", "seen", "seen"),
        Event("end", "", "seen", "seen"),
    ],
    "opencode": [
        Event("start", "", "", ""),
        Event("prompt", "", "", ""),
        Event("step", FIRST, "handed_over", ""),
        Event("step", "", "handed_over", ""),
        Event("step", "", "seen", ""),
        Event("stop", SECOND, "seen", "handed_over"),
        Event("stop", "", "seen", "seen"),
        Event("end", "", "seen", "seen"),
    ],
}


class Session:
    """A recording, played to accord."""

    def __init__(self, folder: Path, name: str) -> None:
        self.user = User(folder)
        self.brain = name.partition("-")[0]
        self.recorded: list[dict[str, Any]] = json.loads((RECORDINGS / f"{name}.json").read_text())["events"]
        self.user.json("register", "ann")

    def play(self, event: dict[str, Any], **env: str) -> str:
        """What accord says to the model."""
        done = self.hook(event["event"], event["given"], **env)
        assert (done.code, done.err) == (0, "")
        return self.shown(event, json.loads(done.out)) if done.out else ""

    def hook(self, event: str, given: Any, *words: str, **env: str) -> Done:
        stdin = json.dumps(given).replace(HOME, str(self.user.folder)).encode()
        return self.user.run("hook", event, "--brain", self.brain, *words, stdin=stdin, env=env)

    def shown(self, event: dict[str, Any], answer: dict[str, Any]) -> str:
        """The text, from where this program looks for it."""
        if self.brain == "opencode":
            assert answer.keys() == {"text"}
            return str(answer["text"])
        if event["event"] == "stop":
            assert answer == {"decision": "block", "reason": answer["reason"]}
            return str(answer["reason"])
        output = answer["hookSpecificOutput"]
        assert answer.keys() == {"hookSpecificOutput"}
        assert output.keys() == {"hookEventName", "additionalContext"}
        assert output["hookEventName"] == event["given"]["hook_event_name"]
        return str(output["additionalContext"])

    def send(self, text: str) -> str:
        return str(self.user.json("send", "--from", "ann", "--to", NAME, "--message", text)["message_id"])

    def state(self, id: str) -> str:
        if not id:
            return ""
        (receipt,) = self.user.json("receipt", id)["to"]
        return str(receipt["state"])

    def sessions(self) -> dict[str, str]:
        found = self.user.json("discover")["identities"]
        return {agent["identity"]: agent["session"]["state"] for agent in found if agent["session"]}


@pytest.fixture
def claude(tmp_path: Path) -> Session:
    return Session(tmp_path, "claude")


@pytest.fixture
def hub_of() -> Iterator[Callable[[User], Hub]]:
    hubs: list[Hub] = []

    def make(user: User) -> Hub:
        hubs.append(Hub(user.home, user.env))
        return hubs[-1]

    yield make
    for hub in hubs:
        hub.close()


@pytest.mark.covers("T3.16")
@pytest.mark.parametrize("name", TURN)
@pytest.mark.parametrize("way", ["alone", "through-a-hub"])
def test_a_turn_as_it_was(tmp_path: Path, hub_of: Callable[[User], Hub], name: str, way: str) -> None:
    session = Session(tmp_path, name)
    if way == "through-a-hub":
        hub_of(session.user).start()
    assert [event["event"] for event in session.recorded] == [event.name for event in TURN[name]]
    first = second = ""
    for number, (event, expected) in enumerate(zip(session.recorded, TURN[name], strict=True)):
        if event["event"] == "step":
            first = first or session.send(FIRST)
        if event["event"] == "stop":
            second = second or session.send(SECOND)
        shown = session.play(event)
        assert (f"accord: you are {NAME}," in shown) == (number == 0)
        assert re.findall(r"^\| (.*)", shown, re.MULTILINE) == [text for text in [expected.hands_over] if text], number
        assert (session.state(first), session.state(second)) == (expected.first, expected.second), number
    assert session.sessions() == {NAME: "ended"}


def test_whoever_sent_a_message_is_told_by_what_it_was_handed_over(claude: Session) -> None:
    start, _, step, *_ = claude.recorded
    claude.play(start)
    claude.send(FIRST)
    for said in (f"{NAME}: queued\n", f"{NAME}: handed_over by claude step\n", f"{NAME}: seen\n"):
        assert claude.user.run("sent", "--from", "ann").out.startswith(f"from ann  to {NAME}  {said}")
        claude.play(step)


def test_what_an_agent_starts_for_a_part_gets_nothing_and_proves_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path, "claude-within")
    start, prompt, *others = session.recorded
    [within] = [event for event in others if event["event"] == "step" and "agent_id" in event["given"]]
    [step] = [event for event in others if event["event"] == "step" and "agent_id" not in event["given"]]
    [notice] = [event for event in others if event["event"] == "prompt"]
    session.play(start)
    session.play(prompt)
    id = session.send(FIRST)
    assert session.play(within) == ""
    assert session.state(id) == "queued"
    assert f"| {FIRST}" in session.play(step)
    assert session.play(within) == ""
    assert session.state(id) == "handed_over"
    assert session.play(notice) == ""
    assert session.state(id) == "handed_over"


@pytest.mark.covers("X8")
@pytest.mark.parametrize(
    "said", ["accord: you have mail", '<accord-mail n="1" messages="1">\n', "<task-notification>\n"]
)
def test_a_prompt_that_no_person_wrote_engages_nobody(claude: Session, said: str) -> None:
    start, prompt, *_ = claude.recorded
    claude.play(start)
    id = claude.send(FIRST)
    claude.user.run("halt", "a test")
    claude.user.run("unhalt")
    ours = {"event": "prompt", "given": {**prompt["given"], "prompt": f"{said} and more"}}
    assert claude.play(ours) == ""
    assert claude.state(id) == "queued"
    assert f"| {FIRST}" in claude.play(prompt)


@pytest.mark.covers("X8")
def test_an_agent_at_work_is_told_once_that_everything_is_halted(claude: Session) -> None:
    start, prompt, step, *_, stop, _ = claude.recorded
    claude.play(start)
    claude.play(prompt)
    claude.send(FIRST)
    claude.user.run("halt", "a test")
    assert claude.play(step) == f"accord: {HALTED}"
    assert claude.play(step) == ""
    assert claude.play(stop) == ""


def test_a_session_begins_where_nothing_can_be_told_to_its_commands(claude: Session) -> None:
    nowhere = str(claude.user.folder / "no" / "such" / "file")
    assert f"accord: you are {NAME}," in claude.play(claude.recorded[0], CLAUDE_ENV_FILE=nowhere)


@pytest.mark.parametrize("brain", ["claude", "codex"])
@pytest.mark.parametrize("way", ["alone", "through-a-hub"])
def test_what_an_agent_starts_is_told_its_own_name(
    tmp_path: Path, hub_of: Callable[[User], Hub], brain: str, way: str
) -> None:
    """It inherits the variable of the agent that has started it."""
    session = Session(tmp_path, brain)
    if way == "through-a-hub":
        hub_of(session.user).start()
    start, prompt, step, *_ = session.recorded
    above = Session.__new__(Session)
    above.__dict__.update(session.__dict__, brain="claude")
    given = {**start["given"], "session_id": "above"}
    inherited = {"ACCORD_AGENT": NAME, "CLAUDE_PID": str(os.getpid())}
    if brain == "claude":
        inherited["CLAUDE_ENV_FILE"] = f"{tmp_path}/variables"
    with subprocess.Popen(["sleep", "60"]) as program:
        assert f"accord: you are {NAME}," in above.play({**start, "given": given}, CLAUDE_PID=str(program.pid))
        said = session.play(start, **inherited)
        assert f"accord: you are {NAME}-2," in said
        assert (f"begin each of these commands with ACCORD_AGENT={NAME}-2" in said) == (brain == "codex")
        session.play(prompt, **inherited)
        session.user.json("send", "--from", "ann", "--to", f"{NAME}-2", "--message", FIRST)
        assert f"| {FIRST}" in session.play(step, **inherited)
        program.kill()


class Waiting:
    """A hook that waits, as a program runs it."""

    def __init__(self, session: Session, event: dict[str, Any], **env: str) -> None:
        command = ["accord", "hook", event["event"], "--brain", session.brain]
        pipe, variables = subprocess.PIPE, {**session.user.env, **env}
        self._program = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=pipe)
        assert self._program.stdin
        self._program.stdin.write(json.dumps(event["given"]).encode())
        self._program.stdin.close()
        self._program.stdin = None

    def is_there(self) -> bool:
        return self._program.poll() is None

    def says(self) -> Any:
        """Once it has ended well."""
        out, err = self._program.communicate(timeout=TIMEOUT_S)
        assert (self._program.returncode, err) == (0, b"")
        return json.loads(out) if out else None

    def kill(self) -> None:
        self._program.kill()
        self._program.communicate()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def at_the_end_of_a_turn(folder: Path, name: str) -> tuple[Session, dict[str, Any]]:
    session = Session(folder, name)
    start, prompt, *others = session.recorded
    session.play(start)
    session.play(prompt)
    return session, next(event for event in others if event["event"] == "stop")


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("way", ["alone", "through-a-hub"])
def test_the_end_of_a_turn_waits_for_mail_where_that_is_set(
    tmp_path: Path, hub_of: Callable[[User], Hub], name: str, way: str
) -> None:
    session, stop = at_the_end_of_a_turn(tmp_path, name)
    if way == "through-a-hub":
        hub_of(session.user).start()
    assert session.play(stop) == ""  # it is not set
    hook = Waiting(session, said(stop, "other words"), ACCORD_STOP_WAIT_S="60")
    time.sleep(LONGEST_S + 1.0)  # longer than hooks may take that do not wait
    assert hook.is_there()
    id = session.send(FIRST)
    assert f"| {FIRST}" in session.shown(stop, hook.says())
    assert session.state(id) == "handed_over"


@pytest.mark.parametrize("way", ["alone", "through-a-hub"])
def test_a_wait_ends_when_it_is_over(tmp_path: Path, hub_of: Callable[[User], Hub], way: str) -> None:
    session, stop = at_the_end_of_a_turn(tmp_path, "gemini")
    if way == "through-a-hub":
        hub_of(session.user).start()
    assert Waiting(session, stop, ACCORD_STOP_WAIT_S="1").says() is None
    hook = Waiting(session, said(stop, "other words"), ACCORD_STOP_WAIT_S="60")
    until(lambda: session.sessions() == {NAME: "idle"})
    session.user.run("halt", "a test")
    assert hook.says() is None


def test_a_hook_that_was_killed_takes_nothing_any_more(tmp_path: Path, hub_of: Callable[[User], Hub]) -> None:
    """As where its user has interrupted the program."""
    session, stop = at_the_end_of_a_turn(tmp_path, "codex")
    hub_of(session.user).start()
    hook = Waiting(session, stop, ACCORD_STOP_WAIT_S="60")
    until(lambda: session.sessions() == {NAME: "idle"})
    hook.kill()
    time.sleep(2.0)  # until the hub has looked again
    id = session.send(FIRST)
    assert session.state(id) == "queued"


def test_opencode_does_not_wait_at_the_end_of_a_text(tmp_path: Path) -> None:
    session, stop = at_the_end_of_a_turn(tmp_path, "opencode")
    assert session.play(stop, ACCORD_STOP_WAIT_S="60") == ""


@pytest.mark.parametrize("way", ["alone", "through-a-hub"])
def test_a_plugin_can_wait_until_its_session_is_woken(tmp_path: Path, hub_of: Callable[[User], Hub], way: str) -> None:
    session, stop = at_the_end_of_a_turn(tmp_path, "opencode")
    if way == "through-a-hub":
        hub_of(session.user).start()
    wait = {"event": "wait", "given": stop["given"]}
    hook = Waiting(session, wait)
    time.sleep(LONGEST_S + 1.0)
    session.play(stop)
    id = session.send(FIRST)
    assert hook.says() == {"text": TEXT}
    assert session.state(id) == "queued"  # the turn that this begins brings it
    hook = Waiting(session, wait)
    session.play(session.recorded[-1])
    assert hook.says() is None


def test_what_gemini_was_given_in_a_turn_that_was_cancelled_comes_again(tmp_path: Path) -> None:
    session, stop = at_the_end_of_a_turn(tmp_path, "gemini")
    prompt = session.recorded[1]
    session.play(stop)
    id = session.send(FIRST)
    assert f"| {FIRST}" in session.play(prompt)
    assert session.play(said(stop, "[no response text]")) == ""
    assert session.state(id) == "handed_over"
    assert f"| {FIRST}" in session.play(prompt)
    assert session.play(said(stop, "other words")) == ""
    assert session.state(id) == "seen"


def said(event: dict[str, Any], text: str) -> dict[str, Any]:
    """The same event, with another answer of the model."""
    return {**event, "given": {**event["given"], "prompt_response": text}}


def test_two_programs_are_told_apart_by_their_processes(claude: Session) -> None:
    start, _, step, *_ = claude.recorded
    program = subprocess.Popen(["sleep", "60"])
    try:
        claude.play(start, CLAUDE_PID=str(program.pid))
        id = claude.send(FIRST)
        assert f"| {FIRST}" in claude.play(step, CLAUDE_PID=str(program.pid))
        assert claude.play(step) == ""  # of another process, and no sign that this one lives
        assert claude.state(id) == "handed_over"
        assert claude.sessions() == {NAME: "busy"}
    finally:
        program.kill()
        program.wait()
    assert claude.sessions() == {NAME: "ended"}
    assert f"| {FIRST}" in claude.play(start)  # resumed: what was not seen is handed over again


AGENT = """
import os, subprocess, sys
for words in sys.argv[2:]:
    subprocess.run([sys.argv[1], "-c", words], check=True)
print("done", flush=True)
os.close(1)
sys.stdin.read()
"""


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("way", ["alone", "through-a-hub"])
def test_the_process_is_the_nearest_that_is_no_shell(
    tmp_path: Path, hub_of: Callable[[User], Hub], shell: str, way: str
) -> None:
    """Shells end with the hook, and an agent whose process is gone is over."""
    session = Session(tmp_path, "codex")
    if way == "through-a-hub":
        hub_of(session.user).start()
    words = []
    for event in ("start", "prompt"):
        given = next(recorded["given"] for recorded in session.recorded if recorded["event"] == event)
        (tmp_path / event).write_text(json.dumps(given).replace(HOME, str(tmp_path)))
        words.append(f"accord hook {event} --brain codex <{tmp_path}/{event}; exit $?")
    command = [sys.executable, "-c", AGENT, shell, *words]
    with subprocess.Popen(command, env=session.user.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin
        assert agent.stdout
        assert agent.stdout.readlines()[-1] == b"done\n"
        assert session.sessions() == {NAME: "busy"}
        agent.stdin.close()
        assert agent.wait(20) == 0
    assert session.sessions() == {NAME: "ended"}


@pytest.mark.parametrize(
    "words",
    [
        ("hook", "start"),
        ("hook", "nonsense", "--brain", "claude"),
        ("hook", "step", "--brain", "nobody"),
        ("hook", "step", "--brain", "claude", "--no-such-option"),
        ("hook", "step", "--brain", "claude", "too", "many"),
        ("hook",),
    ],
)
def test_no_word_makes_a_hook_stop_an_agent(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Exit code 2 of a hook, else that of a word that accord does not know, forbids the agent what it wants to do."""
    done = User(tmp_path).run(*words, stdin=b'{"session_id": "1"}')
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith("[USAGE]\n")


NO_INPUTS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"{}",
    b'{"session_id": 1}',
    b'{"session_id": ""}',
    b'{"session_id": "1", "prompt": []}',
    b'{"session_id": "1", "cwd": 1}',
    b'{"session_id": "1", "cwd": "/x"}',  # and no hook_event_name
    b'{"session_id": "1", "cwd": "/x", "hook_event_name": {}}',
    b'{"session_id": "' + b"x" * 100_000 + b'"}',
    b"\xff",
    b"[" * 100_000,
]


@pytest.mark.parametrize("stdin", NO_INPUTS, ids=range(len(NO_INPUTS)))
@pytest.mark.parametrize("event", ["start", "prompt"])
def test_no_input_makes_a_hook_stop_an_agent(tmp_path: Path, event: str, stdin: bytes) -> None:
    done = User(tmp_path).run("hook", event, "--brain", "claude", stdin=stdin)
    assert (done.code, done.out) == (0, "")


def test_what_is_broken_is_told_to_who_asks_and_in_the_way_of_nobody(claude: Session) -> None:
    start = claude.recorded[0]["given"]
    for env in ({"ACCORD_HOME": "/proc/nowhere"}, {"ACCORD_ENGINE": "nonsense:"}, {"ACCORD_AGENT": "No name"}):
        assert claude.hook("start", start, **env) == Done(0, "", "")
        told = claude.hook("start", start, "--verbose", **env)
        assert (told.code, told.out) == (0, "")
        assert told.err.startswith("accord: ")


WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from accord.cli.main import main; main()"


@pytest.mark.parametrize("module", ["apsw", "accord.cli.run", "accord.brains.claude"])
def test_a_failure_that_accord_does_not_know_is_in_the_way_of_nobody(claude: Session, module: str) -> None:
    stdin = json.dumps(claude.recorded[0]["given"]).encode()
    command = [sys.executable, "-c", WITHOUT, module]
    for event in ("start", "step"):
        assert claude.user.run("hook", event, "--brain", "claude", stdin=stdin, command=command) == Done(0, "", "")


@pytest.mark.parametrize("way", ["alone", "through-a-hub"])
def test_an_agent_is_told_commands_that_its_shell_finds(
    tmp_path: Path, hub_of: Callable[[User], Hub], way: str
) -> None:
    """The bare name leads nowhere where accord is not on the PATH, and elsewhere where it was installed with a home."""
    session = Session(tmp_path, "claude")
    if way == "through-a-hub":
        hub_of(session.user).start()
    start, prompt, *_ = session.recorded
    assert "\nTo write: accord send --from" in session.play(start)
    plain = {"PATH": "/usr/bin:/bin"}
    whole = f"{ACCORD} send --from {NAME}"
    assert f"\nTo write: {whole}" in session.play(start, **plain)
    session.send(FIRST)
    assert f"\nAnswer: {whole}" in session.play(prompt, **plain)
    home = tmp_path / "the team's"
    done = session.hook("start", start["given"], "--home", str(home))
    (command,) = re.findall("Who is there: (accord .*)[.] Your mail", session.shown(start, json.loads(done.out)))
    found = session.user.run("-c", command, command=["sh"], env={"ACCORD_HOME": "/proc/nowhere"})
    assert re.search(f"^{NAME} .* claude idle", found.out, re.MULTILINE)


def test_a_hook_ends_in_time_though_the_store_is_held(claude: Session) -> None:
    """SQLite waits on its own, and lets no handler of a signal run meanwhile."""
    start, _, step, *_ = claude.recorded
    claude.play(start)
    id = claude.send(FIRST)
    held = apsw.Connection(str(claude.user.home / "store.db"))
    held.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    assert claude.play(step) == ""
    assert time.monotonic() - began < LONGEST_S + 3.0  # SQLite would wait for ten
    held.close()
    assert claude.state(id) == "queued"
    assert f"| {FIRST}" in claude.play(step)


def test_a_closed_output_hands_over_nothing(claude: Session) -> None:
    start, _, step, *_ = claude.recorded
    claude.play(start)
    id = claude.send(FIRST)
    stdin = json.dumps(step["given"]).encode()
    read, write = os.pipe()
    os.close(read)
    command = ["accord", "hook", "step", "--brain", "claude"]
    with os.fdopen(write, "wb") as closed:
        subprocess.run(command, input=stdin, stdout=closed, env=claude.user.env, timeout=20, check=False)
    assert claude.state(id) == "queued"


@pytest.mark.parametrize("brain", ["claude", "codex", "gemini", "opencode"])
def test_one_hand_over_fits_into_what_is_shown_whole(tmp_path: Path, brain: str) -> None:
    session = Session(tmp_path, brain)
    start = session.recorded[0]
    session.play(start)
    for number in range(20):
        session.send(f"{number} " + "😀\n" * 100)
    shown = session.play(start)
    assert shown.count("\nFrom: ann") > 3
    assert len(shown.encode()) <= 10_000


@pytest.mark.parametrize("brain", BRAINS)
def test_what_a_brain_looks_at_is_read(brain: str) -> None:
    """Of what a hook gets, accord reads some fields only."""
    text = (Path(brains.__file__).parent / f"{brain}.py").read_text()
    looked_at = re.findall(r"""given(?:\.get\(|\[)["'](\w+)""", text)
    assert set(looked_at) <= set(GIVEN)
