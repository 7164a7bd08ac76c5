"""Programs from npm that `make test-agents` runs, in the versions below, kept outside the checkout: `make programs`.

They lie in $ACCORD_TEST_CACHE, or ~/.cache/accord-test, each in a folder that its version names: what is there already
is not fetched again, and another version stands beside it.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

LONGEST_S = 900.0  # some are large


class Program(NamedTuple):
    package: str
    version: str
    command: str


# The agents' are called as users of `accord install` type them. Some need a newer node than Debian 12 has, which npm
# has too.
PROGRAMS = {
    "node": Program("node", "22.23.3", "node"),
    "claude": Program("@anthropic-ai/claude-code", "2.1.325", "claude"),
    "codex": Program("@openai/codex", "0.166.0", "codex"),
    "gemini": Program("@google/gemini-cli", "0.61.0", "gemini"),
    "opencode": Program("opencode-ai", "1.18.33", "opencode"),
    "mcp-conformance": Program("@modelcontextprotocol/conformance", "0.2.0-alpha.12", "conformance"),
    "mcp-inspector": Program("@modelcontextprotocol/inspector", "2.12.0", "mcp-inspector"),
}


class Failed(Exception):
    """Something was not fetched, and why."""


def path(name: str) -> Path:
    """Where a program lies, whether or not it was fetched yet."""
    return _folder(name) / _inside(name)


def with_node(env: Mapping[str, str]) -> dict[str, str]:
    """Variables in which the programs find the node that is theirs."""
    return {**env, "PATH": f"{path('node').parent}:{env['PATH']}"}


def fetch(name: str) -> None:
    """Install a program unless it is there. Its folder gets its name once it is whole."""
    folder = _folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # others may want the same
        if path(name).exists():
            return
        half = folder.with_name(f"{folder.name}.half")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        print(f"fetching {name} {PROGRAMS[name].version}", flush=True)
        _install(name, half, lock.fileno())
        _prove(name, half)
        shutil.rmtree(folder, ignore_errors=True)
        half.rename(folder)


def _install(name: str, folder: Path, lock: int) -> None:
    package, version, _ = PROGRAMS[name]
    # Of newer npm nothing runs at an install that is not named here.
    wanted = {"private": True, "dependencies": {package: version}, "allowScripts": {package: True}}
    (folder / "package.json").write_text(json.dumps(wanted))
    words = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    try:
        # npm holds the lock too, should it live longer than this.
        subprocess.run(words, cwd=folder, check=True, timeout=LONGEST_S, pass_fds=[lock], stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Failed("npm is not on this machine; install Node.js, which brings it") from None
    except subprocess.SubprocessError as error:
        raise Failed(str(error)) from None


def _prove(name: str, folder: Path) -> None:
    """npm succeeds also where a part for this machine could not be fetched."""
    words = [str(folder / _inside(name)), "--version"]
    with tempfile.TemporaryDirectory() as home:
        env = {**with_node(os.environ), "HOME": home}
        try:
            done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise Failed(str(error)) from None
    if PROGRAMS[name].version not in done.stdout:
        raise Failed(f"it does not say that it is {PROGRAMS[name].version}: {done.stdout}{done.stderr}")


def _folder(name: str) -> Path:
    cache = Path(os.environ.get("ACCORD_TEST_CACHE") or "~/.cache/accord-test").expanduser()
    return cache / f"{name}-{PROGRAMS[name].version}"


def _inside(name: str) -> str:
    return f"node_modules/.bin/{PROGRAMS[name].command}"


def main(names: list[str]) -> int:
    for name in names or PROGRAMS:
        try:
            fetch(name)
        except Failed as error:
            print(f"{name} was not fetched: {error}", file=sys.stderr)
            return 1
        print(f"{name}: {path(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
