"""Several changes in one step: all of them, or none."""

import os

import pytest

from accord import jsontext
from accord.operations import call
from accord.operations.context import local
from tests.operations.people import refusal, register
from tests.operations.ways import CommandLine, Python, Way

pytestmark = pytest.mark.covers("S4")


def write(name: str, text: str, **more: object) -> dict[str, object]:
    return {"operation": "doc.write", "name": name, "text": text, **more}


def names(way: Way) -> list[str]:
    return [document["name"] for document in way.do("doc.list")["documents"]]


def test_all_or_nothing(way: Way) -> None:
    publish = {"operation": "topic.publish", "channel": "builds", "message": "done"}
    found = way.do("tx.run", steps=[write("a", "1"), write("b", "1"), publish])["results"]
    assert [one["revision"] for one in found[:2]] == [1, 1]
    assert found[2] == {"channel": "builds", "sequence": 1}
    wrong = refusal("CONFLICT", way.do, "tx.run", steps=[write("c", "1"), publish, write("a", "2", base=7)])
    assert wrong.details["step"] == 3
    assert names(way) == ["a", "b"]
    assert way.do("topic.last", channel="builds")["sequence"] == 1


def test_documents_queues_and_tasks_together(way: Way) -> None:
    push = {"operation": "queue.push", "queue": "builds", "payload": "main"}
    steps = [
        write("plan", "1"),
        push,
        push,
        {"operation": "task.add", "title": "build it", "id": "build"},
        {"operation": "task.add", "title": "ship it"},
    ]
    found = way.do("tx.run", steps=steps)["results"]
    assert [one["sequence"] for one in found[1:3]] == [1, 2]
    assert [one["id"] for one in found[3:]] == ["build", "t2"]
    claim = {"operation": "task.claim", "id": "build", "agent": "ann"}
    receipt = way.do("queue.pop", queue="builds")["receipt"]
    done = {"operation": "queue.done", "queue": "builds", "receipt": receipt}
    wrong = {"operation": "task.done", "id": "nothing"}
    refusal("TASK_NOT_FOUND", way.do, "tx.run", steps=[claim, done, push, write("plan", "2"), wrong])
    assert way.do("task.show", id="build")["state"] == "ready"
    assert way.do("doc.read", name="plan")["text"] == "1"
    way.do("tx.run", steps=[claim, done, write("plan", "2", base=1)])
    assert way.do("task.show", id="build")["agent"] == "ann"
    refusal("STALE_RECEIPT", way.do, "tx.run", steps=[write("plan", "3"), done])
    assert [one["payload"] for one in way.do("queue.peek", queue="builds")["entries"]] == ["main"]


def test_the_bound_of_a_queue_holds_within(memory: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_QUEUE_LIMIT", "2")
    push = {"operation": "queue.push", "queue": "builds", "payload": "main"}
    wrong = refusal("QUEUE_FULL", memory.do, "tx.run", steps=[push, push, push])
    assert (wrong.details["found"], wrong.details["step"]) == (2, 3)
    memory.do("tx.run", steps=[push, push, {**push, "queue": "other"}])
    done = {"operation": "queue.done", "queue": "builds", "receipt": memory.do("queue.pop", queue="builds")["receipt"]}
    refusal("QUEUE_FULL", memory.do, "tx.run", steps=[push, done])
    refusal("QUEUE_FULL", memory.do, "tx.run", steps=[done, push, push])
    memory.do("tx.run", steps=[done, push])


def test_a_task_that_a_step_before_has_made(memory: Python) -> None:
    add = {"operation": "task.add", "title": "build it", "id": "build"}
    refusal("TASK_EXISTS", memory.do, "tx.run", steps=[add, add])
    memory.do("tx.run", steps=[add, {"operation": "task.assign", "id": "build", "agent": "ann"}])
    assert memory.do("task.show", id="build")["assignee"] == "ann"
    again = {"operation": "task.add", "title": "ship it", "id": "ship", "after": ["build"]}
    memory.do("tx.run", steps=[{"operation": "task.done", "id": "build"}, again])
    assert memory.do("task.next", agent="ben")["id"] == "ship"


def test_what_is_no_step(way: Way) -> None:
    for step in ({}, {"operation": "mail.send"}, {"operation": "doc.read", "name": "a"}, {"operation": 7}):
        refusal("USAGE", way.do, "tx.run", steps=[step])
    refusal("USAGE", way.do, "tx.run", steps=[])
    refusal("USAGE", way.do, "tx.run", steps=[write("a", "1", color="red")])
    refusal("INVALID_NAME", way.do, "tx.run", steps=[write("../a", "1")])
    assert names(way) == []


def test_one_document_twice(memory: Python) -> None:
    found = memory.do("tx.run", steps=[write("a", "1", base=0), write("a", "2", base=1)])["results"]
    assert [one["revision"] for one in found] == [1, 2]
    assert memory.do("doc.read", name="a")["text"] == "2"
    assert memory.do("doc.read", name="a", revision=1)["text"] == "1"


def test_a_halt_stops_what_it_stops_alone(memory: Python) -> None:
    memory.do("halt.set", reason="stop")
    memory.do("tx.run", steps=[write("a", "1")])
    refusal("HALTED", memory.do, "tx.run", steps=[{"operation": "topic.publish", "channel": "b", "message": "x"}])


def test_who_waits_to_be_engaged_starts_nothing(way: Way) -> None:
    register(way, "ann")
    way.do("halt.set", reason="stop")
    way.do("halt.lift")
    ann = way.acting("ann")
    push = {"operation": "queue.push", "queue": "q", "payload": "x"}
    refusal("NOT_ENGAGED", ann.do, "queue.push", queue="q", payload="x")
    refusal("NOT_ENGAGED", ann.do, "tx.run", steps=[push])
    ann.do("tx.run", steps=[write("a", "what was done is saved")])
    way.do("halt.engage", all=True)
    ann.do("tx.run", steps=[push])


def test_more_than_a_commit_holds(memory: Python) -> None:
    many = [write(f"d{number}", "x") for number in range(60)]
    refusal("COMMIT_TOO_LARGE", memory.do, "tx.run", steps=many)
    assert names(memory) == []


def test_from_a_file_and_from_standard_input(lone_shell: CommandLine) -> None:
    done = lone_shell.run(["tx", "-"], b'[{"operation": "doc.write", "name": "a", "text": "1"}]')
    assert done.returncode == 0, done.stdout
    assert lone_shell.run(["tx", "-"], b"[{").returncode == 65
    assert b"A list of steps" in lone_shell.run(["tx", "-"], b" " * (jsontext.MAX_BYTES + 1)).stdout
    assert names(lone_shell) == ["a"]


def test_the_same_request_is_done_once(memory: Python) -> None:
    context = local(os.environ, engine=memory.engine, request="r1")
    steps = [{"operation": "topic.publish", "channel": "builds", "message": "x"}]
    first = call(context, "tx.run", {"steps": steps})
    assert call(context, "tx.run", {"steps": steps}) == first == {"results": [{"channel": "builds", "sequence": 1}]}
    assert memory.do("topic.last", channel="builds")["sequence"] == 1
