"""Where somebody works: a home, a project, accord, and the real programs of agents that they start there."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.agents.model import Model
from tests.agents.vendors import Vendor
from tests.cli.users import User
from tests.need import need_from_npm
from tools.npm import with_node

TIMEOUT_S = 120.0
PROJECT = "web-app"


def until(done: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, f"not in {timeout_s} s: {what}"
        time.sleep(0.05)


class Agent:
    """A program of an agent that runs."""

    def __init__(self, vendor: Vendor, command: list[str], env: Mapping[str, str], cwd: Path, says: Path) -> None:
        self._vendor = vendor
        self._says = says
        with says.open("wb") as file:
            self._process = subprocess.Popen(
                command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )

    @property
    def said(self) -> str:
        return self._says.read_text()

    @property
    def session(self) -> str:
        """The id that it goes by for its own program."""
        events = [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]
        return next(id for event in events if (id := self._vendor.session(event)))

    def wait(self) -> str:
        """All that it said, once its turn is over, and it has ended well."""
        code = self._process.wait(TIMEOUT_S)
        assert code == 0, f"exit code {code}\n{self.said}"
        return self.said

    def kill(self) -> None:
        """As when the power fails: it, and all that it has started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Desk:
    def __init__(self, folder: Path, vendor: Vendor) -> None:
        self.user = User(folder)
        self.vendor = vendor
        self.project = folder / PROJECT
        self.project.mkdir()
        self.program = need_from_npm(vendor.name)
        self.user.env = with_node(self.user.env)
        self._agents: list[Agent] = []
        self.user.json("install", vendor.name)
        self.user.json("register", "ann")

    def start(self, model: Model, prompt: str = "Do it.", resume: str = "", **env: str) -> Agent:
        command, variables = self.vendor.start(self.user.folder, model)
        if resume:
            command = self.vendor.resume(command, resume)
        says = self.user.folder / f"agent-{len(self._agents)}.out"
        # TMPDIR: some make sockets there that all sessions of a machine would share.
        environment = {**self.user.env, "TMPDIR": str(self.user.folder), **variables, **env}
        agent = Agent(self.vendor, [self.program, *command, prompt], environment, self.project, says)
        self._agents.append(agent)
        return agent

    def close(self) -> None:
        for agent in self._agents:
            agent.kill()
            print(agent.said)  # shown where a test failed
        self.user.run("hub", "stop")

    def send(self, text: str, to: str = PROJECT) -> str:
        """The id of a message from ann."""
        found = self.user.run("send", "--from", "ann", "--to", to, "--message", "-", "--json", stdin=text.encode())
        return str(found.json["message_id"])

    def state(self, id: str) -> str:
        """How far a message has got with its only recipient."""
        return str(self._receipt(id)["state"])

    def wait_for(self, state: str, timeout_s: float = TIMEOUT_S) -> None:
        """Until the session in the project is in that state."""
        until(lambda: self.names().get(PROJECT, {}).get("state") == state, f"{PROJECT} is {state}", timeout_s)

    def handed_by(self, id: str) -> str:
        """What has handed it over last."""
        return str(self._receipt(id)["handed_over"]["by"])

    def names(self) -> dict[str, Any]:
        """Whose session is whose."""
        found = self.user.json("discover")["identities"]
        return {agent["identity"]: agent["session"] for agent in found if agent["session"]}

    def _receipt(self, id: str) -> dict[str, Any]:
        (receipt,) = self.user.json("receipt", id)["to"]
        return dict(receipt)
