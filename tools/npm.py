"""Programs from npm that `make test-agents` runs, in the versions below, kept outside the checkout.

python tools/npm.py [NAME...]

They lie in $ACCORD_TEST_CACHE, or ~/.cache/accord-test, each in a folder that its versions name: what is there already
is not fetched again, and another version stands beside it.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

# What is installed together, under a name. The programs need a newer node than Debian 12 has, which npm has too.
SETS = {
    "node": {"node": "22.23.3"},
    "mcp-conformance": {"@modelcontextprotocol/conformance": "0.2.0-alpha.12"},
    "mcp-inspector": {"@modelcontextprotocol/inspector": "2.12.0"},
}


def cache() -> Path:
    return Path(os.environ.get("ACCORD_TEST_CACHE") or "~/.cache/accord-test").expanduser()


def folder(name: str) -> Path:
    """Where a set lies, whether or not it was fetched yet."""
    versions = "+".join(SETS[name].values())
    return cache() / f"{name}-{versions}"


def program(name: str, path: str) -> Path:
    """A file of a set."""
    return folder(name) / "node_modules" / path


def node() -> Path:
    return program("node", ".bin/node")


def is_there(name: str) -> bool:
    return (folder(name) / "package.json").exists()


def fetch(name: str) -> None:
    """Install a set unless it is there. It gets its name when it is whole, so that a fetch cut short leaves none."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # others may want the same
        if is_there(name):
            return
        half = folder(name).with_name(f"{folder(name).name}.half")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        (half / "package.json").write_text(json.dumps({"private": True, "dependencies": SETS[name]}))
        words = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        subprocess.run(words, cwd=half, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder(name), ignore_errors=True)
        half.rename(folder(name))


def main(names: list[str]) -> int:
    for name in names or SETS:
        fetch(name)
        print(f"{name}: {folder(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
