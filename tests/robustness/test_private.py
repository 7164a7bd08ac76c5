"""Files are for their owner alone from the moment they are made, whatever the umask; nothing is written elsewhere."""

import re
import stat
from pathlib import Path

import pytest

from tests.robustness import strace
from tests.robustness.homes import ENGINES, PYTHON, acknowledged, check_store, url_in
from tests.robustness.worker import RESTART_EVERY

CHANGES = RESTART_EVERY + 2

engines = pytest.mark.parametrize("engine", ENGINES)


@pytest.mark.covers("S14.1")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777], ids="umask-{:03o}".format)
@engines
def test_private_whatever_the_umask(engine: str, umask: int, quick_path: Path) -> None:
    home = quick_path / "folder" / "home"
    run = strace.run([url_in(engine, home), "1", str(CHANGES)], quick_path / "log", umask=umask)
    assert acknowledged(run.said) == tuple(range(1, CHANGES + 1)), run
    found = [home.parent, home, *home.rglob("*")]
    modes = {path.relative_to(quick_path): stat.filemode(path.lstat().st_mode) for path in found}
    assert set(modes.values()) == {"drwx------", "-rw-------"}, modes
    made = [call.text for call in strace.calls_on(quick_path, run.log) if asked_mode(call.text) is not None]
    assert len(made) >= 5
    for call in made:
        assert not (asked_mode(call) or 0) & 0o077, f"others may look for a moment: {call}"
    assert check_store(engine, home) == tuple(range(1, CHANGES + 1))


def asked_mode(call: str) -> int | None:
    """The mode that a system call gives to a file or folder."""
    match = re.search(r", (0[0-7]+)\) += ", call)
    return int(match[1], 8) if match else None


LARGE = """
import sys
from accord.store.contract import Item, MAX_BYTES, MAX_WRITES
from accord.store.open import open_store
from accord.store.transaction import transact
from tests.robustness.worker import say
def large(tx):
    for n in range(MAX_WRITES):
        tx.put("large", f"n{n}", bytes(MAX_BYTES // MAX_WRITES))
store = open_store(sys.argv[1])
store.load([("loaded", 0, [Item(f"n{n:05d}", bytes(1000), 0) for n in range(1000)])])
for _ in range(3):
    transact(store, large)
with store.snapshot() as snapshot:
    snapshot.list("large", limit=1000)
    snapshot.collections()
store.close()
say("done")
"""


@engines
def test_nothing_is_written_outside_the_home(engine: str, tmp_path: Path) -> None:
    """Not for the largest of commits: a database would like to put what it cannot hold into temporary files."""
    home = tmp_path / "home"
    run = strace.run([url_in(engine, home)], tmp_path / "log", command=[*PYTHON, LARGE])
    assert (run.said, run.complaints) == ("done\n", "")
    written = [line for line in run.log.splitlines() if writes(line)]
    assert len(written) > 100
    assert [line for line in written if str(home) not in line] == []


def writes(line: str) -> bool:
    """Whether a call changes a file, other than standard output, or opens one for that."""
    call = line.partition(" ")[2].lstrip()
    name = call.partition("(")[0]
    if name in ("open", "openat"):
        return re.search("O_WRONLY|O_RDWR|O_CREAT", call) is not None and '"/dev/null"' not in call
    return name in strace.CHANGING and not call.startswith("write(1<")
