"""What the docs show works, and what there is stands in them."""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accord.store.open import engines
from tests.need import need
from tests.ports import free_port
from tests.servers.etcd import Cluster, program
from tests.servers.firebase import FirebaseServer
from tests.servers.redis import redis_of_its_own
from tools import reference

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])


@pytest.mark.parametrize("name", reference.PAGES)
def test_pages_made_from_the_code_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == reference.PAGES[name](), "run: make reference"


def test_every_engine_is_in_the_docs() -> None:
    page = (DOCS / "store.md").read_text()
    assert [name for name in engines() if f"`{name}:" not in page] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.stem
)
def test_the_python_in_the_docs_runs(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_python_in_the_docs_has_the_types_it_shows(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "how-to/python.md").read_text(), re.DOTALL)
    (tmp_path / "page.py").write_text("\n".join(blocks))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "page.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_make_targets_in_the_docs_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"`make ([a-z-]+)", page.read_text())) <= targets, page


def test_each_word_of_the_glossary_is_there_once() -> None:
    words = re.findall(r"^- \*\*(.+?)\*\*", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert len(words) > 50
    assert sorted(words) == sorted(set(words))


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page}: {link}"


def test_the_tests_that_guarantees_name_are_there_and_are_not_skipped() -> None:
    named = set(re.findall(r"`((?:tests|src)/[\w/]+\.py)::(\w+)`", (DOCS / "guarantees.md").read_text()))
    assert len(named) > 40
    lacking = {f"{path}::{name}" for path, name in named if not is_run(ROOT / path, name)}
    assert not lacking


def test_what_happens_to_an_engine_names_a_test() -> None:
    page = (DOCS / "guarantees.md").read_text()
    rows = [line for line in page.partition("## What shows it")[2].splitlines() if line.startswith("| ")]
    cells = [row.split("|")[-2].strip() for row in rows]
    assert {cell for cell in cells if "::" not in cell} == {"shown by", "---"}


def is_run(path: Path, name: str) -> bool:
    """Whether that function is there, and nothing on it says that it is skipped or may fail."""
    if not path.exists():
        return False
    tree = ast.parse(path.read_text())
    marks = [
        ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    marks += [ast.unparse(decorator) for node in found for decorator in node.decorator_list]
    return bool(found) and not any(re.search(r"mark\.(skip|xfail)", mark) for mark in marks)


def test_the_transcript_in_the_readme_is_what_the_demo_prints() -> None:
    done = subprocess.run([sys.executable, "-m", "accord.demo"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shown = (ROOT / "README.md").read_text().partition("$ make demo\n")[2].partition("\n##")[0]
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    assert len(lines) > 5
    assert [_shape(line) for line in lines] == [
        _shape(line.strip()) for line in done.stdout.splitlines() if line.strip()
    ]


@pytest.mark.covers("Q6")
def test_every_engine_that_keeps_something_has_a_guide() -> None:
    guides = {page.stem for page in (DOCS / "engines").glob("*.md")}
    assert guides == set(engines()) - {"memory", "rediss"}  # rediss is redis, over TLS


@pytest.mark.covers("Q6")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text()], ids=lambda page: page.stem
)
def test_the_commands_in_the_docs_print_what_stands_there(page: Path, tmp_path: Path) -> None:
    """All commands of a page, one after another in one shell, in a home of their own, with the files that it shows."""
    for name, text in re.findall(r"```sh ([a-z.]+)\n(.*?)```", page.read_text(), re.DOTALL):
        (tmp_path / name).write_text(text)
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    commands = [line[2:] for line in "".join(blocks).splitlines() if line.startswith("$ ")]
    script = "\n".join(f"echo {shlex.quote('$ ' + command)}\n{command} || exit 1" for command in commands)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with server_of(page.stem) as where:
        if "ETCD" in where:
            path += f":{Path(program('etcdctl')).parent}"
        env = {"HOME": str(tmp_path), "PATH": path, **where}
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert commands
    printed = done.stdout.replace(str(tmp_path), "HOME")
    assert [_shape(line) for line in printed.splitlines()] == [_shape(line) for line in "".join(blocks).splitlines()]


@contextmanager
def server_of(page: str) -> Iterator[dict[str, str]]:
    """The server that a page's commands need, and how they find it."""
    if page == "firebase":
        with FirebaseServer() as server:
            yield {"FIREBASE_DATABASE_EMULATOR_HOST": f"127.0.0.1:{server.port}"}
    elif page in ("redis", "migrate"):
        need("redis-cli")
        with redis_of_its_own(port=str(free_port()), requirepass="secret") as redis:
            yield {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(redis.port), "REDISCLI_AUTH": "secret"}
    elif page in {"etcd", "team-on-etcd"}:
        cluster = Cluster(1)
        try:
            cluster.start()
            address = cluster.members[0].address
            yield {"ETCD": address, "ETCDCTL_ENDPOINTS": address, "ETCDCTL_API": "3"}
        finally:
            cluster.remove()
    else:
        yield {}


def _shape(line: str) -> str:
    """The line without what differs from run to run: ids, times, figures."""
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", line)
    line = re.sub(r"[0-9a-f]{8}-[0-9]{13}-[0-9a-f]{16}", "RECEIPT", line)
    line = re.sub(r"[0-9a-f]{16}\.[0-9]+", "REVISION", line)
    return re.sub(r"[0-9][0-9.:TZ-]*", "N", line)
