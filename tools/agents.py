"""Install the real programs of agents that `make test-agents` runs, each in the version that tests/agents/programs.py
names; what is there already stays."""

import json
import subprocess
import sys

from tests.agents.programs import PROGRAMS, Program

_LONGEST_S = 900.0  # they are large


def main() -> int:
    missing = [program for program in PROGRAMS.values() if installed(program) != program.version]
    failed = [program.package for program in missing if not install(program)]
    if failed:
        print(f"not installed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def installed(program: Program) -> str:
    """The version that is there; "": none."""
    try:
        manifest = json.loads(program.manifest.read_text())
    except (OSError, ValueError):
        return ""
    return str(manifest["version"]) if program.path.exists() else ""


def install(program: Program) -> bool:
    wanted = f"{program.package}@{program.version}"
    print(f"installing {wanted} in {program.folder}", flush=True)
    program.folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", str(program.folder), "--no-audit", "--no-fund", "--save-exact", wanted]
    try:
        done = subprocess.run(command, timeout=_LONGEST_S, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        print("npm is not on this machine", file=sys.stderr)
        return False
    # npm succeeds too where what it should have linked is not there.
    return done.returncode == 0 and installed(program) == program.version


if __name__ == "__main__":
    sys.exit(main())
