"""The task board: what every way into it says of tasks that are added, taken, blocked, given back and done."""

import time
from pathlib import Path
from typing import Any

import pytest

import accord
from accord import platform
from accord.services import board
from accord.services.tasks import MAX_TEXT_BYTES, MOST_ASSIGNMENTS
from tests.operations.people import refusal
from tests.operations.ways import CommandLine, Python, Way, exit_of

pytestmark = pytest.mark.covers("S8")


def add(way: Way, title: str = "something", **more: Any) -> str:
    return str(way.do("task.add", title=title, **more)["id"])


def take(way: Way, agent: str, **more: Any) -> str:
    return str(way.do("task.next", agent=agent, **more)["id"])


def listed(way: Way, **which: Any) -> list[str]:
    return [task["id"] for task in way.do("task.list", **which)["tasks"]]


def state(way: Way, id: str) -> str:
    return str(way.do("task.show", id=id)["state"])


def lose(way: Way, id: str, agent: str) -> None:
    """Claim it, and let the claim be over."""
    way.do("task.claim", id=id, agent=agent, ttl=0.001)
    time.sleep(0.003)


def test_from_its_addition_to_its_end(way: Way) -> None:
    added = way.do("task.add", title="Write the parser", text="All of it.\n", priority="high")
    assert (added["id"], added["state"], added["agent"]) == ("t1", "ready", None)
    claimed = way.do("task.next", agent="Ann.1", session="s-1")
    assert (claimed["id"], claimed["title"], claimed["token"]) == ("t1", "Write the parser", 1)
    assert (claimed["state"], claimed["agent"], claimed["session"]) == ("claimed", "Ann.1", "s-1")
    assert way.do("task.start", id="t1", agent="Ann.1")["state"] == "started"
    going_on = way.do("task.progress", id="t1", agent="Ann.1", note="half of it", ttl=7200)
    assert (going_on["note"], going_on["token"]) == ("half of it", 1)
    assert going_on["expires_at"] > claimed["expires_at"]
    way.do("task.done", id="t1", agent="Ann.1", note="all of it")
    shown = way.do("task.show", id="t1")
    assert (shown["state"], shown["agent"], shown["note"]) == ("done", "Ann.1", "all of it")
    assert (shown["text"], shown["token"], shown["expires_at"]) == ("All of it.\n", None, None)
    [assignment] = shown["assignments"]
    assert (assignment["agent"], assignment["session"], assignment["status"]) == ("Ann.1", "s-1", "done")
    assert assignment["completed_at"] == shown["done_at"] >= assignment["assigned_at"] >= shown["created_at"]


def test_ids_that_are_given_and_ids_that_are_made(way: Way) -> None:
    assert add(way, id="t2") == "t2"
    assert add(way) == "t3"  # the second task, and its name is taken
    assert add(way, id="Fix.parser_1") == "Fix.parser_1"
    assert "t2" in refusal("TASK_EXISTS", add, way, id="t2").text
    for operation in ("show", "unblock"):
        refusal("TASK_NOT_FOUND", way.do, f"task.{operation}", id="t1")
    refusal("TASK_NOT_FOUND", way.do, "task.claim", id="t1", agent="ann")
    for wrong in ({"id": "a b"}, {"priority": "urgent"}, {"title": "two\nlines"}, {"title": "x" * 201}):
        refusal("USAGE", add, way, **wrong)
    refusal("TOO_LARGE", add, way, text="é" * 50_001)
    assert listed(way) == ["Fix.parser_1", "t3", "t2"]


def test_two_agents_never_have_one_task(way: Way) -> None:
    add(way)
    first = way.do("task.claim", id="t1", agent="ann", ttl=60)
    refused = refusal("ALREADY_CLAIMED", way.do, "task.claim", id="t1", agent="ben")
    assert refused.details["holder"] == "ann"
    again = way.do("task.claim", id="t1", agent="ann", ttl=600)
    assert again["token"] == first["token"] == 1
    assert again["expires_at"] > first["expires_at"]
    for operation, more in (("start", {}), ("progress", {"note": "x"}), ("release", {}), ("done", {})):
        refusal("NOT_CLAIMED", way.do, f"task.{operation}", id="t1", agent="ben", **more)
    refusal("NOT_CLAIMED", way.do, "task.done", id="t1")  # by nobody in particular
    refusal("NOT_CLAIMED", way.do, "task.block", id="t1", agent="ben", reason="mine")
    assert way.do("task.release", id="t1", agent="ann")["state"] == "ready"
    assert way.do("task.claim", id="t1", agent="ben")["token"] == 2


def test_tasks_that_wait_for_others(way: Way) -> None:
    refusal("TASK_NOT_FOUND", add, way, after=["t9"])
    add(way, id="a")
    add(way, id="b", after=["a"])
    add(way, id="c", after=["a", "b"], priority="high")
    assert "waits for a, b" in refusal("NOT_READY", way.do, "task.claim", id="c", agent="ann").text
    cycle = refusal("DEPENDENCY_CYCLE", way.do, "task.depend", id="a", after=["c"])
    assert "a waits for c" in cycle.text
    assert way.do("task.show", id="c")["waits_for"] == ["a", "b"]
    way.do("task.done", id="a")
    assert take(way, "ann") == "b"
    refusal("EMPTY", way.do, "task.next", agent="ben")
    way.do("task.done", id="b", agent="ann")
    assert listed(way, state="ready") == ["c"]
    add(way, id="d")
    assert way.do("task.depend", id="c", after=["d"])["after"] == ["a", "b", "d"]
    assert listed(way, state="waiting") == ["c"]
    assert take(way, "ann") == "d"


def test_assignments(way: Way) -> None:
    for id in ("a", "b"):
        add(way, id=id)
    way.do("task.assign", id="b", agent="ann", session="session with spaces, ü")
    refused = refusal("NOT_READY", way.do, "task.claim", id="b", agent="ben")
    assert "assigned to ann" in refused.text
    way.do("task.assign", id="b", agent="ann", session="session with spaces, ü")
    assert take(way, "ann") == "b"  # before what anybody may take
    refusal("ALREADY_CLAIMED", way.do, "task.assign", id="b", agent="ben")
    way.do("task.release", id="b", agent="ann")
    way.do("task.assign", id="b", agent="ann")
    way.do("task.assign", id="b", agent="ben")
    assert take(way, "ann") == "a"
    assert listed(way, agent="ben") == ["b"]
    assert way.do("task.claim", id="b", agent="ben")["state"] == "claimed"
    found = [(one["agent"], one["session"], one["status"]) for one in way.do("task.show", id="b")["assignments"]]
    assert found == [("ann", "session with spaces, ü", "reassigned"), ("ben", "", "claimed")]


@pytest.mark.parametrize("session", ["", " ", "two\nlines", "\x1b[2J", "x" * 129])
def test_what_no_session_is_called(here: Python, session: str) -> None:
    here.do("task.add", title="x", id="a")
    for operation in ("task.assign", "task.claim"):
        refusal("USAGE", here.do, operation, id="a", agent="ann", session=session)
    here.do("task.assign", id="a", agent="ann", session="x" * 128)


def test_the_board(way: Way) -> None:
    for id in ("a", "b", "c", "d", "e", "f"):
        add(way, id=id, after=["a"] if id == "b" else None, priority="high" if id == "c" else None)
    way.do("task.claim", id="d", agent="ann")
    way.do("task.claim", id="e", agent="ann")
    way.do("task.start", id="e", agent="ann")
    way.do("task.done", id="f")
    way.do("task.block", id="a", reason="no power")
    board = way.do("task.board", limit=1)
    found = {column: [task["id"] for task in board[column]] for column in board if column != "more"}
    assert found == {
        "ready": ["c"], "waiting": ["b"], "claimed": ["d"], "started": ["e"], "blocked": ["a"], "done": ["f"],
    }  # fmt: skip
    assert board["more"] == []
    assert "no power" in refusal("NOT_READY", way.do, "task.claim", id="a", agent="ann").text
    way.do("task.unblock", id="a")
    assert way.do("task.board", limit=1)["more"] == ["ready"]
    assert listed(way, state="ready") == ["c", "a"]


def test_halt_stops_what_begins_and_not_what_ends(way: Way) -> None:
    for id in ("a", "b", "c"):
        add(way, id=id)
        way.do("task.claim", id=id, agent="ann")
    way.do("halt.set", reason="too hot")
    refusal("HALTED", add, way)
    for operation, params in (("claim", {"id": "a"}), ("next", {}), ("next", {"wait": 30}), ("start", {"id": "a"})):
        refusal("HALTED", way.do, f"task.{operation}", agent="ann", **params)
    way.do("task.progress", id="a", agent="ann", note="going on")
    way.do("task.done", id="a", agent="ann")
    way.do("task.block", id="b", agent="ann", reason="a halt")
    way.do("task.release", id="c", agent="ann")
    assert [state(way, id) for id in ("a", "b", "c")] == ["done", "blocked", "ready"]


def test_next_waits_for_a_task(way: Way) -> None:
    refused = refusal("EMPTY", way.do, "task.next", agent="ann")
    assert exit_of("EMPTY") == 3
    assert "for ann" in refused.text
    refused = refusal("EMPTY", way.do, "task.next", agent="ann", wait=0.2)
    assert "0.2 s were waited for a task to be ready" in refused.text
    add(way)
    way.do("task.claim", id="t1", agent="ben", ttl=0.5)
    assert take(way, "ann", wait=30) == "t1"  # nobody says that ben's time is over


def test_a_task_returns_when_its_claim_is_over(here: Python) -> None:
    add(here)
    lose(here, "t1", "ann")
    assert listed(here, state="ready") == ["t1"]
    assert [task["id"] for task in here.do("task.board")["ready"]] == ["t1"]
    assert take(here, "ben", ttl=0.001) == "t1"
    time.sleep(0.003)
    assert here.do("task.claim", id="t1", agent="cat", ttl=60)["token"] == 3
    found = [(one["agent"], one["status"]) for one in here.do("task.show", id="t1")["assignments"]]
    assert found == [("ann", "expired"), ("ben", "expired"), ("cat", "claimed")]


def test_a_claim_lasts(memory: Python) -> None:
    """One that is over at once says that it succeeded, and is nobody's."""
    add(memory)
    for operation, params in (("claim", {"id": "t1"}), ("next", {}), ("progress", {"id": "t1", "note": "x"})):
        wrong = refusal("USAGE", memory.do, f"task.{operation}", agent="ann", ttl=0, **params)
        assert "more than 0 seconds" in wrong.text


def test_a_late_done(here: Python) -> None:
    for id in ("a", "b", "c"):
        add(here, id=id)
        lose(here, id, "ann")
    here.do("task.claim", id="a", agent="ben")
    assert "ben does" in refusal("NOT_CLAIMED", here.do, "task.done", id="a", agent="ann").text
    here.do("task.done", id="a", agent="ben")
    assert "ben did it" in refusal("NOT_CLAIMED", here.do, "task.done", id="a", agent="ann").text
    here.do("task.done", id="b", agent="ann")  # over, and not taken
    assert here.do("task.done", id="b", agent="ann")["state"] == "done"
    assert "time was over" in refusal("NOT_CLAIMED", here.do, "task.progress", id="c", agent="ann", note="x").text
    assert listed(here, state="done") == ["b", "a"]


def test_another_start_of_the_machine_ends_all_claims(memory: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one commit gives back, and eras that sort before and after the new one."""
    ids = [add(memory, f"task {n}") for n in range(25)]
    for n, id in enumerate(ids):
        if n in (10, 20):
            monkeypatch.setattr(platform, "boot_id", lambda n=n: f"boot {n}")
        memory.do("task.claim", id=id, agent="ann", ttl=1e6)
    for n in range(3):
        monkeypatch.setattr(platform, "boot_id", lambda n=n: f"another {n}")
        assert listed(memory, state="ready") == ids
        assert listed(memory, state="claimed") == []
        memory.do("task.claim", id=ids[n], agent="ben", ttl=1e6)


def test_a_jump_of_the_wall_clock_ends_none(steady: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    add(steady)
    steady.do("task.claim", id="t1", agent="ann", ttl=60)
    real = time.time
    for jump_s in (-1e6, 1e6):
        monkeypatch.setattr(time, "time", lambda jump_s=jump_s: real() + jump_s)
        refusal("ALREADY_CLAIMED", steady.do, "task.claim", id="t1", agent="ben")


def test_200_that_wait_for_one(here: Python) -> None:
    with accord.open(engine=here.engine) as home:
        home.task.add(title="first", id="first")
        for n in range(200):
            home.task.add(title="x", id=f"n{n}", after="first")
    assert listed(here, state="ready") == ["first"]
    here.do("task.done", id="first")
    assert here.do("task.claim", id="n150", agent="ann")["state"] == "claimed"  # whoever knows it need not look first
    assert take(here, "ann") == "n0"
    assert len(listed(here, state="ready", limit=1000)) == 198
    assert listed(here, state="waiting") == []


def test_who_looks_for_work_need_not_wait_until_all_of_many_are_ready(
    memory: Python, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.operations.task._COMMITS", 2)
    for id in ("first", "second", "third"):
        add(memory, id=id)
    for n in range(45):
        add(memory, id=f"n{n}", after=["first"], priority="high" if n == 44 else None)
    memory.do("task.done", id="first")
    assert (
        take(memory, "ann") == "second"
    )  # some 20 of them are ready by now, and the one that should come first is not
    assert [take(memory, "ann") for _ in range(3)] == ["third", "n44", "n0"]
    memory.do("task.add", title="x", id="more", after=["n0"])
    memory.do("task.block", id="more", reason="x")
    assert len([take(memory, "ann") for _ in range(43)]) == 43
    refusal("EMPTY", memory.do, "task.next", agent="ann")


def test_who_only_looks_need_not_wait_until_all_of_many_are_ready(
    memory: Python, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[object] = []
    tidy = board.tidy

    def counted(tx: Any) -> bool:
        commits.append(tx)
        return tidy(tx)

    monkeypatch.setattr(board, "tidy", counted)
    monkeypatch.setattr("accord.operations.task._COMMITS", 2)
    add(memory, id="first")
    for n in range(60):
        add(memory, id=f"n{n}", after=["first"])
    memory.do("task.done", id="first")
    memory.do("task.board")
    assert len(commits) == 2
    assert len(listed(memory, limit=1000)) == 61
    assert len(commits) == 4
    while len(listed(memory, state="ready", limit=1000)) < 60:
        assert len(commits) < 20


def test_one_that_waits_for_200(memory: Python) -> None:
    add(memory, id="last")
    ids = [add(memory, id=f"n{n}") for n in range(200)]
    for at in range(0, 200, 20):
        memory.do("task.depend", id="last", after=ids[at : at + 20])
    for id in ids:
        assert state(memory, "last") == "waiting"
        memory.do("task.done", id=id)
    assert listed(memory, state="ready") == ["last"]


def test_a_deep_chain_and_its_cycle(here: Python) -> None:
    """Longer than one commit can check."""
    with accord.open(engine=here.engine) as home:
        for n in range(300):
            home.task.add(title="x", id=f"n{n}", after=f"n{n - 1}" if n else None)
    refused = refusal("DEPENDENCY_CYCLE", here.do, "task.depend", id="n0", after=["n299"])
    assert "n0 waits for n299" in refused.text
    assert "n1 waits for n0" in refused.text
    assert len(refused.text) < 400
    assert listed(here, state="ready") == ["n0"]
    for n in range(5):
        assert take(here, "ann") == f"n{n}"
        here.do("task.done", id=f"n{n}", agent="ann")


@pytest.mark.parametrize("after", [["a"], ["b", "a"]])
def test_a_task_never_waits_for_itself(memory: Python, after: list[str]) -> None:
    add(memory, id="b")
    refusal("DEPENDENCY_CYCLE", add, memory, id="a", after=after)
    add(memory, id="a")
    refusal("DEPENDENCY_CYCLE", memory.do, "task.depend", id="a", after=after)
    assert state(memory, "a") == "ready"


def test_what_is_done_can_be_changed_no_more(memory: Python) -> None:
    add(memory, id="a")
    add(memory, id="b")
    memory.do("task.done", id="a")
    changes: dict[str, dict[str, Any]] = {
        "depend": {"after": ["b"]},
        "assign": {"agent": "ann"},
        "claim": {"agent": "ann"},
        "block": {"reason": "x"},
        "unblock": {},
    }
    for operation, params in changes.items():
        assert "it is done" in refusal("NOT_READY", memory.do, f"task.{operation}", id="a", **params).text
    assert memory.do("task.depend", id="b", after=["a"])["state"] == "ready"


def test_the_order_of_what_is_next(memory: Python) -> None:
    given = {"low": "low", "first": "normal", "high": "high", "second": "normal", "mine": "low"}
    for id, priority in given.items():
        add(memory, id=id, priority=priority, assignee="ann" if id == "mine" else None)
    assert listed(memory, state="ready") == ["high", "first", "second", "low", "mine"]
    assert [take(memory, "ann") for _ in given] == ["mine", "high", "first", "second", "low"]


def test_the_largest_text(way: Way) -> None:
    largest = "é" * 50_000
    add(way, text=largest)
    assert way.do("task.show", id="t1")["text"] == largest


def test_a_file_with_more_than_the_largest_text(lone_shell: CommandLine) -> None:
    with open("text", "w") as file:
        file.write("x" * (MAX_TEXT_BYTES + 1))
    done = lone_shell.run(["task", "add", "something", "--file=text"])
    assert b"The text of a task" in done.stdout
    assert b"TOO_LARGE" in done.stdout


def test_a_task_remembers_only_so_many_who_had_it(memory: Python) -> None:
    add(memory)
    with accord.open(engine=memory.engine) as home:
        for n in range(MOST_ASSIGNMENTS + 5):
            home.task.claim(id="t1", agent=f"p{n}")
            home.task.release(id="t1", agent=f"p{n}")
        had = [one["agent"] for one in home.task.show(id="t1")["assignments"]]
    assert had == [f"p{n}" for n in range(5, MOST_ASSIGNMENTS + 5)]


def test_labels_of_any_length(here: Python) -> None:
    longest = "A" * 128
    add(here, id=longest, assignee=longest)
    assert take(here, longest) == longest
    here.do("task.done", id=longest, agent=longest)
    assert listed(here, agent=longest) == [longest]


def test_ids_that_people_took_before(memory: Python) -> None:
    taken = {add(memory, id=f"t{n}") for n in range(100, 300)}
    made = {add(memory) for _ in range(100)}
    assert len(made) == 100
    assert not made & taken


def test_next_asks_as_much_of_many_as_of_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from accord.store.engines.memory import _Snapshot

    reads: list[int] = []
    page, get = _Snapshot.list, _Snapshot.get

    def counted_page(*given: Any) -> Any:
        found = page(*given)
        reads.append(len(found))
        return found

    def counted_get(*given: Any) -> Any:
        reads.append(1)
        return get(*given)

    monkeypatch.setattr(_Snapshot, "list", counted_page)
    monkeypatch.setattr(_Snapshot, "get", counted_get)
    costs = []
    for count in (10, 500):
        memory = Python(f"memory:{tmp_path}/{count}")
        for n in range(count):
            add(memory, after=["t1"] if n % 3 else None)
            if n % 5 == 2:
                memory.do("task.block", id=f"t{n + 1}", reason="x")
        take(memory, "ann")
        reads.clear()
        assert take(memory, "ann") == "t4"
        costs.append((len(reads), sum(reads)))
    assert costs[0] == costs[1]
