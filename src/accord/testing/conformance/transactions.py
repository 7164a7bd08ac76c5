"""`transact` on this engine: works run as if alone, once for each request key."""

from collections.abc import Callable
from functools import partial

from accord import errors
from accord.store.contract import Delete, Item, Number, Put, number_id
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from accord.store.wrap.faulty import faulty, plan
from accord.testing.conformance.tools import (
    Opener,
    append,
    at_once,
    contents,
    opened,
    put,
    raises,
    value_of,
    values_of,
)


def check_a_work_sees_what_it_wrote(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.commit([], [Put("c", id, b"old") for id in ("a", "b", "c", "d")])

        def work(tx: Transaction) -> None:
            tx.put("c", "a", b"new")
            tx.delete("c", "b")
            tx.put("c", "bb", b"new")
            tx.put("c", "z", b"soon gone")
            tx.delete("c", "z")
            tx.append("c", b"has no number yet")
            assert tx.get("c", "a") == Item("a", b"new", 0)
            assert tx.get("c", "b") is None
            assert tx.get("c", "z") is None
            assert [item.id for item in tx.list("c")] == ["a", "bb", "c", "d"]
            assert [item.id for item in tx.list("c", after="a", limit=2)] == ["bb", "c"]
            assert [item.id for item in tx.list("c", limit=3, reverse=True)] == ["d", "c", "bb"]
            assert [item.value for item in tx.list("c", limit=2)] == [b"new", b"new"]
            assert tx.head("c").last == 0
            assert list(tx.collections()) == ["c"]

        transact(store, work)
        with store.snapshot() as snapshot:
            assert [item.id for item in snapshot.list("c")] == [number_id(1), "a", "bb", "c", "d"]


def check_a_work_that_raises_leaves_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c")
        before = contents(store)

        def work(tx: Transaction) -> None:
            tx.put("c", "a", b"")
            tx.delete("c", number_id(1))
            tx.append("c", b"")
            raise KeyError("on purpose")

        for key in (None, "key"):
            with raises(KeyError):
                transact(store, work, key=key)
        assert contents(store) == before
        assert transact(store, lambda tx: tx.append("c", b""), key="key") == 2


def check_a_work_that_writes_nothing_commits_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c", b"1")
        before = contents(store)
        for key in (None, "key"):
            assert transact(store, lambda tx: [item.value for item in tx.list("c")], key=key) == [b"1"]
        assert contents(store) == before


def check_numbers_come_back_in_results(open_store: Opener) -> None:
    with opened(open_store) as store:
        assert transact(store, lambda tx: tx.append("c", b"")) == 1

        def work(tx: Transaction) -> dict[str, object]:
            first, second = tx.append("c", b""), tx.append("d", b"")
            third = tx.append("c", (b"after ", first))
            tx.put("place", first, (third,))
            return {"second": second, "third": third, "first": first, "other": [1]}

        assert transact(store, work) == {"first": 2, "second": 1, "third": 3, "other": [1]}
        assert value_of(store, "c", number_id(3)) == b"after 2"
        assert value_of(store, "place", number_id(2)) == b"3"


def check_counting_stores_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c", b"1")

        def work(tx: Transaction) -> list[Number]:
            return [tx.count("c"), tx.append("c", b"3"), tx.count("c"), tx.count("new")]

        assert transact(store, work) == [2, 3, 4, 1]
    with opened(open_store) as store:
        assert transact(store, lambda tx: (tx.head("c").last, tx.head("new").last)) == (4, 1)
        assert (values_of(store, "c"), values_of(store, "new")) == ([b"1", b"3"], [])
        assert append(store, "c").numbers == (5,)


def check_counts_do_not_disturb_each_other(open_store: Opener) -> None:
    with opened(open_store) as store:
        runs = []

        def work(tx: Transaction) -> Number:
            runs.append(tx.head("c", check=False))
            if len(runs) == 1:
                transact(store, lambda other: other.count("c"))
            return tx.count("c")

        assert transact(store, work) == 2
        assert len(runs) == 1


def check_a_work_overtaken_by_others_runs_again(open_store: Opener) -> None:
    reads: dict[str, Callable[[Transaction], object]] = {
        "get": lambda tx: tx.get("c", "a"),
        "get of nothing": lambda tx: tx.get("c", "new"),
        "list": lambda tx: tx.list("c"),
        "head": lambda tx: tx.head("c"),
    }
    others = [Put("c", "a", b"other"), Put("c", "new", b"other")]
    for name, read in reads.items():
        with opened(open_store) as store, opened(open_store) as other:
            store.commit([], [Put("c", "a", b"old"), Delete("c", "new")])
            runs = _runs_when_overtaken(store, read, partial(other.commit, [], others))
            assert runs == 2, name


def check_an_unchecked_read_may_be_overtaken(open_store: Opener) -> None:
    reads: dict[str, Callable[[Transaction], object]] = {
        "get": lambda tx: tx.get("c", "a", check=False),
        "list": lambda tx: tx.list("c", check=False),
        "head": lambda tx: tx.head("c", check=False),
        "collections": lambda tx: tx.collections(),
        "another item": lambda tx: tx.get("c", "b"),
    }
    for name, read in reads.items():
        with opened(open_store) as store, opened(open_store) as other:
            store.commit([], [Put("c", "a", b"old"), Put("c", "b", b"old")])
            runs = _runs_when_overtaken(store, read, partial(put, other, "c", "a", b"other"))
            assert runs == 1, name


def check_a_key_has_one_effect_and_one_answer(open_store: Opener) -> None:
    runs: list[object] = []
    with opened(open_store) as store, opened(open_store) as other:
        answers: list[object] = [None, True, 7, "text ü \n", ["a", {"b": None}], {}, {"a": {"b": 1.5}}, "", 0, False]
        for number, answer in enumerate(answers):

            def work(tx: Transaction, answer: object = answer) -> object:
                runs.append(answer)
                tx.append("c", b"")
                return answer

            for asked in (store, store, other):
                found = transact(asked, work, key=f"k{number}", params=b"p")
                assert (type(found), found) == (type(answer), answer)
        assert runs == answers
        assert len(values_of(store, "c")) == len(answers)
    with opened(open_store) as store:
        before = contents(store)
        assert transact(store, work, key="k4", params=b"p") == answers[4]
        assert contents(store) == before


def check_numbers_come_back_in_a_kept_answer(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c")

        def work(tx: Transaction) -> dict[str, object]:
            return {"a": tx.append("c", b""), "b": "text", "c": tx.append("d", b"")}

        for _ in range(2):
            assert transact(store, lambda tx: tx.append("c", b""), key="plain") == 2
            assert transact(store, work, key="dict") == {"a": 3, "b": "text", "c": 1}


def check_a_key_with_other_params_is_refused(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        transact(store, lambda tx: tx.append("c", b""), key="k", params=b"one")
        before = contents(store)
        for params in (b"two", b"", b"one "):
            with raises(errors.IdReused):
                transact(other, lambda tx: tx.append("c", b""), key="k", params=params)
        assert contents(store) == before
        assert transact(other, lambda tx: tx.append("c", b""), key="k2", params=b"two") == 2


def check_a_key_may_be_any_name(open_store: Opener) -> None:
    with opened(open_store) as store:
        keys = ["", "K", "k", "a/b", "../x", "日本", "0000000000000001", "x" * 300]
        for _ in range(2):
            assert [transact(store, lambda tx: tx.append("c", b""), key=key) for key in keys] == list(range(1, 9))


def check_one_key_from_many_threads_has_one_effect(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        for number in range(5):

            def ask(handle: Store, key: str = f"k{number}") -> object:
                return transact(handle, lambda tx: {"number": tx.append("c", b"")}, key=key)

            handles = [store, other] * 3
            answers = at_once(*[partial(ask, handle) for handle in handles])
            assert answers == [{"number": number + 1}] * 6
        assert len(values_of(store, "c")) == 5


def check_an_answer_that_is_no_json_commits_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c")
        before = contents(store)
        for answer in (b"bytes", float("nan"), {"a": float("inf")}, object(), {"a": {1, 2}}, "\ud800"):

            def work(tx: Transaction, answer: object = answer) -> object:
                tx.append("c", b"")
                return answer

            with raises(errors.InvalidJson, f"by {answer!r}"):
                transact(store, work, key="k")
        assert contents(store) == before


def check_a_work_over_the_limits_commits_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        append(store, "c")
        before = contents(store)

        def work(tx: Transaction) -> None:
            for number in range(50):
                tx.put("c", f"i{number}", b"")

        with raises(errors.CommitTooLarge):
            transact(store, work, key="the answer is one more")
        assert contents(store) == before
        transact(store, work)
        assert len(values_of(store, "c")) == 51


def check_an_unknown_outcome_stays_unknown_until_it_is_told(open_store: Opener) -> None:
    """What the store says of the next try, such as that nothing was changed, is not true of the one before."""
    misfortunes = [
        plan(commit=["lost"], snapshot=["", "failing"]),
        plan(commit=["lost"], read=["", "failing"]),
        plan(commit=["never", "full"]),
        plan(commit=["never", "failing"]),
    ]
    for number, misfortune in enumerate(misfortunes):
        with opened(open_store) as store, raises(errors.OutcomeUnknown, f"with misfortune {number}"):
            transact(faulty(store, misfortune), lambda tx: tx.append("c", b""), key=f"key {number}")
    with opened(open_store) as store:
        with raises(errors.OutcomeUnknown):
            transact(faulty(store, plan(commit=["lost"])), lambda tx: tx.append("d", b""), key="late", timeout_s=0.0)
        assert transact(store, lambda tx: tx.append("d", b""), key="late") == 1
        assert len(values_of(store, "d")) == 1


def _runs_when_overtaken(store: Store, read: Callable[[Transaction], object], overtake: Callable[[], object]) -> int:
    """How often a work runs that reads, and is overtaken by another commit before its own."""
    runs: list[int] = []

    def work(tx: Transaction) -> None:
        read(tx)
        if not runs:
            overtake()
        runs.append(1)
        tx.put("result", "of-reading", b"")

    transact(store, work)
    return len(runs)
