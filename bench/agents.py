"""What agents wait for, with a hub: a hook with nothing to say, and `accord mcp` until it has answered `initialize`.

The hub has served MCP before: the first caller of a hub waits for the SDK to be loaded, which is the last row.
"""

import json
import subprocess
import time
from functools import partial
from statistics import median
from sys import executable

from bench import hub_mail, place
from bench.hub import ACCORD
from bench.processes import ENVIRONMENT
from bench.rounds import interleave, ratios
from bench.row import MILLISECONDS, TIMES_AS_LONG, Row
from bench.sizes import Sizes

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    with place.folder() as folder:
        home = f"{folder}/home"
        environment = {**ENVIRONMENT, "ACCORD_HOME": home}
        hub_mail.start(home, {})
        try:
            first = _begin_ms(environment)
            _hook_ms(environment, "start")
            runs = {
                "pass": partial(_pass_ms, environment),
                "hook": partial(_hook_ms, environment, "step"),
                "mcp": partial(_begin_ms, environment),
            }
            interleave(2, runs)  # the first ones read the disk
            found = interleave(rounds, runs)
        finally:
            hub_mail.stop(home)
    hook = f"accord hook, nothing new ({median(found['hook']):.1f} ms), against `python -c pass`"
    what = f"accord mcp until it has answered initialize ({median(found['mcp']):.1f} ms), against `python -c pass`"
    return [
        Row(hook, TIMES_AS_LONG, ratios(found["hook"], found["pass"]), 1.3),
        Row(what, TIMES_AS_LONG, ratios(found["mcp"], found["pass"]), 3.0),
        Row("the same, when it is the first of a hub", MILLISECONDS, [first]),
    ]


def _pass_ms(environment: dict[str, str]) -> float:
    return _run_ms([executable, "-c", "pass"], environment)


def _hook_ms(environment: dict[str, str], event: str) -> float:
    return _run_ms([ACCORD, "hook", event, "--brain", "claude"], environment)


def _run_ms(command: list[str], environment: dict[str, str]) -> float:
    """With the pipes that an agent gives its hooks: to make and to read these takes time too, whoever is run."""
    given = json.dumps({"session_id": "bench", "cwd": "/tmp/bench", "hook_event_name": "PostToolBatch"}).encode()
    start = time.perf_counter()
    subprocess.run(command, input=given, env=environment, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


def _begin_ms(environment: dict[str, str]) -> float:
    start = time.perf_counter()
    pipe = subprocess.Popen([ACCORD, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert pipe.stdin is not None
    assert pipe.stdout is not None
    pipe.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    pipe.stdin.flush()
    answer = json.loads(pipe.stdout.readline())
    took_ms = (time.perf_counter() - start) * 1000
    pipe.communicate()
    assert answer["result"]["serverInfo"]["name"] == "accord"
    return took_ms
