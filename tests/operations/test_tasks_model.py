"""Random use of the task board, compared with a model step by step, on a store where every work runs again."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from accord import errors
from accord.model import PRIORITIES, TASK_STATES
from accord.services import board, tasks
from accord.services.board import Task
from accord.services.tasks import Agent
from accord.store.contract import Instant
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from accord.store.wrap.faulty import chance, faulty, work_twice
from tests.often import often

pytestmark = pytest.mark.covers("S8")

AGENTS = ("ann", "ben", "cat")
TTLS = (0.0, 10.0, 100.0)
AT = "2026-01-01T00:00:00.000Z"

T = TypeVar("T")

agents = st.sampled_from(AGENTS)
ttls = st.sampled_from(TTLS)
picks = st.integers(0, 7)  # of the tasks that there are


@dataclass
class Known:
    """A task, as simply as it can be."""

    id: str
    number: int
    priority: str
    assignee: str = ""
    after: "list[Known]" = field(default_factory=list)
    standing: str = "open"
    holder: str = ""
    until: float = 0.0
    ttl_s: float = 0.0
    is_started: bool = False
    token: int = 0
    done_by: str = ""
    had: set[str] = field(default_factory=set)

    def reaches(self, other: "Known") -> bool:
        return self is other or (self.standing != "done" and any(one.reaches(other) for one in self.after))


class Clock:
    """A store with a time of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.era = 0
        self.seconds = 0.0

    def now(self) -> Instant:
        return Instant(f"era {self.era}", self.seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Board(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000), twice=st.booleans())
    def open(self, seed: int, twice: bool) -> None:
        fate = work_twice() if twice else chance(seed, conflict=0.2, moved=0.02, lost=0.1, never=0.1)
        self.store: Any = Clock(faulty(open_store("memory:"), fate))
        self.known: list[Known] = []
        self.done: list[Known] = []
        self.requests = 0

    def pick(self, at: int) -> Known:
        return self.known[at % len(self.known)] if self.known else Known("nothing", 0, "normal")

    def do(self, work: "Callable[[Transaction], Task | None]") -> str:
        """The id of the task that it answers with, or the code of the error."""
        self.requests += 1

        def answer(tx: Transaction) -> str:
            task = work(tx)
            return "EMPTY" if task is None else task.id

        while True:
            try:
                return transact(self.store, answer, f"request {self.requests}")
            except errors.OutcomeUnknown:
                pass  # asked again, under the same name
            except errors.AccordError as error:
                return error.code

    def read(self, work: "Callable[[Transaction], T]") -> "T":
        return transact(self.store, work)

    def tidy(self) -> None:
        is_left = True
        while is_left:
            with suppress(errors.OutcomeUnknown):
                is_left = transact(self.store, board.tidy)

    def held(self, task: Known) -> str:
        return task.holder if task.until > self.store.seconds else ""

    def end(self, ttl_s: float) -> float:
        """Of what lasts so long from now on: the next millisecond."""
        return (int((self.store.seconds + ttl_s) * 1000) + 1) / 1000

    def state(self, task: Known) -> str:
        if task.standing != "open":
            return task.standing
        if self.held(task):
            return "started" if task.is_started else "claimed"
        return "waiting" if any(one.standing != "done" for one in task.after) else "ready"

    @rule(
        priority=st.sampled_from(PRIORITIES), after=st.lists(picks, max_size=3), assignee=st.sampled_from(["", *AGENTS])
    )
    def add(self, priority: str, after: list[int], assignee: str) -> None:
        before = [self.pick(at) for at in after if self.known]
        new = Known(
            f"t{len(self.known) + 1}",
            len(self.known) + 1,
            priority,
            assignee,
            list({one.id: one for one in before}.values()),
        )
        new.had |= {assignee} - {""}
        ids = [one.id for one in before]
        found = self.do(lambda tx: tasks.add(tx, "x", AT, None, "", priority, ids, assignee or None))
        assert found == new.id
        self.known.append(new)

    @rule(at=picks, after=picks)
    def depend(self, at: int, after: int) -> None:
        task, before = self.pick(at), self.pick(after)
        found = self.do(lambda tx: tasks.depend(tx, task.id, [before.id]))
        if not self.known:
            assert found == "TASK_NOT_FOUND"
        elif task.standing == "done":
            assert found == "NOT_READY"
        elif before not in task.after and (before is task or before.reaches(task)):
            assert found == "DEPENDENCY_CYCLE"
        else:
            assert found == task.id
            if before not in task.after:
                task.after.append(before)

    @rule(at=picks, agent=agents)
    def assign(self, at: int, agent: str) -> None:
        task = self.pick(at)
        found = self.do(lambda tx: tasks.assign(tx, task.id, Agent(agent, AT)))
        if not self.known:
            assert found == "TASK_NOT_FOUND"
        elif task.standing == "done":
            assert found == "NOT_READY"
        elif self.held(task) not in ("", agent):
            assert found == "ALREADY_CLAIMED"
        else:
            assert found == task.id
            task.assignee = agent
            task.had.add(agent)

    def take(self, task: Known, agent: str, ttl_s: float) -> None:
        if not self.held(task):
            task.token += 1
            task.is_started = False
        task.holder, task.until, task.ttl_s = agent, self.end(ttl_s), ttl_s
        task.had.add(agent)

    @rule(at=picks, agent=agents, ttl_s=ttls)
    def claim(self, at: int, agent: str, ttl_s: float) -> None:
        task = self.pick(at)
        found = self.do(lambda tx: tasks.claim(tx, task.id, Agent(agent, AT, ttl_s)))
        if not self.known:
            assert found == "TASK_NOT_FOUND"
        elif self.held(task) not in ("", agent):
            assert found == "ALREADY_CLAIMED"
        elif not self.held(task) and (self.state(task) != "ready" or task.assignee not in ("", agent)):
            assert found == "NOT_READY"
        else:
            assert found == task.id
            self.take(task, agent, ttl_s)

    @rule(agent=agents, ttl_s=ttls)
    def claim_next(self, agent: str, ttl_s: float) -> None:
        self.tidy()
        found = self.do(lambda tx: tasks.claim_next(tx, Agent(agent, AT, ttl_s)))
        ready = [task for task in self.known if self.state(task) == "ready" and task.assignee in ("", agent)]
        ready.sort(key=lambda task: (task.assignee != agent, PRIORITIES.index(task.priority), task.number))
        assert found == (ready[0].id if ready else "EMPTY")
        if ready:
            self.take(ready[0], agent, ttl_s)

    def holding(self, at: int, agent: str, work: "Callable[[Transaction, str], Task]") -> "Known | None":
        task = self.pick(at)
        found = self.do(lambda tx: work(tx, task.id))
        is_held = self.known and task.standing == "open" and self.held(task) == agent
        assert found == (task.id if is_held else "NOT_CLAIMED" if self.known else "TASK_NOT_FOUND")
        return task if is_held else None

    @rule(at=picks, agent=agents)
    def start(self, at: int, agent: str) -> None:
        if task := self.holding(at, agent, lambda tx, id: tasks.start(tx, id, agent, AT)):
            task.is_started = True
            task.until = self.end(task.ttl_s)

    @rule(at=picks, agent=agents, ttl_s=st.sampled_from([None, *TTLS]))
    def progress(self, at: int, agent: str, ttl_s: "float | None") -> None:
        if task := self.holding(at, agent, lambda tx, id: tasks.progress(tx, id, agent, AT, "x", ttl_s)):
            task.ttl_s = task.ttl_s if ttl_s is None else ttl_s
            task.until = self.end(task.ttl_s)

    @rule(at=picks, agent=agents)
    def release(self, at: int, agent: str) -> None:
        if task := self.holding(at, agent, lambda tx, id: tasks.release(tx, id, agent)):
            task.holder = task.assignee = ""

    @rule(at=picks, agent=st.sampled_from([None, *AGENTS]))
    def block(self, at: int, agent: "str | None") -> None:
        task = self.pick(at)
        found = self.do(lambda tx: tasks.block(tx, task.id, "x", agent))
        if not self.known:
            assert found == "TASK_NOT_FOUND"
        elif task.standing == "done":
            assert found == "NOT_READY"
        elif agent and self.held(task) not in ("", agent):
            assert found == "NOT_CLAIMED"
        else:
            assert found == task.id
            task.standing, task.holder = "blocked", ""

    @rule(at=picks)
    def unblock(self, at: int) -> None:
        task = self.pick(at)
        found = self.do(lambda tx: tasks.unblock(tx, task.id))
        assert found == ("TASK_NOT_FOUND" if not self.known else "NOT_READY" if task.standing == "done" else task.id)
        if task.standing == "blocked":
            task.standing = "open"

    @rule(at=picks, agent=st.sampled_from(["", *AGENTS]))
    def finish(self, at: int, agent: str) -> None:
        task = self.pick(at)
        found = self.do(lambda tx: tasks.done(tx, task.id, AT, agent or None))
        if not self.known:
            assert found == "TASK_NOT_FOUND"
        elif task.standing == "done":
            assert found == (task.id if task.done_by == agent else "NOT_CLAIMED")
        elif self.held(task) not in ("", agent):
            assert found == "NOT_CLAIMED"
        else:
            assert found == task.id
            task.standing, task.done_by, task.holder = "done", agent, ""
            task.had |= {agent} - {""}
            self.done.append(task)

    @rule(seconds=st.sampled_from([0.5, 10.0, 1000.0]))
    def pass_time(self, seconds: float) -> None:
        self.store.seconds += seconds

    @rule()
    def restart(self) -> None:
        self.store.era += 1
        for task in self.known:
            task.until = 0.0
        self.store.seconds = 0.0

    @invariant()
    def each_is_as_known(self) -> None:
        for known in getattr(self, "known", []):
            task = self.read(partial(board.find, id=known.id))
            assert self.read(partial(board.state, task=task)) == self.state(known)
            assert (task.holder, task.token) == (self.held(known), known.token)
            assert task.assignee == known.assignee
            assert set(task.assignments) == known.had
            assert [id for _, id in task.after] == [one.id for one in known.after]

    @rule()
    def each_is_found_where_it_belongs(self) -> None:
        self.tidy()
        for state in TASK_STATES:
            there = self.read(partial(board.all_of, state=state, agent=None, limit=1000))
            found = [task.id for task in there]
            known = [task for task in self.known if self.state(task) == state]
            if state == "done":
                known = self.done[::-1]
            elif state in ("claimed", "started"):
                found.sort()
                known.sort(key=lambda task: task.id)
            else:
                known.sort(key=lambda task: (PRIORITIES.index(task.priority), task.number))
            assert found == [task.id for task in known], state

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.each_is_found_where_it_belongs()
            assert self.read(lambda tx: tx.list(board.WAKE)) == []


def test_the_board_is_what_the_model_says() -> None:
    run_state_machine_as_test(
        Board,
        settings=settings(max_examples=often(250), stateful_step_count=40, report_multiple_bugs=False),
    )


@pytest.mark.long
def test_the_board_is_what_the_model_says_for_long() -> None:
    run_state_machine_as_test(
        Board, settings=settings(max_examples=2000, stateful_step_count=60, report_multiple_bugs=False)
    )
