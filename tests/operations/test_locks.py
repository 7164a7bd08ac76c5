"""Locks: who gets them, when, with which number; and who may give them back."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord import errors, platform
from accord.operations import call
from accord.operations.context import Context, local
from accord.services import locks
from accord.store.contract import Put
from accord.store.open import open_store
from accord.store.wrap.faulty import chance, faulty, plan, work_twice
from tests.operations.people import insist, refusal
from tests.operations.ways import Python, Refused, Way

pytestmark = pytest.mark.covers("S6")

DAY_S = 24 * 3600.0


def acquire(way: Way, owner: str, name: str = "build", wait: float = 0, **more: Any) -> int:
    """The number it was granted with."""
    return int(way.do("lock.acquire", name=name, owner=owner, wait=wait, **more)["token"])


def release(way: Way, owner: str, token: int, name: str = "build") -> None:
    assert way.do("lock.release", name=name, owner=owner, token=token) == {"name": name, "released": True}


def in_threads(works: "list[Callable[[], object]]") -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def waiting(way: Way, name: str = "build") -> list[str]:
    return [who["owner"] for lock in way.do("lock.list")["locks"] if lock["name"] == name for who in lock["waiting"]]


def until_waiting(way: Way, count: int) -> None:
    deadline = time.monotonic() + 20
    while len(waiting(way)) < count:
        assert time.monotonic() < deadline, "nobody stands in line"
        time.sleep(0.01)


def test_a_lock_from_one_to_the_next(way: Way) -> None:
    first = way.do("lock.acquire", name="build", owner="ann", ttl=60, wait=0)
    assert {**first, "expires_at": ""} == {"name": "build", "owner": "ann", "token": 1, "expires_at": ""}
    held = refusal("LOCK_HELD", acquire, way, "ben")
    assert held.details["owner"] == "ann"
    assert 50 < held.details["left_s"] <= 60
    assert held.details["ahead"] == 0
    [shown] = way.do("lock.list")["locks"]
    assert (shown["name"], shown["owner"], shown["token"], shown["waiting"]) == ("build", "ann", 1, [])
    release(way, "ann", 1)
    assert way.do("lock.list") == {"locks": []}
    assert acquire(way, "ben") == 2
    assert acquire(way, "ann", "another lock/ü") == 1


def test_only_the_owner_with_the_number_renews_and_releases(way: Way) -> None:
    token = acquire(way, "ann")
    for word in ("renew", "release"):
        for owner, number in (("ben", token), ("ann", token + 1)):
            refusal("LOCK_LOST", way.do, f"lock.{word}", name="build", owner=owner, token=number)
    renewed = way.do("lock.renew", name="build", owner="ann", token=token, ttl=500)
    assert refusal("LOCK_HELD", acquire, way, "ben").details["left_s"] > 400
    assert renewed["token"] == token
    release(way, "ann", token)
    refusal("LOCK_LOST", way.do, "lock.release", name="build", owner="ann", token=token)
    refusal("LOCK_LOST", way.do, "lock.renew", name="build", owner="ann", token=token)
    assert acquire(way, "ann") == token + 1
    refusal("LOCK_LOST", way.do, "lock.release", name="build", owner="ann", token=token)


def test_one_who_waits_gets_it_when_it_is_released(way: Way) -> None:
    """With the usual time to wait, which nobody need name."""
    token = acquire(way, "ann")
    other = way.acting("")  # a connection of its own
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(other.do("lock.acquire", name="build", owner="ben")))
    thread.start()
    until_waiting(way, 1)
    release(way, "ann", token)
    released = time.monotonic()
    thread.join()
    assert time.monotonic() - released < 5
    assert [one["token"] for one in found] == [token + 1]


def test_a_wait_ends_in_time_and_says_what_it_waited_for(way: Way) -> None:
    acquire(way, "ann")
    started = time.monotonic()
    held = refusal("LOCK_HELD", acquire, way, "ben", wait=0.3)
    assert 0.3 <= time.monotonic() - started < 5
    assert 0.3 <= held.details["waited_s"] < 5
    assert waiting(way) == []


def test_a_lease_that_is_over_is_the_next_ones(way: Way) -> None:
    token = acquire(way, "ann", ttl=0.2)
    assert acquire(way, "ben", wait=20) == token + 1
    assert "ben" in refusal("LOCK_LOST", way.do, "lock.renew", name="build", owner="ann", token=token).text
    refusal("LOCK_LOST", way.do, "lock.release", name="build", owner="ann", token=token)


def test_a_lease_that_is_over_and_that_nobody_took_can_be_renewed(here: Python) -> None:
    token = acquire(here, "ann", ttl=0.01)
    time.sleep(0.02)
    here.do("doc.write", name="plan", text="late", fence=f"build:{token}")
    here.do("lock.renew", name="build", owner="ann", token=token)
    refusal("LOCK_HELD", acquire, here, "ben")


def test_a_write_with_an_old_number_is_refused(way: Way) -> None:
    old = acquire(way, "ann", ttl=0.1)
    way.do("doc.write", name="plan", text="ann's", fence=f"build:{old}")
    new = acquire(way, "ben", wait=20)
    assert (
        f"{new} is the last"
        in refusal("FENCED", way.do, "doc.write", name="plan", text="ann's again", fence=f"build:{old}").text
    )
    way.do("doc.write", name="plan", text="ben's", fence=f"build:{new}")
    release(way, "ben", new)
    refusal("FENCED", way.do, "doc.write", name="plan", text="late", fence=f"build:{new}")
    refusal("FENCED", way.do, "doc.write", name="plan", text="never", fence="nothing:1")
    assert way.do("doc.read", name="plan")["text"] == "ben's"


@pytest.mark.parametrize(
    "wrong",
    [{"ttl": 0}, {"ttl": -1}, {"ttl": "x"}, {"owner": "not a label"}, {"owner": ""}, {"wait": "nan"}],
    ids=repr,
)
def test_what_is_refused(way: Way, wrong: dict[str, Any]) -> None:
    params: dict[str, Any] = {"name": "build", "owner": "ann", "wait": 0, **wrong}
    refusal("USAGE", way.do, "lock.acquire", **params)
    assert way.do("lock.list") == {"locks": []}


def test_numbers_grow_for_ever(memory: Python) -> None:
    """Past what any counter that a person sets may be."""
    name = "build"
    acquire(memory, "ann")
    with open_store(memory.engine).snapshot() as snapshot:
        item = snapshot.get(locks.LOCKS, name)
    assert item is not None
    open_store(memory.engine).commit(
        (), [Put(locks.LOCKS, name, item.value.replace(b'"token":1', b'"token":5000000000'))]
    )
    assert memory.do("lock.renew", name=name, owner="ann", token=5_000_000_000)["token"] == 5_000_000_000
    memory.do("doc.write", name="plan", text="x", fence="build:5000000000")
    release(memory, "ann", 5_000_000_000)
    assert acquire(memory, "ben") == 5_000_000_001


def test_many_who_wait_get_it_in_the_order_in_which_they_came(here: Python) -> None:
    token = acquire(here, "first")
    order: list[tuple[int, str]] = []

    def want(owner: str) -> None:
        number = acquire(here, owner, wait=30)
        order.append((number, owner))
        release(here, owner, number)

    names = [f"n{n:02}" for n in range(12)]
    threads = []
    for n, name in enumerate(names):
        threads.append(threading.Thread(target=want, args=[name]))
        threads[-1].start()
        until_waiting(here, n + 1)
    assert waiting(here) == names
    assert refusal("LOCK_HELD", acquire, here, "late").details["ahead"] == len(names)
    release(here, "first", token)
    for thread in threads:
        thread.join()
    assert sorted(order) == [(token + 1 + n, name) for n, name in enumerate(names)]


def test_how_many_waited_before_one_who_gives_up(memory: Python) -> None:
    acquire(memory, "ann")
    details: dict[str, int] = {}

    def want(owner: str, wait: float) -> None:
        with pytest.raises(Refused) as refused:
            acquire(memory, owner, wait=wait)
        details[owner] = refused.value.details["ahead"]

    middle = threading.Thread(target=want, args=["middle", 0.8])
    before = threading.Thread(target=want, args=["before", 1.2])
    after = threading.Thread(target=want, args=["after", 1.2])
    for n, thread in enumerate([before, middle, after]):
        thread.start()
        until_waiting(memory, n + 1)
    for thread in (before, middle, after):
        thread.join()
    assert details["middle"] == 1


def test_a_halt_ends_a_wait_and_frees_its_place(way: Way) -> None:
    token = acquire(way, "ann")
    other = way.acting("")
    found: list[Refused] = []
    thread = threading.Thread(target=lambda: found.append(refusal("HALTED", acquire, other, "ben", wait=30)))
    thread.start()
    until_waiting(way, 1)
    way.do("halt.set", reason="stop")
    thread.join()
    assert len(found) == 1
    assert waiting(way) == []
    refusal("HALTED", acquire, way, "cal")
    way.do("lock.renew", name="build", owner="ann", token=token)  # what is held is kept, and given back
    release(way, "ann", token)
    assert way.do("lock.list") == {"locks": []}


@pytest.mark.parametrize("jump_s", [-DAY_S, DAY_S], ids=["back", "ahead"])
def test_a_jump_of_the_wall_clock_ends_no_lease(steady: Python, jump_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    token = acquire(steady, "ann", ttl=60)
    real_time, real_clock = time.time, time.clock_gettime
    monkeypatch.setattr(time, "time", lambda: real_time() + jump_s)
    monkeypatch.setattr(
        time, "clock_gettime", lambda clock: real_clock(clock) + jump_s * (clock == time.CLOCK_REALTIME)
    )
    assert 50 < refusal("LOCK_HELD", acquire, steady, "ben").details["left_s"] <= 60
    steady.do("lock.renew", name="build", owner="ann", token=token)
    release(steady, "ann", token)
    short = acquire(steady, "ann", ttl=0.2)
    assert acquire(steady, "ben", wait=20) == short + 1


def test_another_boot_ends_every_lease(booted: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    token = acquire(booted, "ann", ttl=DAY_S)
    monkeypatch.setattr(platform, "boot_id", lambda: "the next boot")
    assert acquire(booted, "ben") == token + 1


# The hostile memory engine: works run twice, commits meet conflicts or an unknown end.


def hostile(tmp_path: Path, fate: Any) -> "Callable[[str], Context]":
    """Gives contexts of callers who share one such store; each with the name of their request."""
    store = faulty(open_store("memory:"), fate)
    store.patience_s = 30.0

    def context(request: str) -> Context:
        found = local({"HOME": str(tmp_path)}, str(tmp_path), request=request)
        found._opened.append(store)
        return found

    return context


@pytest.mark.parametrize(
    "fate",
    [work_twice(), chance(1, conflict=0.3, moved=0.05), chance(2, lost=0.1, never=0.1, conflict=0.2, late=0.1)],
    ids=["twice", "conflicts", "unknown"],
)
def test_works_that_run_twice_grant_once(tmp_path: Path, fate: Any) -> None:
    """Every request has a name, so that asking again tells what came of it."""
    context = hostile(tmp_path, fate)
    granted: list[tuple[int, int, int]] = []  # number, asked, told
    inside: list[str] = []

    def worker(owner: str) -> None:
        for n in range(12):
            params: dict[str, Any] = {"name": "build", "owner": owner, "wait": 30}
            token = insist(context(f"{owner}-{n}"), "lock.acquire", params)["token"]
            inside.append(owner)
            assert inside == [owner]
            granted.append((token, n, n))
            inside.remove(owner)
            insist(context(f"{owner}-{n}-end"), "lock.release", {"name": "build", "owner": owner, "token": token})

    in_threads([lambda owner=owner: worker(owner) for owner in ("a", "b", "c")])  # type: ignore[misc]
    assert sorted(token for token, _, _ in granted) == list(range(1, 37))


@pytest.mark.parametrize("fault", ["lost", "never"])
def test_a_grant_that_nobody_was_told_of_is_taken_back(tmp_path: Path, fault: str) -> None:
    context = hostile(tmp_path, plan(commit=[fault]))
    with pytest.raises(errors.OutcomeUnknown):
        call(context(""), "lock.acquire", {"name": "build", "owner": "ann", "wait": 0})
    found = call(context(""), "lock.acquire", {"name": "build", "owner": "ben", "wait": 0})
    assert found["token"] == (2 if fault == "lost" else 1)


def test_a_request_that_is_repeated_gets_the_same_grant(tmp_path: Path) -> None:
    context = hostile(tmp_path, plan(commit=["lost"]))
    params: dict[str, Any] = {"name": "build", "owner": "ann", "wait": 0}
    first = call(context("r1"), "lock.acquire", params)
    assert call(context("r1"), "lock.acquire", params) == first
    assert first["token"] == 1


def test_a_caller_that_is_gone_is_granted_nothing(tmp_path: Path) -> None:
    context = hostile(tmp_path, plan())
    held = call(context(""), "lock.acquire", {"name": "build", "owner": "ann", "wait": 0})
    gone = context("")
    looks = iter([False, False, True])
    gone.is_gone = lambda: next(looks, True)
    timer = threading.Timer(0.2, call, [context(""), "lock.release", {k: held[k] for k in ("name", "owner", "token")}])
    timer.start()
    with pytest.raises(errors.LockHeld):
        call(gone, "lock.acquire", {"name": "build", "owner": "ben", "wait": 30})
    timer.join()
    assert call(context(""), "lock.acquire", {"name": "build", "owner": "cal", "wait": 0})["token"] == 2


def test_a_line_that_is_too_long_is_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "MOST_WAITING", 0)
    way = Python(f"memory:{tmp_path}")
    acquire(way, "ann")
    started = time.monotonic()
    refusal("LOCK_HELD", acquire, way, "ben", wait=30)
    assert time.monotonic() - started < 5


def test_who_waits_for_one_lock_does_not_look_at_every_change_of_others(
    here: Python, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = acquire(here, "ann")
    looks: list[str] = []
    grant = locks.grant

    def counted(tx: Any, name: str, *rest: Any) -> Any:
        looks.append(name)
        return grant(tx, name, *rest)

    monkeypatch.setattr(locks, "grant", counted)
    ben = threading.Thread(target=lambda: acquire(here, "ben", wait=20))
    ben.start()
    until_waiting(here, 1)
    began = time.monotonic()
    for _ in range(60):
        release(here, "cat", acquire(here, "cat", "other"), "other")
    most, found = 10 + (time.monotonic() - began) / 0.5, looks.count("build")
    release(here, "ann", token)
    ben.join(5)
    assert not ben.is_alive()
    assert found < most
