"""Writes recordings/: what the hooks of each real program were given, for tests that do without the programs.

python -m tests.agents.record
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.agents.desk import Desk
from tests.agents.model import Model, call, run, say
from tests.agents.vendors import VENDORS, Vendor
from tools.npm import PROGRAMS

RECORDINGS = Path(__file__).parent / "recordings"
HOME = "/home/ann"  # instead of the folder that it was

FIRST, SECOND = "first", "second"

# In the place of the command `accord`.
IN_BETWEEN = """#!{python}
import sys
if sys.argv[1] == "hook":
    from {module} import note
    note({notes!r}, sys.argv[1:])
from accord.cli.main import main
main()
"""


def main() -> None:
    RECORDINGS.mkdir(exist_ok=True)
    for vendor in VENDORS:
        _record(vendor, vendor.name, _turn)
    _record(VENDORS[0], "claude-within", _within)


def _turn(desk: Desk) -> None:
    """One message while tools run, of which two are called at once, and one while the last answer is made."""
    script = [run("echo one; sleep 0.2", "echo two; sleep 0.4", held=True), run("echo three", held=True)]
    with Model(*script, say("Done.", held=True), say("Read.")) as model:
        agent = desk.start(model)
        model.request(1)
        desk.send(FIRST)
        model.request(1).let_go()
        model.request(2).let_go()
        model.request(3)
        desk.send(SECOND)
        model.request(3).let_go()
        agent.wait()


def _within(desk: Desk) -> None:
    """An agent that starts another one for a part of its work, which runs in the background."""
    part = call("Agent", prompt="Do a part.", description="a part", subagent_type="general-purpose")
    with Model(part, run("echo one"), say("Waiting."), say("Done.")) as model:
        desk.start(model).wait()


def _record(vendor: Vendor, name: str, play: Callable[[Desk], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        desk = Desk(Path(folder), vendor)
        accord = Path(folder, "accord")
        accord.write_text(IN_BETWEEN.format(python=sys.executable, module=__spec__.name, notes=str(notes)))
        accord.chmod(0o700)
        desk.user.run("install", vendor.name, command=[str(accord)])
        os.environ["PYTHONPATH"] = desk.user.env["PYTHONPATH"] = os.getcwd()
        try:
            play(desk)
        finally:
            desk.close()
        lines = notes.read_text().replace(folder, HOME).replace(_as_name(folder), _as_name(HOME))
    events = [json.loads(line) for line in lines.splitlines()]
    found = {"program": PROGRAMS[vendor.name].package, "version": PROGRAMS[vendor.name].version, "events": events}
    (RECORDINGS / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _as_name(folder: str) -> str:
    """How Claude Code calls a project's own folder."""
    return re.sub("[^A-Za-z0-9]", "-", folder)


def note(file: str, words: list[str]) -> None:
    """Keep what a hook gets on standard input, and leave it there."""
    given = sys.stdin.buffer.read()
    event: dict[str, Any] = {"event": words[1], "given": json.loads(given)}
    with open(file, "a") as notes:
        notes.write(json.dumps(event, ensure_ascii=False) + "\n")
    told, tell = os.pipe()
    os.write(tell, given[:65536])
    os.close(tell)
    os.dup2(told, 0)


if __name__ == "__main__":
    main()
