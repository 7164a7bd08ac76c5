"""The table of errors: every one can be told apart, formats, and says what to do."""

import pickle
import re
import string

import pytest

from accord import errors
from accord.errors import table

CLASSES: list[type[errors.AccordError]] = [value for value in vars(table).values() if isinstance(value, type)]

# What has an exit code of its own, since scripts ask for it.
OWN_EXITS = {
    ("USAGE", 2),
    ("EMPTY", 3),
    ("CONFLICT", 4),
    ("AUDIT_BROKEN", 1),
    ("NEEDS_ATTENTION", 1),
    ("COMMIT_STOPPED", 8),
    ("COMMAND_NOT_FOUND", 127),
    ("HALTED", 5),
    ("NOT_ENGAGED", 5),
    ("INTERRUPTED", 130),
}

# How a sentence starts that tells a person what to do.
VERBS = {
    "Acquire", "Ask", "Check", "Choose", "Claim", "Convert", "Do", "Encode", "Find", "Free", "Give", "Have",
    "Install", "Join", "Leave", "Let", "List", "Look", "Make", "Mend", "Move", "Name", "Open", "Put", "Read", "Run",
    "Send", "Show", "Split", "Start", "Stop", "Take", "Try", "Upgrade", "Wait", "Write",
}  # fmt: skip


def details_of(error: type[errors.AccordError]) -> dict[str, object]:
    """Something for every field of the text."""
    fields = [(name, spec) for _, name, spec, _ in string.Formatter().parse(error.text) if name]
    return {name: 1.5 if spec == "g" else f"the {name}" for name, spec in fields}


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_its_text_formats_and_names_every_detail(error: type[errors.AccordError]) -> None:
    details = details_of(error)
    made = error(**details)
    assert made.details == details
    for value in details.values():
        assert ("1.5" if value == 1.5 else str(value)) in str(made)


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_it_says_what_happened_and_then_what_to_do(error: type[errors.AccordError]) -> None:
    sentences = re.split(r"(?<=[.:]) (?=[A-Z])", error.text)
    assert len(sentences) >= 2, sentences
    assert any(sentence.split()[0].strip(",:") in VERBS for sentence in sentences[1:]), sentences


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_its_code_and_numbers_are_in_range(error: type[errors.AccordError]) -> None:
    assert issubclass(error, errors.AccordError)
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", error.code)
    assert -32768 <= error.rpc <= -32000
    assert 64 <= error.exit <= 78 or (error.code, error.exit) in OWN_EXITS  # as in sysexits.h
    assert 400 <= error.http < 600


@pytest.mark.parametrize("field", ["code", "rpc", "__doc__", "text"])
def test_no_two_are_the_same(field: str) -> None:
    values = [vars(error)[field] for error in CLASSES if vars(error).get(field)]
    assert len(set(values)) == len(values)
    assert len(values) == len(CLASSES) or field == "__doc__"


@pytest.mark.covers("R6")
def test_the_number_that_is_promised() -> None:
    assert {error.code for error in CLASSES if error.rpc == -32001} == {"CLONE_BUSY"}
    assert errors.CloneBusy(clone="c1").code == "CLONE_BUSY"


def test_the_code_is_the_name() -> None:
    for error in CLASSES[1:]:
        assert error.code.replace("_", "") == error.__name__.upper()


def test_the_tree_at_the_top_of_the_file_shows_them_all() -> None:
    shown = re.findall(r"[├└]── (\w+)", table.__doc__ or "")
    assert shown == [error.__name__ for error in CLASSES[1:]]


def test_an_error_goes_from_process_to_process() -> None:
    error = errors.LockTimeout(path="gate", timeout_seconds=1.0, holder="process 7", pid=7)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.details, str(again)) == (type(error), error.details, str(error))
