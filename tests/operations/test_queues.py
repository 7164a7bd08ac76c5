"""Queues: order, receipts, what comes back and when, dead letters, bounds, and what one is told."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from accord import errors, platform
from accord.operations import call
from accord.operations.context import Context, local
from accord.services import queues
from accord.store.open import open_store
from accord.store.wrap.faulty import faulty, plan
from tests.operations.people import refusal
from tests.operations.stores import Overtaken
from tests.operations.ways import CommandLine, Python, Way

pytestmark = pytest.mark.covers("S7")

Q = "jobs"
LONG_S = 1.5  # within which a busy machine runs a command or two


def push(way: Way, *payloads: str, **more: Any) -> list[int]:
    return [way.do("queue.push", queue=Q, payload=payload, **more)["sequence"] for payload in payloads]


def pop(way: Way, **more: Any) -> dict[str, Any]:
    return way.do("queue.pop", queue=Q, **more)


def done(way: Way, taken: dict[str, Any]) -> None:
    assert way.do("queue.done", queue=Q, receipt=taken["receipt"])["sequence"] == taken["sequence"]


def is_empty(way: Way) -> bool:
    refusal("EMPTY", pop, way)
    return True


def counts(way: Way, queue: str = Q) -> list[int]:
    """Ready with high, normal and low priority, in flight, delayed, dead, in all."""
    [found] = [one for one in way.do("queue.list")["queues"] if one["queue"] == queue]
    return [*found["ready"].values(), found["in_flight"], found["delayed"], found["dead"], found["length"]]


def test_first_in_first_out_within_a_priority(way: Way) -> None:
    assert push(way, "a") + push(way, "b", priority="low") + push(way, "c", "d", priority="high") == [1, 2, 3, 4]
    assert push(way, "e") == [5]
    taken = [pop(way) for _ in range(5)]
    assert [(one["payload"], one["priority"]) for one in taken] == [
        ("c", "high"),
        ("d", "high"),
        ("a", "normal"),
        ("e", "normal"),
        ("b", "low"),
    ]
    assert [one["sequence"] for one in taken] == [3, 4, 1, 5, 2]
    assert len({one["receipt"] for one in taken}) == 5
    assert is_empty(way)


def test_what_is_done_is_gone_and_its_receipt_used_up(way: Way) -> None:
    push(way, "a", "b")
    first = pop(way)
    done(way, first)
    for receipt in (first["receipt"], "nothing", "0-0-0", "A.B"):
        refused = refusal("STALE_RECEIPT", way.do, "queue.done", queue=Q, receipt=receipt)
        assert receipt in refused.text
        refusal("STALE_RECEIPT", way.do, "queue.fail", queue=Q, receipt=receipt)
    refusal("USAGE", way.do, "queue.done", queue=Q, receipt="not one")
    second = pop(way)
    refusal("STALE_RECEIPT", way.do, "queue.done", queue="other", receipt=second["receipt"])
    done(way, second)
    assert is_empty(way)
    assert push(way, "c") == [3]  # a number is never given again


def test_what_is_not_done_in_time_comes_back_to_its_place(way: Way) -> None:
    push(way, "a", "b")
    first = pop(way, visibility=0.2)
    assert (first["payload"], first["tries"]) == ("a", 1)
    time.sleep(0.25)
    refusal("STALE_RECEIPT", way.do, "queue.done", queue=Q, receipt=first["receipt"])  # though nobody took it yet
    again = pop(way)
    assert (again["payload"], again["sequence"], again["tries"]) == ("a", 1, 2)
    assert again["receipt"] != first["receipt"]
    refusal("STALE_RECEIPT", way.do, "queue.done", queue=Q, receipt=first["receipt"])
    done(way, again)
    assert pop(way)["payload"] == "b"


def test_what_is_taken_is_taken_for_a_time(memory: Python) -> None:
    push(memory, "a")
    refusal("USAGE", pop, memory, visibility=0)
    assert counts(memory)[1] == 1


def test_what_fails_too_often_is_a_dead_letter(way: Way) -> None:
    push(way, "bad", tries=2)
    push(way, "good")
    for dead in (False, True):
        taken = pop(way, worker="ann")
        assert taken["payload"] == "bad"
        failed = way.do("queue.fail", queue=Q, receipt=taken["receipt"], reason="too hard")
        assert failed == {"queue": Q, "sequence": 1, "dead": dead}
    done(way, pop(way))
    assert is_empty(way)
    [letter] = way.do("queue.dead", queue=Q)["entries"]
    assert {**letter, "at": None, "pushed_at": None, "by": None} == {
        "sequence": 1,
        "priority": "normal",
        "tries": 2,
        "reason": "too hard",
        "worker": "ann",
        "at": None,
        "pushed_at": None,
        "by": None,
        "size": 3,
        "payload": "bad",
    }
    assert counts(way) == [0, 0, 0, 0, 0, 1, 1]


def test_a_dead_letter_goes_back_or_is_dropped(way: Way) -> None:
    push(way, "bad", "worse", tries=1)
    for _ in range(2):
        way.do("queue.fail", queue=Q, receipt=pop(way)["receipt"])
    push(way, "new")
    refusal("DEAD_LETTER_NOT_FOUND", way.do, "queue.retry", queue=Q, sequence=3)
    way.do("queue.retry", queue=Q, sequence=1)
    refusal("DEAD_LETTER_NOT_FOUND", way.do, "queue.retry", queue=Q, sequence=1)
    taken = pop(way)
    assert (taken["payload"], taken["tries"]) == ("bad", 1)
    way.do("queue.fail", queue=Q, receipt=taken["receipt"])  # its one try, again
    way.do("queue.drop", queue=Q, sequence=2)
    refusal("DEAD_LETTER_NOT_FOUND", way.do, "queue.drop", queue=Q, sequence=2)
    assert [letter["payload"] for letter in way.do("queue.dead", queue=Q)["entries"]] == ["bad"]
    assert counts(way) == [0, 1, 0, 0, 0, 1, 2]


def test_what_is_to_come_later(way: Way) -> None:
    push(way, "now")
    push(way, "later", priority="high", delay=LONG_S)
    push(way, "much later", delay=3600)
    taken = pop(way)
    assert taken["payload"] == "now"
    way.do("queue.fail", queue=Q, receipt=taken["receipt"], delay=0.1)
    time.sleep(LONG_S + 0.05)
    assert [pop(way)["payload"] for _ in range(2)] == ["later", "now"]  # whichever was there first
    assert is_empty(way)
    assert counts(way) == [0, 0, 0, 2, 1, 0, 3]


def test_a_queue_has_a_bound(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_QUEUE_LIMIT", "2")
    push(way, "a", "b")
    refused = refusal("QUEUE_FULL", push, way, "c")
    assert (refused.details["found"], refused.details["most"]) == (2, 2)
    taken = pop(way)
    refusal("QUEUE_FULL", push, way, "c")  # in flight it may still come back
    done(way, taken)
    assert push(way, "c") == [3]  # what was refused took no number
    assert way.do("queue.push", queue="other", payload="x")["sequence"] == 1


def test_the_largest_payload_and_one_byte_more(way: Way) -> None:
    largest = "é" * (queues.MAX_BYTES // 2)
    push(way, largest)
    refused = refusal("TOO_LARGE", push, way, largest + "x")
    assert refused.details["most"] == queues.MAX_BYTES
    assert pop(way)["payload"] == largest
    assert is_empty(way)


@pytest.mark.parametrize("payload", ["", " \n", '{"a": "\\u0000"}\n', "\x00\x1b\x7f", "日本 🐝", "x\x01" * 500_000])
def test_a_payload_is_what_it_was(memory: Python, payload: str) -> None:
    push(memory, payload)
    assert memory.do("queue.peek", queue=Q)["entries"][0]["payload"] == payload[:1000]
    assert pop(memory)["payload"] == payload


def test_nothing_to_take_says_how_long_was_waited(way: Way) -> None:
    assert "waited" not in refusal("EMPTY", pop, way).text
    push(way, "later", delay=3600)
    started = time.monotonic()
    assert "jobs has nothing to take, though 0." in refusal("EMPTY", pop, way, wait=0.3).text
    assert 0.3 <= time.monotonic() - started < 5
    assert is_empty(way)


def test_what_is_shown_of_queues(way: Way) -> None:
    assert way.do("queue.list")["queues"] == []
    push(way, "low", "low", priority="low")
    push(way, "high", priority="high")
    push(way, "normal", tries=1)
    push(way, "later", delay=3600)
    way.do("queue.push", queue="a/b c", payload="x")
    assert [one["queue"] for one in way.do("queue.list")["queues"]] == ["a/b c", Q]
    assert counts(way) == [1, 1, 2, 0, 1, 0, 5]
    entries = way.do("queue.peek", queue=Q, limit=3)["entries"]
    assert [(one["sequence"], one["payload"], one["tries"]) for one in entries] == [
        (3, "high", 0),
        (4, "normal", 0),
        (1, "low", 0),
    ]
    done(way, pop(way))
    pop(way, visibility=LONG_S)
    assert counts(way)[3] == 1
    time.sleep(LONG_S + 0.05)
    # It had one try, and nobody needs to take anything for that to be seen.
    assert counts(way) == [0, 0, 2, 0, 1, 1, 4]
    assert [one["reason"] for one in way.do("queue.dead", queue=Q)["entries"]] == ["it was not done in time"]
    assert pop(way)["payload"] == "low"
    assert counts(way) == [0, 0, 1, 1, 1, 1, 4]
    assert [one["sequence"] for one in way.do("queue.dead", queue=Q)["entries"]] == [4]


def test_what_came_later_is_in_the_order_of_its_number(memory: Python) -> None:
    push(memory, "a", delay=0.05)
    push(memory, "b", delay=0.02)
    push(memory, "c")
    time.sleep(0.06)
    assert [pop(memory)["payload"] for _ in range(3)] == ["a", "b", "c"]


def test_what_came_back_is_seen_before_anybody_takes_it(memory: Python) -> None:
    push(memory, "a", "b")
    pop(memory, visibility=0.01)
    time.sleep(0.02)
    assert [one["payload"] for one in memory.do("queue.peek", queue=Q)["entries"]] == ["a", "b"]
    assert counts(memory) == [0, 2, 0, 0, 0, 0, 2]


@pytest.mark.parametrize("queue", ["a", "A", "a/b", "a b", "0000000000000001", "日本 🐝", "x" * 200])
def test_names_of_queues(here: Python, queue: str) -> None:
    here.do("queue.push", queue=queue, payload="x", delay=0.001)
    time.sleep(0.01)
    taken = here.do("queue.pop", queue=queue)
    here.do("queue.fail", queue=queue, receipt=taken["receipt"])
    here.do("queue.done", queue=queue, receipt=here.do("queue.pop", queue=queue)["receipt"])
    assert counts(here, queue) == [0] * 7


@pytest.mark.parametrize("queue", ["", "..", "a//b", "x" * 201, "a\nb"])
def test_what_is_no_name_of_a_queue(memory: Python, queue: str) -> None:
    refusal("INVALID_NAME", memory.do, "queue.push", queue=queue, payload="x")


def test_a_halt_stops_what_starts_and_not_what_ends(way: Way) -> None:
    push(way, "a", "b", "c", tries=1)
    taken = [pop(way) for _ in range(3)]
    way.do("queue.fail", queue=Q, receipt=taken[2]["receipt"])
    way.do("halt.set", reason="too hot")
    refusal("HALTED", push, way, "d")
    refusal("HALTED", pop, way)
    refusal("HALTED", way.do, "queue.retry", queue=Q, sequence=3)
    done(way, taken[0])
    way.do("queue.fail", queue=Q, receipt=taken[1]["receipt"])
    assert counts(way) == [0, 0, 0, 0, 0, 2, 2]


def test_a_stale_fence_stops_everything(here: Python) -> None:
    token = here.do("lock.acquire", name="build", owner="ann")["token"]
    good, bad = f"build:{token}", f"build:{token + 1}"
    for _ in range(2):
        push(here, "x", fence=good)
    first, second = pop(here, fence=good), pop(here, fence=good)
    refusal("FENCED", push, here, "x", fence=bad)
    refusal("FENCED", pop, here, fence=bad)
    for word in ("done", "fail"):
        refusal("FENCED", here.do, f"queue.{word}", queue=Q, receipt=first["receipt"], fence=bad)
    here.do("queue.done", queue=Q, receipt=first["receipt"], fence=good)
    here.do("lock.release", name="build", owner="ann", token=token)
    refusal("FENCED", here.do, "queue.done", queue=Q, receipt=second["receipt"], fence=good)
    assert counts(here) == [0, 0, 0, 1, 0, 0, 1]


def test_after_a_restart_of_the_machine_everything_in_flight_is_due(
    booted: Python, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 25  # more than one commit brings back
    push(booted, *map(str, range(number)))
    before = [pop(booted, visibility=3600) for _ in range(number)]
    push(booted, "later", delay=3600)
    for boot in ("aaaa", "bbbb", "cccc"):  # in whatever order the eras are found
        monkeypatch.setattr(platform, "_boot_id", boot)
        refusal("STALE_RECEIPT", booted.do, "queue.done", queue=Q, receipt=before[0]["receipt"])
        after = [pop(booted, visibility=3600) for _ in range(number + 1)]
        assert [one["payload"] for one in after] == [*map(str, range(number)), "later"]
        before = after
    assert is_empty(booted)


def context_of(engine: str, request: str = "", wrap: Any = lambda store: store) -> Context:
    """As a caller who names the request, on a store that may be wrapped."""
    context = local({"HOME": "/nonexistent"}, home="/nonexistent", engine=engine, request=request)
    context._open = lambda: wrap(open_store(engine))
    return context


def ask(engine: str, request: str, operation: str, **params: Any) -> dict[str, Any]:
    return call(context_of(engine, request), f"queue.{operation}", {"queue": Q, **params})


def test_a_request_that_is_made_again_does_nothing_twice(here: Python) -> None:
    asked = [ask(here.engine, "r1", "push", payload="x") for _ in range(2)]
    assert asked[0] == asked[1]
    push(here, "y")
    taken = [ask(here.engine, "r2", "pop") for _ in range(2)]
    assert taken[0] == taken[1]
    assert (taken[0]["payload"], counts(here)) == ("x", [0, 1, 0, 1, 0, 0, 2])
    ended = [ask(here.engine, "r3", "done", receipt=taken[0]["receipt"]) for _ in range(2)]
    assert ended[0] == ended[1]
    with pytest.raises(errors.StaleReceipt):
        ask(here.engine, "r2", "pop")  # what it was given is gone
    assert counts(here) == [0, 1, 0, 0, 0, 0, 1]


def test_a_request_that_is_made_again_too_late_gets_nothing(here: Python) -> None:
    push(here, "x")
    ask(here.engine, "r1", "pop", visibility=0.2)
    time.sleep(0.3)
    with pytest.raises(errors.StaleReceipt):
        ask(here.engine, "r1", "pop", visibility=0.2)
    assert pop(here)["payload"] == "x"


def test_the_answer_to_a_request_does_not_hold_the_payload(memory: Python) -> None:
    """It would not fit into the commit."""
    push(memory, "\x01" * queues.MAX_BYTES)
    assert ask(memory.engine, "r1", "pop")["payload"] == "\x01" * queues.MAX_BYTES


@pytest.mark.parametrize("fault", ["lost", "never"])
def test_an_unknown_outcome_is_one_entry(here: Python, fault: str) -> None:
    for operation, params in (("push", {"payload": "x"}), ("pop", {})):
        wrapped = context_of(here.engine, operation, lambda store: faulty(store, plan(commit=[fault])))
        call(wrapped, f"queue.{operation}", {"queue": Q, **params})
    assert counts(here) == [0, 0, 0, 1, 0, 0, 1]
    wrapped = context_of(here.engine, "", lambda store: faulty(store, plan(commit=[fault])))
    with pytest.raises(errors.OutcomeUnknown):
        call(wrapped, "queue.push", {"queue": Q, "payload": "y"})
    assert counts(here)[1] == (fault == "lost")


def overtaken(way: Way, first: Callable[[], object], operation: str, **params: Any) -> dict[str, Any]:
    """What comes of an operation when, between its reading and its commit, another does something."""
    context = context_of(way.engine, "", lambda store: Overtaken(store, first))
    return call(context, f"queue.{operation}", {"queue": Q, **params})


def test_two_who_want_the_same_entry(here: Python) -> None:
    push(here, "a", "b")
    others: list[dict[str, Any]] = []
    mine = overtaken(here, lambda: others.append(pop(here)), "pop")
    assert (others[0]["payload"], mine["payload"]) == ("a", "b")
    for word in ("done", "fail"):
        with pytest.raises(errors.StaleReceipt):
            overtaken(here, lambda: done(here, others.pop()), word, receipt=others[0]["receipt"])
        others.append(mine)
    assert counts(here) == [0] * 7


def test_two_who_bring_back_the_same_entry(here: Python) -> None:
    push(here, "a")
    pop(here, visibility=0.01)
    time.sleep(0.02)
    with pytest.raises(errors.Empty):
        overtaken(here, lambda: done(here, pop(here)), "pop")
    assert counts(here) == [0] * 7


def test_two_who_want_the_same_dead_letter(here: Python) -> None:
    push(here, "a", tries=1)
    here.do("queue.fail", queue=Q, receipt=pop(here)["receipt"])
    with pytest.raises(errors.DeadLetterNotFound):
        overtaken(here, lambda: here.do("queue.drop", queue=Q, sequence=1), "retry", sequence=1)
    assert counts(here) == [0] * 7


def test_one_who_pushes_does_not_wait_for_another(here: Python) -> None:
    push(here, "a")
    tries: list[int] = []
    assert overtaken(here, lambda: tries.extend(push(here, "b")), "push", payload="c")["sequence"] == 3
    assert tries == [2]


def test_a_payload_from_a_file_and_from_a_pipe(lone_shell: CommandLine) -> None:
    with open("payload", "w") as file:
        file.write("from a file\n")
    for words in (["--file=payload"], ["-"], ["several", "words"]):
        assert lone_shell.run(["queue", "push", Q, *words], b"from a pipe").returncode == 0
    assert [pop(lone_shell)["payload"] for _ in range(3)] == ["from a file\n", "from a pipe", "several words"]
