"""A proof of the operator's token: for one thing, for a short time, and without the token in it."""

import time

import pytest

from accord import proof

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.mark.covers("R20")
def test_it_holds_for_what_it_was_made_for_alone() -> None:
    shown = proof.make(TOKEN, "unhalt")
    assert TOKEN not in shown
    assert proof.holds(shown, TOKEN, "unhalt")
    assert not proof.holds(shown, TOKEN, "engage")
    assert not proof.holds(shown, TOKEN[::-1], "unhalt")
    assert not proof.holds(shown[:-1] + ("0" if shown[-1] != "0" else "1"), TOKEN, "unhalt")
    assert shown != proof.make(TOKEN, "unhalt")


@pytest.mark.parametrize("passed_s", [proof.GOOD_FOR_S + 1, -proof.GOOD_FOR_S - 1])
def test_it_is_over_soon(passed_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = proof.make(TOKEN, "unhalt")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + passed_s)
    assert not proof.holds(shown, TOKEN, "unhalt")


@pytest.mark.parametrize("shown", ["", "proof:", "proof::", "proof:x:y", "proof:" + "9" * 32 + ":", "\0", "é"])
def test_what_is_none(shown: str) -> None:
    assert not proof.holds(shown, TOKEN, "unhalt")
    assert not proof.holds(shown, "", "unhalt")


def test_the_token_itself_will_do() -> None:
    assert proof.holds(TOKEN, TOKEN, "anything")
    assert proof.make("", "anything") == ""
