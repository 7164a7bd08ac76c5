"""accord bench: the race and the figures, as people and programs get them."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accord import errors
from accord.cli.verbs import bench
from accord.home import Home
from accord.measure import _bounds, _in_processes, measure, places, report, workload
from accord.measure.places import Engine
from accord.store import open as stores
from accord.store.contract import Put
from tests.cli.users import Done, User
from tests.hub.hubs import wait_until
from tests.ports import free_port
from tests.servers.redis import redis_of_its_own, redis_server

pytestmark = pytest.mark.covers("S12")


def run(user: User, *words: str) -> Done:
    """With more patience than other commands need: dozens of processes are started."""
    running = user.start("bench", *words)
    out, err = running.communicate(timeout=180)
    return Done(running.returncode, out.decode(), err.decode())


@pytest.mark.parametrize("engine", ["sqlite", "memory", pytest.param("files", marks=pytest.mark.long)])
def test_every_workload(user: User, tmp_path: Path, engine: str) -> None:
    done = run(user, "--engine", engine, "--operations", "40", "--json", "--plot", str(tmp_path / "plot.svg"))
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
    done = run(user, "--engine", "memory", "--operations", "1000000", "--duration", "0.1")
    assert done.code == 0
    assert len(re.findall("^memory ", done.out, re.MULTILINE)) == len(workload.NAMES)
    assert "no update was lost in the race of 10 threads with 100 updates each" in done.out


@pytest.mark.more
def test_a_duration_alone_ends_it(user: User) -> None:
    done = run(user, "--engine", "memory", "--duration", "0.5", "--json")
    assert done.code == 0, done.err
    reads = [row["operations"] for row in done.json["results"] if row["workload"] == "read"]
    assert reads[0] > 1000


@pytest.mark.more
def test_it_measures_the_disk_of_the_home_and_leaves_nothing_there(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.env["TMPDIR"] = str(tmp_path / "nowhere")
    assert run(user, "--engine", "sqlite", "--operations", "4").code == 0
    assert os.listdir(user.home) == []
    homes = []
    monkeypatch.setattr(workload, "_open", lambda folder, url, password: homes.append(folder))
    assert failures("memory", str(tmp_path))
    assert Path(homes[0]).parent == tmp_path


@pytest.mark.more
@pytest.mark.parametrize("engine", ["sqlite", "memory"])
def test_what_is_set_here_is_not_measured(user: User, engine: str) -> None:
    (user.work / "accord.yml").write_text("nonsense: [")
    (user.work / "accord").mkdir()  # not what a worker imports
    (user.work / "accord" / "__init__.py").write_text("raise ValueError")
    user.env["ACCORD_QUEUE_LIMIT"] = "nonsense"
    done = run(user, "--engine", engine, "--operations", "4")
    assert (done.code, done.err) == (0, "")


def test_a_worker_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.BenchFailed, match="failed: KeyError: 'no such workload'"):
        _in_processes(workload.Job(str(tmp_path), f"sqlite:{tmp_path}/store", "no such workload", 1, 0.0), 2, "")

    def failing(home: object, index: int) -> object:
        raise errors.StorageFull(path="x")

    monkeypatch.setitem(workload._WORKLOADS, "race", failing)
    [error] = failures("memory")
    assert isinstance(error, errors.BenchFailed)
    assert "failed: StorageFull: " in str(error)


def failures(engine: str, folder: str | None = None) -> list[errors.AccordError]:
    """Of one engine, which is measured shortly."""
    return [error for _, error in measure([Engine(engine)], 4, 0, unseen, folder)[1]]


def unseen(done: int, total: int, what: str) -> None:
    """Nobody looks on."""


def test_what_cannot_be_measured(user: User) -> None:
    wrong = ["redis", "sqlite:/tmp/x", "sqlite,nonsense", "etcd"]
    for words in (*(["--engine", name] for name in wrong), ["--operations", "0"], ["--duration", "x"]):
        assert run(user, *words).code == 2, words
    assert run(user, "--engine", "memory,nonsense://x").error == "UNKNOWN_ENGINE"
    assert run(user, "--engine", "memory", "--operations", "4", "--plot", "/nowhere/x").code == 66


def test_a_lost_update_is_told_loudly(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A race in which somebody writes without looking what is there."""

    def careless(home: object, index: int) -> object:
        def once(number: int) -> None:
            home.doc.write(name="counter", text=str(number))  # type: ignore[attr-defined]

        return once

    monkeypatch.setitem(workload._WORKLOADS, "race", careless)
    [race] = [row for row in measure([Engine("memory")], 4, 0, unseen)[0] if row["workload"] == "race"]
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


# On servers.


@contextmanager
def store_elsewhere(name: str, prefix: str) -> Iterator[str]:
    """The URL of a store in which something is; nothing of it has changed, and nothing is beside it, in the end."""
    server: Any = getattr(import_module(f"tests.servers.{name}"), f"{name}_server")()
    url = server.url(prefix)
    store = stores.open_store(url)
    store.commit((), [Put("docs", "plan", b"what a user has")])
    store.close()
    before = everything(name, server, prefix)
    yield url
    assert everything(name, server, prefix) == before
    stores.remove(url)
    assert not everything(name, server, prefix)


def everything(name: str, server: Any, prefix: str) -> Any:
    """All that a server has under names that begin so, but for what tells its time."""
    if name == "redis":
        client = server.client()
        return {key: client.dump(key) for key in sorted(client.scan_iter(match=f"{{{prefix}*", count=1000))}
    if name == "etcd":
        return server.ctl("get", "--prefix", prefix)
    return {part: node for part, node in (server.read(prefix) or {}).items() if part != "clocks"}


ELSEWHERE = ["redis", pytest.param("etcd", marks=pytest.mark.more), pytest.param("firebase", marks=pytest.mark.more)]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_server_is_measured_beside_what_is_there(user: User, name: str) -> None:
    with store_elsewhere(name, f"bench-of-{name}") as url:
        found = run(user, "--json", "--engine", f"{url},memory", "--operations", "8", "--duration", "1")
    assert found.code == 0, found
    assert (found.json["lost"], found.json["failed"]) == (0, [])
    rows = found.json["results"]
    assert [row["workload"] for row in rows if row["engine"] == url] == list(workload.NAMES)
    [race] = [row for row in rows if row["engine"] == url and "lost" in row]
    assert 0 < race["operations"] <= 1000


@pytest.mark.long
@pytest.mark.parametrize("name", ["redis", "etcd", "firebase"])
def test_a_whole_race_on_a_server_loses_nothing(tmp_path: Path, name: str) -> None:
    with store_elsewhere(name, f"race-of-{name}") as url:
        rows, failed = measure([Engine(url)], 4, 300.0, unseen, str(tmp_path))
    assert not failed
    assert [(row["operations"], row["lost"]) for row in rows if "lost" in row] == [(1000, 0)]


@pytest.mark.parametrize("name", ["redis", "etcd", "firebase"])
def test_what_was_written_is_removed_though_a_workload_fails(tmp_path: Path, name: str) -> None:
    with store_elsewhere(name, f"failure-of-{name}") as url, pytest.raises(KeyError):
        write_and_fail(Engine(url), tmp_path)


def write_and_fail(engine: Engine, folder: Path) -> None:
    with places.fresh(engine, str(folder)) as (homes, url), workload._open(homes, url, "") as home:
        assert url != engine.shown
        for number in range(120):  # each of which has a collection of its own
            home.agent.register(identity=f"a{number}")
        home.doc.write(name="x", text="y")
        raise KeyError


@pytest.mark.more
def test_what_was_written_is_removed_when_a_person_interrupts_it(user: User) -> None:
    with store_elsewhere("redis", "interrupted") as url:
        client = redis_server().client()
        running = user.start("bench", "--engine", url)
        wait_until(lambda: any(client.scan_iter(match="{interrupted}:bench-*:names")), "the first of the race")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=20)
        assert running.returncode == 130


@pytest.mark.more
def test_the_others_are_measured_when_one_fails(user: User) -> None:
    gone = f"redis://127.0.0.1:{free_port()}/0"
    done = run(user, "--engine", f"{gone},memory", "--operations", "4")
    assert done.code == 69
    assert len(re.findall("^memory ", done.out, re.MULTILINE)) == len(workload.NAMES)
    assert f"NOT MEASURED: {gone}: {gone} does not answer" in done.out
    found = run(user, "--engine", f"memory,{gone}", "--operations", "4", "--json").json
    assert [(one["engine"], one["error_code"]) for one in found["failed"]] == [(gone, "ENGINE_UNREACHABLE")]
    assert run(user, "--engine", gone).error == "ENGINE_UNREACHABLE"


@pytest.mark.more
def test_the_homes_own_engine_is_measured_with_its_password(user: User) -> None:
    """By its mere name too; and nobody is told the password."""
    port = free_port()
    with redis_of_its_own(port=str(port), requirepass="s3cr3t"):
        user.env |= {"ACCORD_ENGINE": f"redis://:s3cr3t@127.0.0.1:{port}/0"}
        done = run(user, "--json", "--engine", "memory,redis", "--duration", "0.5")
    assert done.code == 0, done
    assert "s3cr3t" not in done.out
    assert {row["engine"] for row in done.json["results"]} == {"memory", f"redis://127.0.0.1:{port}/0"}


@pytest.mark.more
def test_what_could_not_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> None:
        raise errors.EngineUnreachable(path=url, reason="x")

    with redis_of_its_own() as server:
        monkeypatch.setattr(stores, "remove", fail)
        [[_, error]] = measure([Engine(server.url())], 4, 0.1, unseen, str(tmp_path))[1]
    assert re.search(r"below=bench-\w+ could not be removed", str(error))


@pytest.mark.parametrize(
    ("own", "named", "measured"),
    [
        ("", "", ["sqlite", "files", "memory"]),
        ("sqlite:/elsewhere/store.db", "", ["sqlite", "files", "memory"]),
        ("redis://h/1", "", ["sqlite", "files", "memory", "redis://h/1"]),
        ("redis://h/1", "redis,file,redis", ["redis://h/1", "files"]),
        ("redis://h/1", "redis://other", ["redis://other"]),
        ("", "etcd://a,b:1,c/p,memory,redis://h?waitaof=1,1", ["etcd://a,b:1,c/p", "memory", "redis://h?waitaof=1,1"]),
        ("", "etcd://redis,etcd,rediss://h", ["etcd://redis,etcd", "rediss://h"]),
    ],
)
def test_which_engines_are_measured(user: User, own: str, named: str, measured: list[str]) -> None:
    line: Any = SimpleNamespace(io=SimpleNamespace(cwd=str(user.work), env={"ACCORD_ENGINE": own}))
    line.words = SimpleNamespace(globals={"--engine": named} if named else {})
    assert [engine.shown for engine in bench._engines(line, Home(str(user.home)))] == measured


@pytest.mark.parametrize(
    ("engine", "name", "operations", "duration_s", "expected"),
    [
        ("sqlite", "write", None, 0, (250, 0.0)),
        ("sqlite", "write", 40, 0, (10, 0.0)),
        ("sqlite", "write", 40, 5.0, (10, 5.0)),
        ("sqlite", "write", None, 5.0, (0, 5.0)),
        ("sqlite", "race", 40, 5.0, (100, 0.0)),
        ("redis://h", "write", None, 0, (250, 10.0)),
        ("redis://h", "write", 40, 0, (10, 0.0)),
        ("redis://h", "write", None, 5.0, (0, 5.0)),
        ("redis://h", "race", 40, 0, (100, 60.0)),
        ("redis://h", "race", None, 5.0, (100, 5.0)),
    ],
)
def test_how_much_is_done(
    engine: str, name: str, operations: int | None, duration_s: float, expected: tuple[int, float]
) -> None:
    assert _bounds(Engine(engine), name, operations, duration_s) == expected
