"""The same question is answered with the same words, whichever way it came in."""

from typing import Any

import pytest

from tests.operations.people import register, send
from tests.operations.ways import CommandLine, Python, Refused, Way

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("agent.register", {"identity": "ann"}),
    ("agent.register", {"identity": "not a name"}),
    ("agent.register", {"identity": "human"}),
    ("agent.register", {"identity": "zoe", "resume": True}),
    ("agent.unregister", {"identity": "zoe"}),
    ("mail.send", {"sender": "ann", "to": ["bem", "zoe"], "message": "x"}),
    ("mail.send", {"sender": "ann", "to": ["gone"], "message": "x"}),
    ("mail.send", {"sender": "zoe", "to": ["ann"], "message": "x"}),
    ("mail.send", {"sender": "ann", "to": ["ben"], "message": " \n"}),
    ("mail.send", {"sender": "ann", "to": ["ben"], "message": "other", "id": "m1"}),
    ("mail.send", {"sender": "ann", "to": ["ben"], "message": "x", "id": "not an id"}),
    ("mail.send", {"sender": "ann", "to": ["ben"], "message": "x", "reply_to": "nothing"}),
    ("mail.send", {"sender": "ann", "channel": "nothing", "message": "x"}),
    ("mail.send", {"sender": "ann", "to": ["b\u202e", "\x1b"], "message": "x"}),
    ("mail.ack", {"identity": "ben", "ids": ["m1", "m2", "m3"]}),
    ("mail.check", {"identity": "zoe", "peek": True}),
    ("channel.join", {"channel": "talk", "identity": "zoe"}),
    ("channel.leave", {"channel": "nothing", "identity": "ann"}),
    ("halt.engage", {"identities": ["ann", "zoe"]}),
    ("doc.read", {"name": "plam"}),
    ("doc.read", {"name": "plan", "revision": 9}),
    ("doc.write", {"name": "plan", "text": "mine", "base": 1}),
    ("doc.write", {"name": "../plan", "text": "mine"}),
    ("doc.write", {"name": "plan", "text": "mine", "fence": "build:1"}),
    ("doc.rm", {"name": "nothing"}),
    ("doc.restore", {"name": "nothing"}),
]
ANSWERED: list[tuple[str, dict[str, Any]]] = [
    ("mail.check", {"identity": "ben", "peek": True}),
    ("mail.check", {"identity": "human", "peek": True, "limit": 1}),
    ("mail.sent", {"sender": "ann"}),
    ("mail.thread", {"conversation": "m1"}),
    ("mail.search", {"query": "words"}),
    ("channel.list", {}),
    ("agent.discover", {}),
    ("doc.read", {"name": "plan"}),
    ("doc.history", {"name": "plan"}),
    ("doc.list", {"prefix": "p"}),
    ("doc.write", {"name": "plan", "text": "two \x1b[31m é 😀", "base": 2}),
    ("mail.send", {"sender": "ann", "to": ["ben"], "message": "some words \x1b[31m é 😀", "id": "m1"}),
    ("mail.ack", {"identity": "ben", "ids": ["m1"]}),
    ("halt.lift", {}),
    ("halt.engage", {"all": True}),
]


def fill(way: Way) -> Python:
    """The same store, in this process."""
    here = Python(way.engine)
    register(here, "ann", "ben", "gone")
    here.do("agent.unregister", identity="gone")
    here.do("channel.join", channel="talk", identity="ann")
    send(here, "ann", "ben", "some words \x1b[31m é 😀", id="m1")
    send(here, "ann", "human")
    for text in ("one", "two \x1b[31m é 😀"):
        here.do("doc.write", name="plan", text=text)
    return here


@pytest.mark.covers("Q1")
def test_errors_have_the_same_code_text_and_details(way: Way) -> None:
    here = fill(way)
    for operation, params in REFUSED:
        expected, found = refused(here, operation, params), refused(way, operation, params)
        assert found == expected, (operation, params)


@pytest.mark.covers("Q1")
def test_usage_errors_have_the_same_reason(way: Way) -> None:
    """A person is pointed to other things to read than a program is, and told of the option that was typed."""
    here = fill(way)
    for operation, params in (
        ("mail.check", {"identity": "ann", "limit": 0}),
        ("mail.check", {"identity": "ann", "wait": "nan"}),
        ("mail.send", {"sender": "ann", "to": ["ben"], "message": "x", "type": "gossip"}),
        ("mail.thread", {"conversation": "x" * 101}),
    ):
        expected, found = refused(here, operation, params), refused(way, operation, params)
        assert found[0] == expected[0] == "USAGE"
        if isinstance(way, CommandLine):
            assert found[2]["reason"].removeprefix("--") == expected[2]["reason"]
        else:
            assert found == expected


@pytest.mark.covers("Q1")
def test_results_are_the_same(way: Way) -> None:
    here = fill(way)
    for operation, params in ANSWERED:
        expected, found = here.do(operation, **params), way.do(operation, **params)
        if operation == "agent.discover":
            expected, found = {**expected, "hub": None}, {**found, "hub": None}
        assert found == expected, (operation, params)


def refused(way: Way, operation: str, params: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    with pytest.raises(Refused) as caught:
        way.do(operation, **params)
    return caught.value.code, caught.value.text, dict(caught.value.details)
