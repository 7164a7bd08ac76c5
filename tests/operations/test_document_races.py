"""Documents that many change at once: nobody's change is lost, and all of it can be put in one order."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from accord import errors
from accord.model import new_request
from accord.operations import call
from accord.operations.context import Context
from accord.store.open import open_store
from accord.store.wrap.faulty import chance, faulty, work_twice
from accord.testing.histories.history import UNKNOWN, Commit, History, Read
from accord.testing.histories.registers import check_registers
from tests.operations.document_worker import NAMES, Operator, add_lines, ask, context_on
from tests.operations.test_documents import read, versions, write
from tests.operations.ways import CommandLine, Python
from tests.readable import readable

pytestmark = pytest.mark.covers("S5")

WORKER = str(Path(__file__).with_name("document_worker.py"))
CROWD = 10


def test_ten_processes_change_one_document(lone_shell: CommandLine) -> None:
    race(lone_shell, times=10)


@pytest.mark.more
def test_ten_processes_change_one_document_a_hundred_times(lone_shell: CommandLine) -> None:
    race(lone_shell, times=100)


def race(shell: CommandLine, times: int) -> None:
    subprocess.run([sys.executable, WORKER, "crowd", str(CROWD), str(times)], env=shell.env(), check=True, timeout=300)
    check_lines(Python(shell.engine), times)


def check_lines(way: Python, times: int, crowd: int = CROWD) -> None:
    """Each line once, those of each in their order, and a revision for each."""
    found = way.do("doc.read", name=NAMES[0])
    lines = found["text"].splitlines()
    assert found["revision"] == len(lines) == crowd * times
    for n in range(crowd):
        assert [line for line in lines if line.startswith(f"w{n} ")] == [f"w{n} {time}" for time in range(times)]


@pytest.mark.parametrize("times", [20, pytest.param(100, marks=pytest.mark.more)])
def test_ten_threads_change_one_document_in_memory(memory: Python, times: int) -> None:
    with closing(open_store(memory.engine)) as store:
        in_threads(CROWD, lambda n: add_lines(context_on(store, memory.engine), NAMES[0], f"w{n}", times))
    check_lines(memory, times)


@pytest.mark.parametrize("seed", range(3))
def test_no_change_is_lost_or_made_twice_on_a_hostile_store(memory: Python, seed: int) -> None:
    """Conflicts and moves from nowhere, and commits of which nobody is told: asking again tells."""

    def add(n: int) -> None:
        fate = chance(10 * seed + n, conflict=0.2, moved=0.05, lost=0.1, never=0.1)
        with closing(open_store(memory.engine)) as store:
            add_lines(context_on(faulty(store, fate), memory.engine), NAMES[0], f"w{n}", 15)

    in_threads(4, add)
    check_lines(memory, 15, crowd=4)


def test_works_that_run_twice(memory: Python) -> None:
    with closing(open_store(memory.engine)) as inner:
        context = context_on(faulty(inner, work_twice()), memory.engine)

        def do(word: str, **params: Any) -> Any:
            return call(context, f"doc.{word}", {"name": "plan", **params})

        assert [do("write", text=text)["revision"] for text in ("one", "two", "two")] == [1, 2, 2]
        with pytest.raises(errors.Conflict):
            do("write", text="mine", base=1)
        assert do("rm", base=2)["revision"] == 3
        assert do("restore", revision=1)["revision"] == 4
        assert [one["revision"] for one in do("history")["versions"]] == [4, 3, 2, 1]
        assert do("read")["text"] == "one"
    write(memory, "last")
    assert versions(memory) == [(5, "last"), (4, "one"), (3, ""), (2, "two"), (1, "one")]
    assert read(memory, revision=2) == "two"


class Model:
    """What documents are to be, in a few lines."""

    def __init__(self) -> None:
        self.texts: list[str | None] = [None]  # of each revision

    def write(self, text: "str | None", base: "int | None") -> str:
        """The revision that it is at then, or what is wrong."""
        now = len(self.texts) - 1
        there = now if self.texts[now] is not None else 0
        if base not in (None, there):
            return "CONFLICT"
        if text is None and not there:
            return "DOCUMENT_NOT_FOUND"
        if text != self.texts[now]:
            self.texts.append(text)
        return str(len(self.texts) - 1)


@pytest.mark.parametrize("seed", range(10))
def test_a_hostile_store_changes_nothing(memory: Python, seed: int) -> None:
    """The same answers as the model gives, one after another."""
    source = Random(seed)
    model = Model()
    fate = chance(seed, conflict=0.2, moved=0.05, lost=0.1, never=0.1)
    with closing(open_store(memory.engine)) as inner:
        context = context_on(faulty(inner, fate), memory.engine)
        for _ in range(40):
            text = source.choice([None, "one", "two", "three"])
            base = source.choice([None, 0, len(model.texts) - 1, len(model.texts) - 2])
            base = base if base is None or base >= 0 else 0
            assert outcome(context, text, base) == model.write(text, base)
    expected = [(n, text or "") for n, text in enumerate(model.texts)][1:]
    assert versions(memory) == expected[::-1][:6]


def outcome(context: Context, text: "str | None", base: "int | None") -> str:
    context.caller.request = new_request()
    try:
        if text is None:
            return str(ask(context, "doc.rm", {"name": "plan", "base": base})["revision"])
        return str(ask(context, "doc.write", {"name": "plan", "text": text, "base": base})["revision"])
    except (errors.Conflict, errors.DocumentNotFound) as error:
        return error.code


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_what_killed_processes_did_is_linearizable(engine: str, tmp_path: Path) -> None:
    operate_under_kills(f"{engine}:{tmp_path}/store", tmp_path, operations=600, kills=12)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_what_killed_processes_did_for_long_is_linearizable(engine: str, tmp_path: Path) -> None:
    operate_under_kills(f"{engine}:{tmp_path}/store", tmp_path, operations=6000, kills=100)


def test_what_threads_did_in_memory_is_linearizable(memory: Python, tmp_path: Path) -> None:
    def operate(n: int) -> None:
        with closing(open_store(memory.engine)) as store:
            unfortunate = faulty(store, chance(n, lost=0.03, never=0.03, conflict=0.1))
            operator = Operator(context_on(unfortunate, memory.engine), f"w{n}", n, f"{tmp_path}/{n}.history")
            for _ in range(150):
                operator.operate()

    in_threads(4, operate)
    history = read_history(tmp_path.glob("*.history"))
    assert history.outcomes["seen"] > 20
    assert history.outcomes["OUTCOME_UNKNOWN"] > 0
    check_registers(history)


def test_a_lost_update_would_be_found(tmp_path: Path) -> None:
    """Two that both replace what one of them read: no order explains them."""
    key = ("doc", "plan")
    first = Commit("a", 0, 1, ((key, 0),), {key: b"1"}, 1)
    both = [Commit(who, 2, 3, ((key, 1),), {key: who.encode()}, n) for n, who in ((2, "b"), (3, "c"))]
    with pytest.raises(AssertionError, match="not linearizable"):
        check_registers(History([first, *both], []))


def operate_under_kills(url: str, folder: Path, operations: int, kills: int) -> None:
    """Workers change documents, every other one on a faulty store; one is killed now and then, and replaced."""
    source = Random(0)
    crew: list[subprocess.Popen[bytes]] = []
    started = done = killed = 0
    try:
        while done < operations or killed < kills:
            while len(crew) < 4:
                crew.append(start(url, folder, started))
                started += 1
            ready = readable([process.stdout for process in crew if process.stdout], 30)
            assert ready, "nobody does anything"
            for output in ready:
                said = output.read(65536)
                assert said, "a worker ended by itself"
                done += len(said)
            if done > (killed + 1) * operations // (kills + 1):
                victim = crew.pop(source.randrange(len(crew)))
                end(victim)
                killed += 1
    finally:
        for process in crew:
            end(process)
    history = read_history(folder.glob("*.history"))
    assert history.unanswered > 0
    assert history.outcomes["seen"] > operations / 20, "they never got into each other's way"
    assert history.outcomes["OUTCOME_UNKNOWN"] > 0
    check_registers(history)


def start(url: str, folder: Path, n: int) -> "subprocess.Popen[bytes]":
    words = ["operate", url, f"w{n}", str(n), f"{folder}/w{n}.history", *["faulty"] * (n % 2)]
    return subprocess.Popen([sys.executable, WORKER, *words], stdout=subprocess.PIPE, bufsize=0)


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    assert process.stdout
    process.stdout.close()


def read_history(paths: Iterable[Path]) -> History:
    """What the workers wrote down, as reads and compare-and-sets of one register for each document."""
    calls: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    for record in records(paths):
        (answers if "outcome" in record else calls)[record["id"]] = record
    commits: list[Commit] = []
    reads: list[Read] = []
    for id, made in calls.items():
        answer = answers.get(id, {"outcome": "", "returned": UNKNOWN})
        key = ("doc", made["name"])
        if answer["outcome"] == "seen" or (answer["outcome"] == "ok" and made["kind"] == "read"):
            seen = None if answer["text"] is None else answer["text"].encode()
            reads.append(Read(made["who"], made["called"], answer["returned"], key, seen, answer["revision"], 0))
        elif made["kind"] != "read" and answer["outcome"] in ("", "ok", errors.OutcomeUnknown.code):
            checks = () if made["expects"] is None else ((key, made["expects"]),)
            written = {key: None if made["writes"] is None else made["writes"].encode()}
            returned = answer["returned"] if answer["outcome"] == "ok" else UNKNOWN
            commits.append(Commit(made["who"], made["called"], returned, checks, written, answer.get("revision")))
    return History(commits, reads, len(calls) - len(answers), Counter(one["outcome"] for one in answers.values()))


def records(paths: Iterable[Path]) -> "Iterator[Any]":
    for path in paths:
        for line in path.read_bytes().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                pass  # half a line, of a process that was killed


def in_threads(count: int, work: Any) -> None:
    """Let them run at once; the error of any of them is one of the test."""
    failed: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
