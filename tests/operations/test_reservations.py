"""Reservations: who works on which files, and who is kept out."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from accord.operations import call
from accord.operations.context import local
from accord.store.open import open_store
from accord.store.transaction import MOST_WRITES
from accord.store.wrap.faulty import chance, faulty, work_twice
from tests.operations.people import insist, refusal
from tests.operations.ways import Python, Refused, Way

pytestmark = pytest.mark.covers("S6")

PROJECT = "/srv/project"


def add(way: Way, owner: str, *globs: str, **more: Any) -> dict[str, Any]:
    return way.do("reserve.add", project=PROJECT, owner=owner, globs=list(globs), **more)


def there(way: Way, **params: Any) -> list[tuple[str, str]]:
    return [(one["glob"], one["owner"]) for one in way.do("reserve.list", **params)["reservations"]]


def held(way: Way, *paths: str, **more: Any) -> list[tuple[str, str, str]]:
    found = way.do("reserve.check", project=PROJECT, paths=list(paths), **more)["held"]
    return [(one["path"], one["glob"], one["owner"]) for one in found]


def test_who_overlaps_is_refused_and_told_by_whom(way: Way) -> None:
    made = add(way, "ann", "src/**", "docs/*.md", ttl=600, note="the parser")
    assert made["globs"] == ["src/**", "docs/*.md"]
    assert (made["project"], made["owner"], made["advisory"], made["overlaps"]) == (PROJECT, "ann", False, [])
    refused = refusal("RESERVED", add, way, "ben", "README.md", "src/a.py")
    assert "src/** by ann for another" in refused.text
    assert "the parser" in refused.text
    assert there(way) == [("docs/*.md", "ann"), ("src/**", "ann")]  # all or nothing
    add(way, "ben", "docs/*.txt", "srcs")
    add(way, "ann", "src/a.py")  # one's own never conflict
    assert len(there(way)) == 5


def test_an_advisory_one_is_made_and_tells_of_the_others(way: Way) -> None:
    add(way, "ann", "src")
    made = add(way, "ben", "src/a.py", "docs", advisory=True)
    assert [(one["wanted"], one["glob"], one["owner"]) for one in made["overlaps"]] == [("src/a.py", "src", "ann")]
    # It keeps nobody out.
    made = add(way, "cal", "docs/index.md")
    assert [(one["owner"], one["advisory"]) for one in made["overlaps"]] == [("ben", True)]


def test_what_is_released_is_free(way: Way) -> None:
    add(way, "ann", "a", "b", "c")
    refusal("RESERVATION_NOT_FOUND", way.do, "reserve.release", project=PROJECT, owner="ann", globs=["a", "x"])
    refusal("RESERVATION_NOT_FOUND", way.do, "reserve.release", project=PROJECT, owner="ben", globs=["a"])
    assert len(there(way)) == 3
    assert way.do("reserve.release", project=PROJECT, owner="ann", globs=["./b/"])["released"] == ["b"]
    add(way, "ben", "b")
    released = way.do("reserve.release", project=PROJECT, owner="ann", all=True)["released"]
    assert sorted(released) == ["a", "c"]
    assert way.do("reserve.release", project=PROJECT, owner="ann", all=True)["released"] == []
    assert there(way) == [("b", "ben")]
    refusal("USAGE", way.do, "reserve.release", project=PROJECT, owner="ann")
    refusal("USAGE", way.do, "reserve.release", project=PROJECT, owner="ann", globs=["b"], all=True)


@pytest.mark.parametrize("named", [False, True])
def test_more_are_released_than_one_commit_holds(memory: Python, named: bool) -> None:
    globs = [f"f{number}" for number in range(2 * MOST_WRITES)]  # the last commit has nothing left
    for part in (globs[:MOST_WRITES], globs[MOST_WRITES:]):
        add(memory, "ann", *part)
    which: dict[str, Any] = {"globs": globs} if named else {"all": True}
    refusal("RESERVATION_NOT_FOUND", memory.do, "reserve.release", project=PROJECT, owner="ann", globs=[*globs, "x"])
    assert len(there(memory)) == len(globs)
    asked = [
        call(
            local({"HOME": "/nonexistent"}, home="/nonexistent", engine=memory.engine, request="r1"),
            "reserve.release",
            {"project": PROJECT, "owner": "ann", **which},
        )
        for _ in range(2)
    ]
    assert sorted(asked[0]["released"]) == sorted(globs)
    assert asked[0] == asked[1]
    assert there(memory) == []


def test_it_ends_by_itself_and_is_renewed_by_making_it_again(here: Python) -> None:
    add(here, "ann", "a", "b", ttl=0.2)
    add(here, "ann", "a", ttl=60)
    time.sleep(0.3)
    assert there(here) == [("a", "ann")]
    assert held(here, "a", "b") == [("a", "a", "ann")]
    refusal("RESERVED", add, here, "ben", "a")
    add(here, "ben", "b")
    refusal("RESERVATION_NOT_FOUND", here.do, "reserve.release", project=PROJECT, owner="ann", globs=["b"])


def test_what_is_over_is_removed_in_time(memory: Python) -> None:
    add(memory, "ann", *[f"f{n}" for n in range(40)], ttl=0.01)
    time.sleep(0.02)
    add(memory, "ben", "x")
    with open_store(memory.engine).snapshot() as snapshot:
        [collection] = snapshot.collections("reserve/")
        assert len(snapshot.list(collection, limit=100)) == 1


def test_check_says_who_has_a_file(memory: Python) -> None:
    add(memory, "ann", "src/**/*.py", "[id].tsx")
    add(memory, "ben", "docs", advisory=True)
    assert held(memory, "src/x/y.py", "README.md") == [("src/x/y.py", "src/**/*.py", "ann")]
    assert held(memory, "src/x/y.py", owner="ann") == []
    assert held(memory, "docs/a.md", owner="ann") == [("docs/a.md", "docs", "ben")]
    assert held(memory, "i.tsx") == [("i.tsx", "[id].tsx", "ann")]
    assert held(memory, "[id].tsx", "*.py") == []  # a path is no pattern
    assert held(memory, "src") == [("src", "src/**/*.py", "ann")]  # a folder with something in it


def test_projects_are_apart(way: Way) -> None:
    add(way, "ann", "a")
    way.do("reserve.add", project="/srv/other/../second", owner="ben", globs=["a"])
    assert there(way) == [("a", "ann"), ("a", "ben")]
    assert there(way, project="/srv/second") == [("a", "ben")]
    assert there(way, project="/srv") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"globs": ["../x"]},
        {"globs": ["/etc/passwd"]},
        {"globs": ["a", "x/../../y"]},
        {"globs": []},
        {"globs": ["[z-a]"]},
        {"project": "relative"},
        {"ttl": 0},
        {"note": "x" * 2000},
        {"owner": "no label"},
    ],
    ids=repr,
)
def test_what_is_refused(here: Python, wrong: dict[str, Any]) -> None:
    refusal("USAGE", here.do, "reserve.add", **{"project": PROJECT, "owner": "ann", "globs": ["a"], **wrong})
    assert there(here) == []


def test_more_than_one_commit_holds(memory: Python) -> None:
    refusal("COMMIT_TOO_LARGE", add, memory, "ann", *[f"f{n}" for n in range(MOST_WRITES + 1)])
    for tens in range(6):
        add(memory, "ann", *[f"f{tens}{n}" for n in range(10)])
    while memory.do("reserve.release", project=PROJECT, owner="ann", all=True)["released"]:
        pass
    assert there(memory) == []


def test_a_halt_stops_reserving_and_not_releasing(way: Way) -> None:
    add(way, "ann", "a")
    way.do("halt.set", reason="stop")
    refusal("HALTED", add, way, "ann", "b")
    assert there(way) == [("a", "ann")]
    assert held(way, "b") == []
    way.do("reserve.release", project=PROJECT, owner="ann", all=True)


def test_of_many_who_want_the_same_one_gets_it(here: Python) -> None:
    """Each with another glob, so that only what they overlap in is the same."""
    globs = [f"{'*' * (n % 2)}src/x{'?' * (n % 3)}*" if n % 2 else f"src/x{'?' * (n % 3)}*" for n in range(8)]
    told: list[str] = []
    assert there(here) == []

    def want(n: int) -> None:
        try:
            add(here, f"n{n}", globs[n])
            told.append("ok")
        except Refused as error:
            told.append(error.code)

    threads = [threading.Thread(target=want, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["RESERVED"] * 7 + ["ok"]


@pytest.mark.parametrize("fate", [work_twice(), chance(3, conflict=0.3, lost=0.1, never=0.1)], ids=["twice", "unknown"])
def test_on_a_hostile_store(tmp_path: Path, fate: Any) -> None:
    store = faulty(open_store("memory:"), fate)
    store.patience_s = 30.0
    for n in range(20):
        context = local({"HOME": str(tmp_path)}, str(tmp_path), request=f"r{n}")
        context._opened.append(store)
        params: dict[str, Any] = {"project": PROJECT, "owner": "ann", "globs": [f"f{n}"]}
        insist(context, "reserve.add", params)
    context = local({"HOME": str(tmp_path)}, str(tmp_path))
    context._opened.append(store)
    found = call(context, "reserve.list", {})["reservations"]
    assert sorted(one["glob"] for one in found) == sorted(f"f{n}" for n in range(20))
