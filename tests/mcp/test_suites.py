"""MCP judged by others: the conformance suite, on accord's own HTTP door, and the Inspector, through `accord mcp`."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.users import ACCORD, User
from tests.doors.mcp_clients import Home
from tests.need import need_from_npm
from tools.npm import with_node

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.agents

# What the suite scores at each revision: scenarios, and the checks in them. With fewer it would pass for saying less.
SCORED = {"2025-11-25": (30, 70), "2026-07-28": (37, 120)}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(User(tmp_path))
    yield home
    home.hub.close()


@pytest.fixture
def url(home: Home) -> Iterator[str]:
    """A hub that has the suite's fixtures too, and gives who comes without a token that of ben."""
    told, tell = os.pipe()
    words = [sys.executable, "-m", "tests.mcp.serve", "ben", str(home.user.home), f"--told-by={tell}"]
    serving = subprocess.Popen(words, cwd=ROOT, env=home.user.env, pass_fds=(tell,), stderr=subprocess.DEVNULL)
    os.close(tell)
    with open(told, "rb") as said:
        about = json.loads(said.readline())
    yield f"http://localhost:{about['http_port']}/mcp"
    serving.kill()
    serving.wait()


@pytest.mark.covers("I1")
@pytest.mark.parametrize("revision", SCORED)
def test_the_conformance_suite_finds_nothing(url: str, revision: str, tmp_path: Path) -> None:
    suite = need_from_npm("mcp-conformance")
    words = [suite, "server", "--url", url, "--requirements", revision, "-o", str(tmp_path / "found")]
    env = with_node(os.environ)
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    found = dict(re.findall(r"^[✓✗] ([a-z0-9-]+): (\d+ passed, \d+ failed)", summary, re.MULTILINE))
    reported = re.findall(r"^  [✓✗] ([a-z0-9-]+) \(", summary, re.MULTILINE)
    scored = {name: [int(word) for word in re.findall(r"\d+", counts)] for name, counts in found.items()}
    for name in reported:
        del scored[name]
    assert {name: failed for name, (_, failed) in scored.items() if failed} == {}
    assert (len(scored), sum(passed for passed, _ in scored.values())) == SCORED[revision]


@pytest.mark.covers("I1")
def test_the_inspector_uses_the_tools_through_the_pipe(home: Home) -> None:
    inspector = need_from_npm("mcp-inspector")
    home.hub.start()

    def inspect(*words: str) -> Any:
        env = with_node(home.environment("ben"))
        command = [inspector, "--cli", "-e", "ACCORD_AGENT=ben", ACCORD, "mcp", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    names = [tool["name"] for tool in inspect("--method", "tools/list")["tools"]]
    assert names == ["check", "ack", "send", "thread", "discover", "doc", "task", "lock", "call"]
    call = ("--method", "tools/call", "--tool-name")
    sent = inspect(*call, "send", "--tool-arg", 'to=["ann"]', "--tool-arg", "message=hello")
    assert sent["structuredContent"]["to"] == [{"identity": "ann", "state": "queued"}]
    assert home.user.json("check", "ann", "--peek")["messages"][0]["message"] == "hello"
    uris = [one["uri"] for one in inspect("--method", "resources/list")["resources"]]
    assert {"accord://inbox", "accord://tasks", "accord://operations"} <= set(uris)
    tasks = inspect("--method", "resources/read", "--uri", "accord://tasks")
    assert json.loads(tasks["contents"][0]["text"])["ready"] == []
