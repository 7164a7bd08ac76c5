"""HALT: everything stops within a step, and agents that were there go on only when a person says so."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.operations.people import refusal, register, send, states, token_of, unread
from tests.operations.processes import until_it_waits
from tests.operations.ways import ACCORD, CommandLine, Python, Way, exit_of

HALT = ".config/cross-agent-comms/HALT"


def test_halt_stops_talk_and_not_reading(way: Way, user_home: Path) -> None:
    register(way, "ann", "ben")
    ids = [send(way, "ann", "ben", str(n)) for n in range(2)]
    assert way.do("halt.set", reason="too hot")["halted"] == "too hot"
    assert (user_home / HALT).read_text().strip() == "too hot"
    assert "too hot" in refusal("HALTED", send, way, "ann", "ben").text
    refusal("HALTED", send, way, "human", "ben")
    refusal("HALTED", way.do, "mail.check", identity="ben")
    refusal("HALTED", way.do, "mail.check", identity="ben", wait=30)
    assert exit_of("HALTED") == 5
    assert unread(way, "ben") == ids
    way.do("mail.ack", identity="ben", ids=ids[:1])
    assert unread(way, "ben") == ids[1:]
    assert states(way, "ann") == [{"ben": "queued"}, {"ben": "seen"}]
    assert way.do("agent.discover")["halted"] == "too hot"


def test_unhalt_and_engage(way: Way) -> None:
    register(way, "ann", "ben", "cal")
    assert way.do("halt.lift") == {"lifted": False}
    way.do("halt.set", reason="stop")
    assert way.do("halt.lift") == {"lifted": True}
    assert way.do("agent.discover")["halted"] is None
    assert "accord engage ann" in refusal("NOT_ENGAGED", send, way, "ann", "ben").text
    refusal("NOT_ENGAGED", way.do, "channel.join", channel="talk", identity="ann")
    send(way, "human", "ann")  # people need nobody's leave
    assert way.do("halt.engage", identities=["ann"]) == {"engaged": ["ann"]}
    send(way, "ann", "ben")
    refusal("NOT_ENGAGED", send, way, "ben", "ann")
    assert way.do("halt.engage", all=True) == {"engaged": ["ben", "cal"]}
    assert way.do("halt.engage", all=True) == {"engaged": []}
    send(way, "ben", "ann")
    refusal("NOT_REGISTERED", way.do, "halt.engage", identities=["ann", "zoe"])
    refusal("USAGE", way.do, "halt.engage")


def test_each_halt_needs_an_engagement_of_its_own(memory: Python) -> None:
    register(memory, "ann")
    for _ in range(2):
        memory.do("halt.set", reason="stop")
        memory.do("halt.lift")
        refusal("NOT_ENGAGED", send, memory, "ann", "ann")
        memory.do("halt.engage", identities=["ann"])
        send(memory, "ann", "ann")


def test_who_comes_after_a_halt_needs_no_engagement(memory: Python) -> None:
    memory.do("halt.set", reason="stop")
    memory.do("halt.lift")
    register(memory, "ann")
    send(memory, "ann", "ann")


@pytest.mark.parametrize("how", ["force", "again"])
def test_no_agent_engages_itself(memory: Python, user_home: Path, how: str) -> None:
    """Registering the name anew is no way around the person."""
    register(memory, "ann")
    memory.do("halt.set", reason="stop")
    memory.do("halt.lift")
    agent = memory.acting("ann", token_of(user_home, "ann"))
    if how == "again":
        agent.do("agent.unregister", identity="ann")
    agent.do("agent.register", identity="ann", force=how == "force")
    refusal("NOT_ENGAGED", send, memory, "ann", "ann")


def test_engage_all_of_more_than_a_commit_holds(memory: Python) -> None:
    names = [f"n{n:02}" for n in range(60)]
    register(memory, *names)
    memory.do("halt.set", reason="stop")
    memory.do("halt.lift")
    assert memory.do("halt.engage", all=True) == {"engaged": names}


def test_what_agents_may_not(way: Way, user_home: Path) -> None:
    (user_home / "accord.yml").write_text("message_limit: 1000\n")
    register(way, "ann")
    way.do("halt.set", reason="stop")
    way.do("halt.lift")
    agent = way.acting("ann", token_of(user_home, "ann"))
    refused: list[tuple[str, dict[str, Any]]] = [
        ("halt.lift", {}),
        ("halt.engage", {"identities": ["ann"]}),
        ("halt.engage", {"all": True}),
        ("config.trust", {"path": "accord.yml"}),
        ("mail.send", {"sender": "human", "to": "ann", "message": "hello"}),
        ("mail.check", {"identity": "human", "peek": True}),
        ("mail.ack", {"identity": "human", "ids": ["x"]}),
        ("channel.join", {"identity": "human", "channel": "talk"}),
    ]
    for operation, params in refused:
        refusal("NOT_PERMITTED", agent.do, operation, **params)
    refusal("NOT_ENGAGED", send, agent, "ann", "ann")
    assert not (user_home / "accord/operator/trusted.json").exists()


def test_agents_may_halt_and_not_lift(way: Way) -> None:
    register(way, "ann")
    agent = way.acting("ann")
    agent.do("halt.set", reason="I am not sure")
    refusal("NOT_PERMITTED", agent.do, "halt.lift")
    assert way.do("agent.discover")["halted"] == "I am not sure"


@pytest.mark.parametrize("odd", ["empty", "binary", "dangling", "folder", "unreadable folder above"])
def test_an_odd_halt_is_a_halt(memory: Python, user_home: Path, odd: str) -> None:
    register(memory, "ann")
    _make(user_home / HALT, odd)
    refusal("HALTED", send, memory, "ann", "ann")
    assert memory.do("halt.status")["halted"]


@pytest.mark.parametrize("odd", ["empty", "binary", "dangling", "folder"])
def test_an_odd_halt_can_be_lifted(memory: Python, user_home: Path, odd: str) -> None:
    register(memory, "ann")
    _make(user_home / HALT, odd)
    assert memory.do("halt.lift") == {"lifted": True}
    send(memory, "human", "ann")


@pytest.mark.parametrize(
    "words",
    [[], ["stop", "now"], ["-x"], ["--stop", "now"], ["--reason"], ["-"], ["--", "--json"], ["x" * 100_000], ["-f"],
     ["please", "--help"], ["please", "--version"], ["please", "-h"], ["--help", "please"], ["please", "--status"],
     ["--status", "please"], ["--hub-port", "99999", "stop"], ["--hub-port"], ["--home"], ["--home="],
     ["stop", "--home"], ["--engine", "nonsense", "stop"], ["--json=1"], ["--version=1"], ["--", "--help"]],
    ids=" ".join,
)  # fmt: skip
def test_halt_cannot_fail_over_how_it_is_typed(user_home: Path, words: list[str]) -> None:
    shell = CommandLine(f"sqlite:{user_home}/store.db")
    done = subprocess.run([ACCORD, "halt", *words], env=shell.env(), capture_output=True, check=False)
    assert (user_home / HALT).exists(), done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    "variables",
    [{"ACCORD_AGENT": "No Name"}, {"ACCORD_HOME": "/proc/nothing"}, {"ACCORD_LOCK_TIMEOUT_S": "soon"}],
    ids=str,
)
def test_halt_needs_no_home_and_no_name(user_home: Path, variables: dict[str, str]) -> None:
    env = {**CommandLine(f"sqlite:{user_home}/store.db").env(), **variables}
    done = subprocess.run([ACCORD, "halt", "stop"], env=env, capture_output=True, check=False)
    assert (done.returncode, (user_home / HALT).read_text()) == (0, "stop\n"), done


def test_halt_halts_where_nobody_reads_what_is_printed(user_home: Path) -> None:
    shell = CommandLine(f"sqlite:{user_home}/store.db")
    subprocess.run(["/bin/sh", "-c", f"{ACCORD} halt stop >&-"], env=shell.env(), capture_output=True, check=False)
    assert (user_home / HALT).exists()


@pytest.mark.parametrize(("word", "shows"), [("--help", b"usage"), ("-h", b"usage"), ("--version", b"accord ")])
def test_help_for_halt_does_not_halt(user_home: Path, word: str, shows: bytes) -> None:
    done = CommandLine(f"sqlite:{user_home}/store.db").run(["halt", word])
    assert shows in done.stdout or b"version" in done.stdout
    assert not (user_home / HALT).exists()


def test_a_halt_that_cannot_be_written_says_what_to_mend(memory: Python, user_home: Path) -> None:
    """Another home would not help."""
    (user_home / ".config").touch()
    refused = refusal("HALT_UNWRITABLE", memory.do, "halt.set", reason="stop")
    assert str(user_home / ".config") in refused.text
    assert "--home" not in refused.text


def test_a_halt_without_a_reason_keeps_the_earlier_one(way: Way) -> None:
    way.do("halt.set", reason="fire")
    assert way.do("halt.set")["halted"] == "fire"
    assert way.do("halt.set", reason="flood")["halted"] == "flood"


def test_a_reader_who_waits_is_given_nothing_under_a_halt(shell: CommandLine, tmp_path: Path) -> None:
    """A message committed by a sender who had just got past the halt; here, by a user who has none."""
    register(shell, "ann", "ben")
    reader = shell.start(["check", "ben", "--wait=20"])
    until_it_waits(reader.pid)
    shell.do("halt.set", reason="stop")
    words = ["send", "--from=ann", "--to=ben", "--message=late"]
    (tmp_path / "elsewhere").mkdir()
    late = CommandLine(shell.engine, {"HOME": str(tmp_path / "elsewhere")})
    assert b'"status":"ok"' in late.run(words).stdout
    said = reader.communicate(timeout=30)[0]
    assert b"late" not in said
    assert reader.returncode == exit_of("HALTED")
    assert len(unread(shell, "ben")) == 1


def _make(path: Path, odd: str) -> None:
    path.parent.mkdir(parents=True)
    if odd == "empty":
        path.touch()
    elif odd == "binary":
        path.write_bytes(b"\xff\0\x1b[31m")
    elif odd == "dangling":
        path.symlink_to("nowhere")
    elif odd == "folder":
        path.mkdir()
    else:  # as root may look anywhere, a file where the folder should be
        path.parent.rmdir()
        path.parent.touch()
