"""Real programs that wait for their user are woken: that begins a turn, whose hooks bring the mail.

Claude Code and Codex by the hub, OpenCode by its plugin, Gemini CLI by a hook that waits at the end of a turn.
"""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents.desk import PROJECT, TIMEOUT_S, Desk, until
from tests.agents.model import Model, say
from tests.agents.test_programs import fences
from tests.agents.vendors import Claude, Codex, Gemini, OpenCode, Vendor
from tests.need import need

pytestmark = [pytest.mark.agents, pytest.mark.covers("I3")]


@pytest.fixture
def desk_of(tmp_path: Path) -> Iterator[Callable[[Vendor], Desk]]:
    desks: list[Desk] = []

    def make(vendor: Vendor) -> Desk:
        desks.append(Desk(tmp_path, vendor))
        return desks[0]

    yield make
    for desk in desks:
        desk.close()


def check_wake(desk: Desk, model: Model) -> None:
    """A message that waits is before the model in the turn that the wake begins, and seen after that."""
    desk.wait_for("idle")
    asked = len(model.requests)
    id = desk.send("Wake up.")
    request = model.request(asked + 1)
    assert "| Wake up." in fences(request)[-1]
    assert desk.state(id) == "handed_over"
    request.let_go()
    until(lambda: desk.state(id) == "seen", "it is seen")


def test_the_hub_wakes_claude_by_its_socket(desk_of: Callable[[Vendor], Desk]) -> None:
    desk = desk_of(Claude())
    command, env = words_of(desk, model := Model(say("Done."), say("Read.", held=True)))
    flags = ["-p", "--input-format", "stream-json", *command[:-1]]
    prompt = json.dumps({"type": "user", "message": {"role": "user", "content": "Do it."}})
    with (
        hub_of(desk),
        model,
        subprocess.Popen(
            [desk.program, *flags],
            env=env,
            cwd=desk.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as program,
    ):
        assert program.stdin
        program.stdin.write(prompt.encode() + b"\n")
        program.stdin.flush()
        try:
            model.request(1)
            check_wake(desk, model)
        finally:
            program.stdin.close()
            assert program.wait(TIMEOUT_S) == 0


def test_the_hub_wakes_codex_by_its_queue(desk_of: Callable[[Vendor], Desk]) -> None:
    desk = desk_of(Codex())
    with hub_of(desk), Model(say("Done."), say("Read.", held=True)) as model:
        command, env = words_of(desk, model)
        settings = [word for word in command if word.startswith(("model", "model_providers"))]
        flags = ["--no-daemon", "--dangerously-bypass-hook-trust", "--sandbox", "danger-full-access"]
        flags += [word for setting in settings for word in ("-c", setting)]
        trust = f'[projects."{desk.project}"]\ntrust_level = "trusted"\n'
        (desk.user.folder / ".codex/config.toml").write_text(trust)
        with terminal(desk, [desk.program, *flags, "Do it."], env):
            model.request(1)
            check_wake(desk, model)


def test_opencode_is_woken_by_its_plugin(desk_of: Callable[[Vendor], Desk]) -> None:
    desk = desk_of(OpenCode())
    with hub_of(desk), Model(say("Done."), say("Read.", held=True)) as model:
        _, env = words_of(desk, model)
        with terminal(desk, [desk.program, "--prompt", "Do it."], env):
            model.request(1)
            check_wake(desk, model)


@pytest.mark.parametrize("vendor", [Claude(), Codex(), Gemini()], ids=lambda vendor: vendor.name)
def test_who_waits_at_the_end_of_a_turn_goes_on_when_mail_comes(
    desk_of: Callable[[Vendor], Desk], vendor: Vendor
) -> None:
    """There is no hub; the program runs without a terminal, and would have ended."""
    desk = desk_of(vendor)
    with Model(say("Done."), say("Read.", held=True), say("Bye.")) as model:
        agent = desk.start(model, ACCORD_STOP_WAIT_S="5", ACCORD_AUTOSTART="false")
        model.request(1)
        check_wake(desk, model)
        agent.wait()
    assert desk.names()[PROJECT]["state"] == "ended"


def test_gemini_at_a_terminal_is_woken_by_its_hook(desk_of: Callable[[Vendor], Desk]) -> None:
    desk = desk_of(Gemini())
    with gemini(desk, Model(say("Done."), say("Read.", held=True))) as (model, _):
        check_wake(desk, model)


def test_what_gemini_takes_from_a_hook_after_its_user_interrupted_it_comes_again(
    desk_of: Callable[[Vendor], Desk],
) -> None:
    """It lets the hook wait on, asks no model about what that says, and then tells of the end of a turn."""
    desk = desk_of(Gemini())
    with gemini(desk, Model(say("Done."), say("Read."))) as (model, screen):
        desk.wait_for("idle")
        screen.type("Escape")
        until(lambda: "cancelled" in screen.text(), "it is interrupted")
        id = desk.send("Wake up.")
        until(lambda: desk.state(id) == "handed_over", "the hook has answered")
        until(lambda: "| Wake up." in screen.text(), "it is shown")
        desk.wait_for("idle")
        screen.type("go on")
        time.sleep(1.0)  # or it takes the key after it for a part of a text that was pasted
        screen.type("Enter")
        assert "| Wake up." in fences(model.request(2))[-1]
        until(lambda: desk.state(id) == "seen", "it is seen")


@contextmanager
def gemini(desk: Desk, model: Model) -> Iterator[tuple[Model, "terminal"]]:
    """At a terminal, after its first answer, where its hook waits."""
    with model:
        command, env = words_of(desk, model)
        flags = [word for word in command[:-1] if word not in ("--output-format", "stream-json")]
        words = [desk.program, *flags, "-i", "Do it."]
        with terminal(desk, words, {**env, "ACCORD_STOP_WAIT_S": "60"}) as screen:
            model.request(1)
            yield model, screen


@contextmanager
def hub_of(desk: Desk) -> Iterator[None]:
    desk.user.json("hub", "start")
    try:
        yield
    finally:
        desk.user.json("hub", "stop")


def words_of(desk: Desk, model: Model) -> tuple[list[str], dict[str, str]]:
    command, variables = desk.vendor.start(desk.user.folder, model)
    return command, {**desk.user.env, "TMPDIR": str(desk.user.folder), **variables}


class terminal:
    """A program at a terminal that somebody else looks at."""

    def __init__(self, desk: Desk, command: list[str], env: dict[str, str]) -> None:
        self._tmux = [need("tmux"), "-S", str(desk.user.folder / "tmux")]
        self._env = {**env, "TERM": "xterm-256color", "SHELL": "/bin/sh"}
        self._start = ["new-session", "-d", "-x", "120", "-y", "40", "-c", str(desk.project), shlex.join(command)]

    def __enter__(self) -> "terminal":
        self._do(self._start)
        return self

    def text(self) -> str:
        """What somebody would see."""
        return self._do(["capture-pane", "-p"])

    def type(self, keys: str) -> None:
        self._do(["send-keys", keys])

    def __exit__(self, *failure: object) -> None:
        if any(failure):
            print(self.text())
        self._do(["kill-server"])

    def _do(self, words: list[str]) -> str:
        return subprocess.run([*self._tmux, *words], env=self._env, check=True, capture_output=True, text=True).stdout
