"""What `transact` does by itself, whatever the engine: buffered pages, results, kept answers, tries."""

import itertools
import random
import time
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord import errors, jsontext, platform
from accord.store import names, transaction
from accord.store.contract import MAX_PAGE, Append, Committed, Delete, Item, Number, Put
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import REQUESTS, Transaction, transact
from accord.store.wrap.faulty import faulty, plan
from tests.often import often

pytestmark = pytest.mark.covers("S1")

IDS = st.text("abc", min_size=1, max_size=2)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False)
)
ANSWERS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))

_count = itertools.count()


def new_store() -> Store:
    """A store of its own, with a name: `memory:` alone is another one each time."""
    return open_store(f"memory:test_transaction {next(_count)}")


def append_one(tx: Transaction) -> Number:
    return tx.append("c", b"")


def count(store: Store) -> int:
    with store.snapshot() as snapshot:
        return snapshot.head("c").last


def kept(store: Store, key: str) -> dict[str, object]:
    """The record of an answer."""
    with store.snapshot() as snapshot:
        item = snapshot.get(*names.to_key(REQUESTS, key))
    assert item is not None
    record = jsontext.loads(item.value)
    assert isinstance(record, dict)
    return record


# Pages.


@given(
    st.sets(IDS),
    st.lists(st.tuples(IDS, st.none() | st.just(b"new")), max_size=8),
    st.just("") | IDS,
    st.integers(1, 8),
    st.booleans(),
)
@settings(max_examples=often(500), derandomize=True)
def test_a_page_shows_what_was_written_over_what_is_stored(
    stored: set[str], written: list[tuple[str, bytes | None]], after: str, limit: int, reverse: bool
) -> None:
    store = new_store()
    if stored:
        store.commit([], [Put("c", id, b"old") for id in stored])
    expected = dict.fromkeys(stored, b"old")
    with store.snapshot() as snapshot:
        tx = Transaction(store, snapshot)
        for id, value in written:
            expected.pop(id, None)
            if value is None:
                tx.delete("c", id)
            else:
                tx.put("c", id, value)
                expected[id] = value
        ids = sorted(expected, reverse=reverse)
        beyond = [id for id in ids if not after or (id < after if reverse else id > after)]
        found = [(item.id, item.value) for item in tx.list("c", after, limit, reverse)]
        assert found == [(id, expected[id]) for id in beyond[:limit]]
        assert {id for id in [*stored, *"abc"] if tx.get("c", id)} == {id for id in [*stored, *"abc"] if id in expected}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [MAX_PAGE, MAX_PAGE - 1, 990])
def test_the_largest_page_is_full_though_some_of_it_was_deleted(limit: int, reverse: bool) -> None:
    store = new_store()
    ids = [f"i{number:04d}" for number in range(1100)]
    for start in range(0, 1100, 50):
        store.commit([], [Put("c", id, b"") for id in ids[start : start + 50]])
    deleted = {*ids[:20], ids[100], ids[999], *ids[-20:]}  # the two are the last that one read can bring

    def work(tx: Transaction) -> list[str]:
        for id in deleted:
            tx.delete("c", id)
        for id in (ids[0] + "x", ids[50] + "x", ids[-1] + "x"):
            tx.put("c", id, b"")
        return [item.id for item in tx.list("c", limit=limit, reverse=reverse)]

    left = [id for id in ids if id not in deleted]
    every = sorted([*left, ids[0] + "x", ids[50] + "x", ids[-1] + "x"], reverse=reverse)
    assert transact(store, work) == every[:limit]


@pytest.mark.parametrize("limit", [0, -1, MAX_PAGE + 1])
@pytest.mark.parametrize("writes", [False, True])
def test_the_limits_of_a_page_hold_with_and_without_own_writes(limit: int, writes: bool) -> None:
    store = new_store()
    with store.snapshot() as snapshot:
        tx = Transaction(store, snapshot)
        if writes:
            tx.put("c", "a", b"")
        with pytest.raises(ValueError, match="page"):
            tx.list("c", limit=limit)


def test_a_value_that_waits_for_its_number_cannot_be_read() -> None:
    store = new_store()
    with store.snapshot() as snapshot:
        tx = Transaction(store, snapshot)
        tx.put("c", "a", (b"number ", tx.append("c", b"")))
        tx.put("d", "a", b"known")
        for read in (lambda: tx.get("c", "a"), lambda: tx.list("c")):
            with pytest.raises(ValueError, match="number"):
                read()
        assert tx.get("d", "a") == Item("a", b"known", 0)


def test_what_is_committed_is_what_was_read_and_written() -> None:
    store = new_store()
    store.commit([], [Put("c", "a", b""), Put("c", "b", b"")])

    told: list[Any] = []

    class Ledger:
        def commit(self, *args: object) -> Committed:
            told.extend(args)
            return Committed(2, (1,))

    with store.snapshot() as snapshot:
        tx = Transaction(cast(Any, Ledger()), snapshot)
        tx.get("c", "a")
        tx.get("c", "absent")
        tx.get("c", "b", check=False)
        tx.list("d")
        tx.put("c", "own", b"1")
        tx.get("c", "own")
        tx.delete("c", "b")
        tx.append("e", b"2")
        assert tx.commit(3.0) == Committed(2, (1,))
    checks, writes, given_snapshot, timeout_s = told
    assert [(check.collection, getattr(check, "id", None), check.revision) for check in checks] == [
        ("c", "a", 1),
        ("c", "absent", 0),
        ("d", None, 0),
    ]
    assert writes == [Put("c", "own", b"1"), Delete("c", "b"), Append("e", b"2")]
    assert (given_snapshot, timeout_s) == (snapshot, 3.0)


# Results.


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 3).map(Number) | ANSWERS, max_size=5))
@settings(max_examples=often(200), derandomize=True)
def test_numbers_in_a_result_become_ints_and_stay_so_when_kept(result: dict[str, object]) -> None:
    store = new_store()
    store.commit([], [Append("c", b"")] * 6)

    def work(tx: Transaction) -> dict[str, object]:
        for _ in range(4):
            tx.append("c", b"")
        return dict(result)

    def expected(first: int) -> dict[str, object]:
        return {key: first + value.append if isinstance(value, Number) else value for key, value in result.items()}

    assert transact(store, work) == expected(7)
    assert repr(transact(store, work, key="k")) == repr(expected(11))
    assert repr(transact(store, work, key="k")) == repr(expected(11))


@given(ANSWERS)
@settings(max_examples=often(200), derandomize=True)
def test_any_json_can_be_a_kept_answer(answer: object) -> None:
    store = new_store()

    def work(tx: Transaction) -> object:
        tx.append("c", b"")
        return answer

    for _ in range(2):
        assert repr(transact(store, work, key="k")) == repr(answer)
    assert count(store) == 1


@pytest.mark.parametrize("answer", [{1: "a"}, {None: 1}, {True: 1}, {("a", "b"): 1}], ids=str)
def test_an_answer_whose_keys_are_no_text_is_not_kept(answer: object) -> None:
    """It could not come back as it was."""
    store = new_store()

    def work(tx: Transaction) -> object:
        tx.append("c", b"")
        return answer

    with pytest.raises(errors.InvalidJson):
        transact(store, work, key="k")
    assert count(store) == 0


# Kept answers.


def test_an_answer_is_kept_for_seven_days() -> None:
    store = new_store()
    assert transact(store, append_one, key="k", params=b"1") == 1
    record: Any = kept(store, "k")
    assert record["result"] == 1
    left_s = record["expires_at"] - time.time()
    assert 7 * 24 * 3600 - 60 < left_s <= 7 * 24 * 3600 + 1


def test_an_answer_that_is_over_is_given_anew() -> None:
    """With other params too: who made the key has long forgotten it."""
    store = new_store()
    assert transact(store, append_one, key="k", params=b"1") == 1
    record = kept(store, "k") | {"expires_at": 1, "over_at": 0}
    store.commit([], [Put(*names.to_key(REQUESTS, "k"), jsontext.dumps(record).encode())])
    assert transact(store, append_one, key="k", params=b"2") == 2
    assert transact(store, append_one, key="k", params=b"2") == 2
    with pytest.raises(errors.IdReused):
        transact(store, append_one, key="k", params=b"1")


@pytest.mark.parametrize(
    ("facts", "is_over"),
    [
        ({"expires_at": 1}, False),  # somebody set the wall clock
        ({"over_at": 0}, False),  # the machine has run for longer than the wall clock says
        ({"expires_at": 1, "over_at": 0}, True),
        ({"expires_at": 1, "era": "the boot before"}, True),
        ({"over_at": 0, "era": "the boot before"}, False),
    ],
)
def test_an_answer_is_over_when_both_clocks_say_so(facts: dict[str, object], is_over: bool) -> None:
    """The wall clock alone counts after a restart, when the store's has begun anew."""
    store = new_store()
    transact(store, append_one, key="k")
    record = kept(store, "k") | facts
    store.commit([], [Put(*names.to_key(REQUESTS, "k"), jsontext.dumps(record).encode())])
    assert transact(store, append_one, key="k") == (2 if is_over else 1)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("memory:", "{random}"),
        ("memory:", "{time:012x}-{random}"),
        ("memory:", "{sender}-{time:012x}"),
        ("sqlite:{}/store", "{random}"),
        ("files:{}/store", "{random}"),
    ],
)
def test_answers_that_are_over_are_removed_by_those_that_follow(
    url: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day takes 25 requests here: 175 are kept for 7 days, and somewhat more than twice as many lie there at most."""
    source = random.Random(7)
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s)
    monkeypatch.setattr(platform, "boot_seconds", lambda: now_s)
    with closing(open_store(url.format(tmp_path))) as store:
        most = 0
        for n in range(1000):
            now_s += 24 * 3600 / 25
            name = key.format(random=source.randbytes(8).hex(), time=n, sender="ab"[n % 2])
            assert transact(store, append_one, key=name) == n + 1
            if n % 50 == 0:
                with store.snapshot() as snapshot:
                    most = max(most, len(snapshot.list(REQUESTS, limit=MAX_PAGE)))
        assert 175 <= most < 500
        assert transact(store, append_one, key=name) == 1000


def test_a_full_work_finds_room_for_its_answer_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is over is removed as far as a commit has room."""
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s)
    monkeypatch.setattr(platform, "boot_seconds", lambda: now_s)
    store = new_store()
    for n in range(100):
        transact(store, append_one, key=f"k{n}")
    now_s += 8 * 24 * 3600

    def work(tx: Transaction) -> None:
        for n in range(98):
            tx.get("d", f"i{n}")
        for n in range(transaction.MOST_WRITES):
            tx.put("d", f"i{n}", b"")

    for n in range(50):
        transact(store, work, key=f"full{n}")


def test_keys_that_people_would_mix_up_are_different() -> None:
    store = new_store()
    assert [transact(store, append_one, key=key) for key in ("k", "K", " k", "k ", "k/", "")] == [1, 2, 3, 4, 5, 6]


# Tries.


def test_a_commit_of_unknown_outcome_is_asked_about_with_its_key() -> None:
    """Lost: it happened, and its answer is found. Never: it did not, and is done now."""
    for fault in ("lost", "never"):
        store = new_store()
        assert transact(faulty(store, plan(commit=[fault])), append_one, key="k") == 1
        assert count(store) == 1


def test_a_commit_of_unknown_outcome_is_told_without_a_key() -> None:
    store = new_store()
    with pytest.raises(errors.OutcomeUnknown):
        transact(faulty(store, plan(commit=["never"])), append_one)
    assert count(store) == 0


def test_a_second_unknown_outcome_is_told() -> None:
    store = new_store()
    with pytest.raises(errors.OutcomeUnknown):
        transact(faulty(store, plan(commit=["never", "never"])), append_one, key="k")
    assert transact(store, append_one, key="k") == 1


@pytest.mark.parametrize(
    "error",
    [
        errors.EngineUnreachable(path="p", reason="r"),
        errors.EngineRefused(path="p", reason="r"),
        errors.EngineTooOld(path="p", found="f", needed="n"),
        errors.EngineUnfit(path="p", reason="r", cure="c"),
        errors.StorageFull(path="p"),
    ],
    ids=lambda error: error.code,
)
def test_a_server_that_is_gone_after_an_unknown_outcome_leaves_it_unknown(error: errors.AccordError) -> None:
    """Such an error by itself would promise that nothing was changed."""
    store = faulty(new_store(), plan(commit=["never"]))
    asked = 0

    def work(tx: Transaction) -> Number:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise error
        return append_one(tx)

    with pytest.raises(errors.OutcomeUnknown):
        transact(store, work, key="k")


@pytest.mark.parametrize(
    "faults",
    [
        {"commit": ["conflict"] * 3},
        {"read": ["moved"] * 3},
        {"read": ["", "moved"], "commit": ["conflict", "conflict"]},
    ],
    ids=str,
)
def test_conflicts_and_moved_snapshots_are_tried_again(faults: dict[str, list[str]]) -> None:
    store = new_store()
    runs = []

    def work(tx: Transaction) -> Number:
        runs.append(1)
        tx.get("c", "a")
        tx.get("c", "b")
        return tx.append("c", b"")

    assert transact(faulty(store, plan(**faults)), work) == 1
    assert len(runs) == 4
    assert count(store) == 1


@pytest.mark.parametrize("fault", ["full", "failing"])
def test_other_faults_are_not_tried_again(fault: str) -> None:
    store = new_store()
    with pytest.raises((errors.StorageFull, errors.StorageFailing)):
        transact(faulty(store, plan(commit=[fault])), append_one, key="k")
    assert count(store) == 0


def test_time_that_is_over_allows_one_try() -> None:
    store = new_store()
    assert transact(store, append_one, timeout_s=0.0) == 1
    with pytest.raises(errors.Contention) as told:
        transact(faulty(store, plan(commit=["conflict"])), append_one, timeout_s=0.0)
    assert told.value.details["tries"] == 1
    assert count(store) == 1


@given(st.integers(1, 10_000))
@settings(max_examples=often(100), derandomize=True)
def test_pauses_grow_to_a_tenth_of_a_second(tries: int) -> None:
    longest_s = min(0.001 * 2**tries, 0.1) if tries < 100 else 0.1
    pauses = [transaction._pause_s(tries) for _ in range(20)]
    assert all(0 <= pause_s <= longest_s for pause_s in pauses)
    assert len(set(pauses)) > 1
