"""Random use of a queue, compared with a model step by step, on a store that runs each work twice."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from accord import errors
from accord.model import PRIORITIES, new_request
from accord.operations import call
from accord.operations.context import local
from accord.store.contract import Instant
from accord.store.open import open_store
from accord.store.wrap.faulty import chance, faulty, work_twice
from tests.operations.people import insist
from tests.operations.stores import Clocked

SOON = st.sampled_from([0.0, 0.5, 1.0, 2.0])
TIMES = st.sampled_from([0.5, 1.0, 2.0])


class Entry:
    """One of the model's."""

    def __init__(self, sequence: int, priority: str, tries: int) -> None:
        self.sequence = sequence
        self.priority = priority
        self.tries = tries
        self.taken = 0
        self.place = "ready"
        self.ends = Instant("", 0.0)  # the last moment at which it is where it is
        self.receipt = ""


class Queues(RuleBasedStateMachine):
    fate: Callable[[], Any] = work_twice

    @initialize()
    def begin(self) -> None:
        self.clock = Clocked(open_store("memory:"))
        self.context = local({"HOME": "/nonexistent"}, home="/nonexistent", engine="memory:")
        self.context._open = lambda: faulty(self.clock, type(self).fate())
        self.entries: dict[int, Entry] = {}
        self.pushed = 0
        self.receipts = ["never-given"]

    def do(self, word: str, **params: Any) -> dict[str, Any]:
        self.context.caller.request = new_request()
        return insist(self.context, f"queue.{word}", {"queue": "q", **params})

    @rule(priority=st.sampled_from(PRIORITIES), delay=SOON, tries=st.integers(1, 3))
    def push(self, priority: str, delay: float, tries: int) -> None:
        self.pushed += 1
        found = self.do("push", payload=f"payload {self.pushed}", priority=priority, delay=delay, tries=tries)
        assert found["sequence"] == self.pushed
        entry = self.entries[self.pushed] = Entry(self.pushed, priority, tries)
        if delay:
            self._hold(entry, "later", delay)

    @rule(visibility=TIMES)
    def pop(self, visibility: float) -> None:
        ready = self._ready()
        if not ready:
            with pytest.raises(errors.Empty):
                self.do("pop", visibility=visibility)
            return
        entry = ready[0]
        found = self.do("pop", visibility=visibility)
        entry.taken += 1
        assert (found["sequence"], found["priority"], found["tries"]) == (entry.sequence, entry.priority, entry.taken)
        assert found["payload"] == f"payload {entry.sequence}"
        assert found["receipt"] not in self.receipts
        entry.receipt = found["receipt"]
        self.receipts.append(entry.receipt)
        self._hold(entry, "taken", visibility)

    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        receipt = data.draw(st.sampled_from(self.receipts))
        entry = self._with(receipt)
        if entry is None:
            with pytest.raises(errors.StaleReceipt):
                self.do("done", receipt=receipt)
        else:
            assert self.do("done", receipt=receipt)["sequence"] == entry.sequence
            del self.entries[entry.sequence]

    @rule(data=st.data(), delay=SOON)
    def fail(self, data: st.DataObject, delay: float) -> None:
        receipt = data.draw(st.sampled_from(self.receipts))
        entry = self._with(receipt)
        if entry is None:
            with pytest.raises(errors.StaleReceipt):
                self.do("fail", receipt=receipt, delay=delay)
            return
        entry.place = "dead" if entry.taken == entry.tries else "ready"
        assert self.do("fail", receipt=receipt, delay=delay)["dead"] == (entry.place == "dead")
        if delay and entry.place == "ready":
            self._hold(entry, "later", delay)

    @rule(data=st.data(), word=st.sampled_from(["retry", "drop"]))
    def of_a_dead_letter(self, data: st.DataObject, word: str) -> None:
        sequence = data.draw(st.integers(1, self.pushed + 1))
        entry = self.entries.get(sequence)
        if entry is None or entry.place != "dead":
            with pytest.raises(errors.DeadLetterNotFound):
                self.do(word, sequence=sequence)
            return
        self.do(word, sequence=sequence)
        if word == "drop":
            del self.entries[sequence]
        else:
            entry.place, entry.taken = "ready", 0

    @rule(seconds=TIMES)
    def wait(self, seconds: float) -> None:
        self.clock.time = self.clock.time.plus(seconds)
        self._come_due()

    @rule()
    def restart(self) -> None:
        """Of the machine; its clock starts anew."""
        era = int(self.clock.time.era.split()[1]) + 1
        self.clock.time = Instant(f"era {era}", 5.0)
        self._come_due()

    @invariant()
    def shows_what_is_there(self) -> None:
        ready = self._ready()
        shown = self.do("peek", limit=100)["entries"]
        assert [one["sequence"] for one in shown] == [entry.sequence for entry in ready]
        dead = [entry.sequence for entry in self.entries.values() if entry.place == "dead"]
        assert sorted(one["sequence"] for one in self.do("dead", limit=100)["entries"]) == dead
        if self.pushed:
            [found] = call(self.context, "queue.list", {})["queues"]
            assert found == {
                "queue": "q",
                "ready": {word: sum(entry.priority == word for entry in ready) for word in PRIORITIES},
                "in_flight": self._count("taken"),
                "delayed": self._count("later"),
                "dead": len(dead),
                "length": len(self.entries),
            }

    def _hold(self, entry: Entry, place: str, seconds: float) -> None:
        entry.place = place
        entry.ends = self.clock.time.plus(seconds)

    def _come_due(self) -> None:
        now = self.clock.time
        for entry in self.entries.values():
            held = entry.place in ("taken", "later")
            if held and (entry.ends.era != now.era or entry.ends.seconds < now.seconds):
                is_lost = entry.place == "taken" and entry.taken == entry.tries
                entry.place = "dead" if is_lost else "ready"

    def _ready(self) -> list[Entry]:
        found = [entry for entry in self.entries.values() if entry.place == "ready"]
        return sorted(found, key=lambda entry: (PRIORITIES.index(entry.priority), entry.sequence))

    def _with(self, receipt: str) -> Entry | None:
        found = [entry for entry in self.entries.values() if entry.receipt == receipt and entry.place == "taken"]
        return found[0] if found else None

    def _count(self, place: str) -> int:
        return sum(entry.place == place for entry in self.entries.values())


class UnluckyQueues(Queues):
    fate = staticmethod(lambda: chance(seed=7, conflict=0.2, moved=0.02))


class UntoldQueues(Queues):
    """Of the end of some commits nobody is told."""

    fate = staticmethod(lambda: chance(seed=8, conflict=0.1, moved=0.02, lost=0.1, never=0.1))


@pytest.mark.covers("S7")
@pytest.mark.parametrize("machine", [Queues, UnluckyQueues, UntoldQueues])
def test_a_queue_is_as_the_model(machine: type[Queues]) -> None:
    run(machine, examples=40, steps=30)


@pytest.mark.long
@pytest.mark.covers("S7")
@pytest.mark.parametrize("machine", [Queues, UnluckyQueues, UntoldQueues])
def test_a_queue_is_as_the_model_for_long(machine: type[Queues]) -> None:
    run(machine, examples=1000, steps=80)


def run(machine: type[Queues], examples: int, steps: int) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps))
