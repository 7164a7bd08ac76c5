"""Every benchmark runs, on tiny sizes, and the report says what was found."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from types import ModuleType

import pytest

from accord.store.contract import Append, Delete, number_id
from accord.store.open import open_store
from bench import bare, elsewhere, floor, hub, machine, mail_send, place, preload, queues, run, sender, watching
from bench.rounds import interleave, ratios
from bench.row import COUNT, MILLISECONDS, SHARE, Row
from bench.sizes import TINY
from tests.need import need
from tests.servers import etcd, redis

LONG = (elsewhere, hub, queues)  # which start servers, hubs and many workers
MODULES = list(dict.fromkeys(benchmark.module for benchmark in run.BENCHMARKS))


@pytest.fixture(scope="module", autouse=True)
def _kept_folders() -> Iterator[None]:
    yield
    place.remove_kept()


@pytest.mark.parametrize(
    "module",
    [pytest.param(module, marks=[pytest.mark.more] if module in LONG else []) for module in MODULES],
    ids=lambda module: module.__name__.removeprefix("bench."),
)
def test_a_benchmark_runs(module: ModuleType) -> None:
    if module.__name__ in ("bench.race", "bench.crowd"):
        need("gcc")
    if module is elsewhere:
        redis.program()
        etcd.program()
    rows = module.measure(1, TINY)
    assert len({row.what for row in rows}) == len(rows) > 0
    assert [row.what for row in rows if not row.samples] == []
    # On a busy machine any target may be missed, but nothing may be lost.
    assert [row.what for row in rows if row.unit == COUNT and row.worst != 0] == []


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("", MILLISECONDS, [1, 2, 9], 2), "met"),
        (Row("", MILLISECONDS, [1, 3, 3], 2), "missed"),
        (Row("", MILLISECONDS, [1, 2, 9], 2, always=True), "missed"),
        (Row("", SHARE, [0.1, 0.5, 0.6], 0.5), "met"),
        (Row("", SHARE, [0.1, 0.4, 0.9], 0.5), "missed"),
        (Row("", SHARE, [0.4, 0.5, 0.6], 0.5, always=True), "missed"),
        (Row("", MILLISECONDS, [16], 15, void_if_missed=True), "VOID"),
        (Row("", MILLISECONDS, [1]), ""),
        (Row("", MILLISECONDS, [], 2), "not measured"),
    ],
)
def test_a_figure_is_judged(row: Row, verdict: str) -> None:
    assert row.verdict == verdict


def test_best_and_worst_depend_on_what_is_better() -> None:
    assert Row("", MILLISECONDS, [3, 1, 2]).cells()[1:4] == ["2.00 ms", "1.00 ms", "3.00 ms"]
    assert Row("", SHARE, [0.3, 0.1, 0.2]).cells()[1:4] == ["0.20", "0.30", "0.10"]


def test_the_report_tells_what_was_missed_and_shouts_when_it_is_void() -> None:
    benchmark = run.Benchmark("Title", floor, 1)
    fast = Row("fast", MILLISECONDS, [1], 2)
    slow = Row("slow", MILLISECONDS, [3], 2)
    void = Row("floor", MILLISECONDS, [20], 15, void_if_missed=True)
    report = run.render([(benchmark, [fast, slow])], "a machine", minutes=5)
    assert "1 of 2 targets are met." in report
    assert "- missed: Title: slow: 3.00 ms, target at most 2 ms\n" in report
    assert "| slow | 3.00 ms | 3.00 ms | 3.00 ms | at most 2 ms | **missed** |" in report
    assert "VOID" not in report
    report = run.render([(benchmark, [fast, void])], "a machine", minutes=5)
    assert report.startswith("# Benchmarks\n\n**VOID: the machine was busy")
    assert "- VOID: Title: floor: 20.00 ms, target at most 15 ms\n" in report
    assert "| **VOID** |" in report


def test_the_machine_is_described_without_its_name_and_paths() -> None:
    text = machine.describe(place.CHECKOUT)
    assert "SQLite 3." in text
    assert os.uname().nodename not in text
    assert "/" not in text


def test_rounds_are_interleaved_and_kept_apart() -> None:
    calls: list[str] = []

    def call(name: str) -> int:
        calls.append(name)
        return len(calls)

    found = interleave(3, {name: partial(call, name) for name in "ab"})
    assert [set(calls[at : at + 2]) for at in (0, 2, 4)] == [{"a", "b"}] * 3
    assert sorted(found["a"] + found["b"]) == [1, 2, 3, 4, 5, 6]
    assert ratios([2, 9], [1, 3]) == [2, 3]


def test_a_message_that_is_lost_from_one_place_is_missed() -> None:
    with place.folder() as folder:
        url = f"sqlite:{folder}/store"
        send = mail_send.open_sender(url, "p0")
        for number in range(3):
            send(number)
        assert mail_send.count(url) == 3
        open_store(url).commit((), [Delete("mail/bob", number_id(2))])
        assert mail_send.count(url) == 2


@pytest.mark.parametrize("way", [sender.PLAIN, sender.SQLITE])
def test_each_send_waits_for_its_flush(way: str) -> None:
    need("gcc")
    run = sender.run(way, processes=1, calls=5, flush=preload.SLOW)
    assert run.sent[0].took_s > 5 * 0.002
    assert run.lost == 0


def test_without_flushes_the_kernel_is_never_asked_for_one() -> None:
    need("gcc")
    program = "import os; os.fsync(os.pipe()[0])"  # which would fail
    environment = {**os.environ, **preload.environment(preload.NONE)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


def test_faults_of_a_watch_are_counted() -> None:
    assert watching.faults([1, 2, 3], [1, 2, 3]) == 0
    assert watching.faults([1, 2, 3], [1, 3]) == 1
    assert watching.faults([1, 2, 3], [1, 2, 2, 3]) == 1
    assert watching.faults([1, 2, 3], [1, 3, 2]) == 1
    assert watching.faults([1, 2, 3], [1, 2, 3, 4]) == 1


def test_what_is_lost_in_an_inbox_or_stands_elsewhere_counts() -> None:
    with place.folder() as folder:
        url = f"sqlite:{folder}/store"
        store = open_store(url)
        store.commit((), [Append(bare.INBOX, b"p0 0"), Append(bare.INBOX, b"p1 0"), Append(bare.INBOX, b"p0 1")])
        assert elsewhere._faults(url, [2, 1]) == 0
        assert elsewhere._faults(url, [3, 1]) == 2, "one is missing, and so the numbers end too early"
        store.commit((), [Delete(bare.INBOX, number_id(3)), Append(bare.INBOX, b"p0 1")])
        assert elsewhere._faults(url, [2, 1]) == 1, "a number is missing"
        store.commit((), [Append(bare.INBOX, b"p1 2"), Append(bare.INBOX, b"p1 1")])
        assert elsewhere._faults(url, [2, 3]) == 2
