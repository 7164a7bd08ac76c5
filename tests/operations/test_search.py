"""Searching: the same on every engine, whatever became of the index, whatever is asked."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.often import often
from tests.operations.people import refusal, register, send
from tests.operations.ways import CommandLine, Python, Way

MESSAGES = {
    "m1": "the quick brown fox",
    "m2": "a lazy dog, and a quick one",
    "m3": "naïve café; Straße",
    "m4": "error_code: DISK-FULL at /var/log/x.txt",
    "m5": "AND OR NOT NEAR",
}

HOSTILE = ["", " ", '"', '"""', "*", "quick*", "AND", "NOT", "NEAR(z b", "z AND", "body:x", "^z", "-z", "(", "{z}:"]
HOSTILE += ["'", ";", "\\", "%", "_", "\0", "\u200b", "🐝", "z+b", "quick !!!", "z " * 5000, "x" * 50_000]


def found(way: Way, query: str, **more: int) -> list[str]:
    return [message["message_id"] for message in way.do("mail.search", query=query, **more)["messages"]]


def fill(way: Way) -> None:
    register(way, "ann", "ben")
    for id, message in MESSAGES.items():
        send(way, "ann", "ben", message, id=id)


@pytest.mark.covers("T5.3")
def test_all_words_must_be_there(way: Way) -> None:
    fill(way)
    for query, ids in {
        "quick": {"m1", "m2"},
        "QUICK dog": {"m2"},
        "fox dog": set(),
        "qui": {"m1", "m2"},  # the start of the last word is enough
        "qui dog": set(),
        "cafe": {"m3"},
        "CAFÉ naive": {"m3"},
        "disk-full": {"m4"},
        "/var/log": {"m4"},
        "and": {"m2", "m5"},
        "ann": set(MESSAGES),  # who sent it
    }.items():
        assert set(found(way, query)) == ids, query
    assert len(found(way, "ann", limit=2)) == 2


@pytest.mark.covers("T5.3")
def test_new_messages_are_found(way: Way) -> None:
    fill(way)
    assert found(way, "walrus") == []
    send(way, "ann", "ben", "a walrus", id="w1")
    assert found(way, "walrus") == ["w1"]
    send(way, "ben", ["ann", "ben"], "another walrus", id="w2")
    assert set(found(way, "walrus")) == {"w1", "w2"}


@pytest.mark.covers("T5.3")
@pytest.mark.parametrize("harm", ["file gone", "not a database", "empty", "cut short", "a page overwritten"])
def test_an_index_that_is_lost_is_made_anew(memory: Python, user_home: Path, harm: str) -> None:
    fill(memory)
    for n in range(200):
        send(memory, "ann", "ben", f"filler {n} " + "words " * 20)
    assert set(found(memory, "quick")) == {"m1", "m2"}
    _harm(user_home / "accord" / "cache" / "search.db", harm)
    send(memory, "ann", "ben", "quick again", id="m9")
    assert set(found(memory, "quick")) == {"m1", "m2", "m9"}


@pytest.mark.covers("T5.3")
def test_without_its_cache_a_home_finds_the_same(way: Way, user_home: Path) -> None:
    fill(way)
    assert set(found(way, "quick")) == {"m1", "m2"}
    shutil.rmtree(user_home / "accord" / "cache")
    assert set(found(way, "quick")) == {"m1", "m2"}


@pytest.mark.covers("T5.3")
def test_another_store_in_the_same_home(here: Python, tmp_path: Path) -> None:
    fill(here)
    assert len(found(here, "quick")) == 2
    other = Python(f"memory:{tmp_path}/other")
    other.do("agent.register", identity="cal", force=True)
    send(other, "cal", "cal", "a quick answer", id="o1")
    assert found(other, "quick") == ["o1"]
    assert set(found(here, "quick")) == {"m1", "m2"}


@pytest.mark.covers("T5.3")
def test_hostile_queries(here: Python) -> None:
    register(here, "ann")
    send(here, "ann", "ann", "quick", id="q")
    for query in HOSTILE:
        assert found(here, query) == (["q"] if query.startswith("quick") else []), query[:20]


@pytest.mark.covers("T5.3")
def test_hostile_queries_as_commands(shell: CommandLine) -> None:
    register(shell, "ann")
    send(shell, "ann", "ann", "quick", id="q")
    for query in ('"', "NEAR(z", "-z", "--json", "quick*"):
        assert found(shell, query) == (["q"] if query.startswith("quick") else [])
    refusal("INVALID_ENCODING", found, shell, b"quick \xff".decode(errors="surrogateescape"))


@pytest.mark.covers("T5.3")
@settings(max_examples=often(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_any_query_is_answered(memory: Python, query: str) -> None:
    memory.do("agent.register", identity="ann", force=True)
    assert isinstance(found(memory, query), list)


@pytest.mark.covers("T5.3")
def test_the_last_words_of_a_message_are_found_by_themselves(memory: Python) -> None:
    """Each word of what was sent finds it, whatever stands around the word."""
    fill(memory)
    for id, message in MESSAGES.items():
        for word in message.split():
            assert id in found(memory, word), word


def _harm(index: Path, harm: str) -> None:
    for leftover in ("-wal", "-shm"):
        Path(f"{index}{leftover}").unlink(missing_ok=True)
    if harm == "file gone":
        index.unlink()
    elif harm == "not a database":
        index.write_bytes(b"what is this" * 1000)
    elif harm == "empty":
        index.write_bytes(b"")
    elif harm == "cut short":
        index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])
    else:
        data = bytearray(index.read_bytes())
        data[4096:] = b"\xa5" * (len(data) - 4096)
        index.write_bytes(data)
