"""Publish and subscribe: everybody who reads from a place on gets all of it, in order."""

import json
import threading
import time
from pathlib import Path

import pytest

from accord.services import topics
from accord.store.engines.memory import open_store
from accord.store.transaction import transact
from tests.operations.people import refusal, register
from tests.operations.processes import until_it_waits
from tests.operations.ways import CommandLine, Python, Way

pytestmark = pytest.mark.covers("S9")


def publish(way: Way, *messages: str) -> list[int]:
    return [way.do("topic.publish", channel="builds", message=message)["sequence"] for message in messages]


def read(way: Way, **more: object) -> list[str]:
    return [entry["message"] for entry in way.do("topic.read", channel="builds", **more)["entries"]]


def test_what_is_published_is_read_in_order_and_from_any_place(way: Way) -> None:
    assert way.do("topic.last", channel="builds") == {"channel": "builds", "sequence": 0}
    assert read(way) == []
    assert publish(way, "one", "two", "three") == [1, 2, 3]
    assert read(way) == read(way, after=0) == ["one", "two", "three"]
    assert read(way, after=1, limit=1) == ["two"]
    assert read(way, after=3) == []
    assert way.do("topic.last", channel="builds")["sequence"] == 3
    assert way.do("topic.read", channel="other")["entries"] == []


def test_replay_from_a_revision(way: Way) -> None:
    publish(way, "one", "two")
    first = way.do("topic.read", channel="builds")["entries"][0]
    publish(way, "three")
    assert read(way, since=first["revision"]) == ["two", "three"]
    epoch = first["revision"].partition(".")[0]
    assert read(way, since=f"{epoch}.0") == ["one", "two", "three"]
    refusal("HISTORY_GONE", read, way, since="0123456789abcdef.1")
    refusal("USAGE", read, way, since="yesterday")
    refusal("USAGE", read, way, since=first["revision"], after=1)


def test_who_published_is_not_for_them_to_say(way: Way) -> None:
    register(way, "ann")
    publish(way, "from a person")
    publish(way.acting("ann"), "from ann")
    assert [entry["from"] for entry in way.do("topic.read", channel="builds")["entries"]] == ["human", "ann"]


def test_what_cannot_be_published(way: Way) -> None:
    refusal("EMPTY_MESSAGE_NOT_ALLOWED", publish, way, " ")
    refusal("INVALID_IDENTITY", way.do, "topic.publish", channel="a/b", message="x")
    way.do("halt.set", reason="stop")
    refusal("HALTED", publish, way, "x")
    refusal("HALTED", read, way)


def test_who_waits_is_woken_at_once(here: Python) -> None:
    found: list[tuple[float, list[str]]] = []

    def wait() -> None:
        messages = read(here, wait=20)
        found.append((time.monotonic(), messages))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.3)
    published = time.monotonic()
    publish(here, "now")
    waiting.join(20)
    assert found[0][1] == ["now"]
    assert found[0][0] - published < 0.5


def test_only_the_last_ones_are_kept_and_who_is_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "KEPT", 10)
    store = open_store("")
    for number in range(25):
        transact(store, lambda tx, number=number: topics.publish(tx, "builds", "ann", str(number), ""))  # type: ignore[misc]
    found = transact(store, lambda tx: topics.read(tx, "builds", 3, 100))
    assert [entry["message"] for entry in found["entries"]] == [str(number) for number in range(15, 25)]
    assert found["missed"] == 12


def test_no_more_are_kept_when_many_publish_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "KEPT", 5)
    store = open_store("")

    def work() -> None:
        for number in range(30):
            transact(store, lambda tx, number=number: topics.publish(tx, "builds", "ann", str(number), ""))  # type: ignore[misc]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(5):  # the last ones may have removed the same
        transact(store, lambda tx: topics.publish(tx, "builds", "ann", "x", ""))
    found = transact(store, lambda tx: topics.read(tx, "builds", 0, 1000))
    assert [entry["sequence"] for entry in found["entries"]] == list(range(121, 126))
    assert found["missed"] == 120


def test_subscribers_get_what_comes(shell: CommandLine, tmp_path: Path) -> None:
    publish(shell, "before")
    now = shell.start(["subscribe", "builds"])
    everything = shell.start(["subscribe", "builds", "--after", "0"])
    kept = tmp_path / "kept"
    given = shell.start(["subscribe", "builds", "--exec", f"tee -a {kept}"])
    for process in (now, everything, given):
        until_it_waits(process.pid)
    publish(shell, "one", "two")
    for process, expected in ((now, ["one", "two"]), (everything, ["before", "one", "two"]), (given, ["one", "two"])):
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in expected]
        assert [line["message"] for line in lines] == expected
        process.terminate()
        process.wait(20)
    assert [json.loads(line)["message"] for line in kept.read_text().splitlines()] == ["one", "two"]
