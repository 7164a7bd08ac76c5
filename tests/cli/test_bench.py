"""accord bench: the race and the figures, as people and programs get them."""

import json
import os
import re
from pathlib import Path

import pytest

from accord import errors
from accord.measure import _in_processes, measure, report, workload
from tests.cli.users import User

pytestmark = pytest.mark.covers("S12")


@pytest.mark.parametrize("engine", ["sqlite", "memory", pytest.param("files", marks=pytest.mark.long)])
def test_every_workload(user: User, tmp_path: Path, engine: str) -> None:
    done = user.run("bench", "--engine", engine, "--operations", "40", "--json", "--plot", str(tmp_path / "plot.svg"))
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [(row["engine"], row["workload"]) for row in found["results"]] == [(engine, name) for name in workload.NAMES]
    assert found["lost"] == 0
    for row in found["results"]:
        assert row["operations"] == (1000 if row["workload"] == "race" else 40)
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["worst_ms"]
        assert row["per_second"] > 0
        assert 0 < row["fairness"] <= 1
    plot = (tmp_path / "plot.svg").read_text()
    assert plot.startswith("<svg")
    assert plot.count("<rect") == len(found["results"])


def test_one_engine_for_so_long_as_a_table(user: User) -> None:
    done = user.run("bench", "--engine", "memory", "--operations", "1000000", "--duration", "0.1")
    assert done.code == 0
    assert len(re.findall("^memory ", done.out, re.MULTILINE)) == len(workload.NAMES)
    assert "no update was lost in the race of 10 threads with 100 updates each" in done.out


def test_a_duration_alone_ends_it(user: User) -> None:
    done = user.run("bench", "--engine", "memory", "--duration", "0.5", "--json")
    assert done.code == 0, done.err
    reads = [row["operations"] for row in done.json["results"] if row["workload"] == "read"]
    assert reads[0] > 1000


def test_it_measures_the_disk_of_the_home_and_leaves_nothing_there(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.env["TMPDIR"] = str(tmp_path / "nowhere")
    assert user.run("bench", "--engine", "sqlite", "--operations", "4").code == 0
    assert os.listdir(user.home) == []
    homes = []
    monkeypatch.setattr(workload, "_open", lambda folder, url: homes.append(folder))
    with pytest.raises(errors.BenchFailed):
        measure(["memory"], 4, 0, lambda done, total: None, str(tmp_path))
    assert Path(homes[0]).parent == tmp_path


@pytest.mark.parametrize("engine", ["sqlite", "memory"])
def test_what_is_set_here_is_not_measured(user: User, engine: str) -> None:
    (user.work / "accord.yml").write_text("nonsense: [")
    (user.work / "accord").mkdir()  # not what a worker imports
    (user.work / "accord" / "__init__.py").write_text("raise ValueError")
    user.env["ACCORD_QUEUE_LIMIT"] = "nonsense"
    done = user.run("bench", "--engine", engine, "--operations", "4")
    assert (done.code, done.err) == (0, "")


def test_a_worker_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.BenchFailed, match="failed: KeyError: 'no such workload'"):
        _in_processes((str(tmp_path), f"sqlite:{tmp_path}/store", "no such workload", 1, 0.0), 2)

    def failing(home: object, index: int) -> object:
        raise errors.StorageFull(path="x")

    monkeypatch.setitem(workload._WORKLOADS, "race", failing)
    with pytest.raises(errors.BenchFailed, match="failed: StorageFull: "):
        measure(["memory"], 4, 0, lambda done, total: None)


def test_what_cannot_be_measured(user: User) -> None:
    for words in (["--engine", "redis"], ["--operations", "0"], ["--duration", "x"]):
        assert user.run("bench", *words).code == 2
    assert user.run("bench", "--engine", "memory", "--operations", "4", "--plot", "/nowhere/x").code == 66


def test_a_lost_update_is_told_loudly(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A race in which somebody writes without looking what is there."""

    def careless(home: object, index: int) -> object:
        def once(number: int) -> None:
            home.doc.write(name="counter", text=str(number))  # type: ignore[attr-defined]

        return once

    monkeypatch.setitem(workload._WORKLOADS, "race", careless)
    [race] = [row for row in measure(["memory"], 4, 0, lambda done, total: None) if row["workload"] == "race"]
    assert race["lost"] > 0


def test_figures() -> None:
    outcomes = [
        {"began": 0.0, "ended": 1.0, "times": [1000] * 99 + [5000]},
        {"began": 0.0, "ended": 2.0, "times": [3000] * 100},
    ]
    assert report.of(outcomes) == {
        "operations": 200,
        "per_second": 100.0,
        "p50_ms": 3.0,
        "p95_ms": 3.0,
        "p99_ms": 3.0,
        "worst_ms": 5.0,
        "fairness": 0.67,
    }
