"""The one table: every operation is there once, and reached under its name from everywhere."""

import inspect
from pathlib import Path

import pytest

from accord import errors
from accord.api import groups
from accord.cli.run import VERBS, find_verb
from accord.operations import NAMES, call, find, parameters
from accord.operations.context import Context, local
from accord.operations.kinds import READERS
from accord.operations.schema import HELP, SCHEMAS, WORDS

OPERATIONS = [f"{group}.{word}" for group, words in NAMES.items() for word in words]


@pytest.mark.covers("Q1")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_whole(name: str) -> None:
    function = find(name)
    assert (function.__doc__ or "").strip().endswith(".")
    assert function.right in ("agent", "operator")  # type: ignore[attr-defined]
    for param, (kind, _) in parameters(function).items():
        assert kind in READERS
        assert kind in SCHEMAS
        assert kind in WORDS
        assert HELP[param]


@pytest.mark.covers("Q1", "I5")
@pytest.mark.parametrize("flavour", ["", "Async"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_python_has_it_under_the_same_name_and_with_the_same_parameters(name: str, flavour: str) -> None:
    group, _, word = name.partition(".")
    method = getattr(getattr(groups, flavour + group.title()), word)
    found = [param for param in inspect.signature(method).parameters if param != "self"]
    assert found == list(parameters(find(name)))
    assert inspect.iscoroutinefunction(method) == bool(flavour)


@pytest.mark.covers("Q1")
def test_the_command_line_has_all_of_them() -> None:
    reached = {find_verb(verb).operation for verb in VERBS} | {"halt.set", "halt.status"}  # both by `accord halt`
    reached |= {"mail.hand_over"}  # for those who hand over
    reached |= {"hook.start", "hook.step", "hook.given", "hook.wait", "hook.end"}  # by `accord hook`
    reached |= {"audit.verify"}  # by `accord audit`
    assert set(OPERATIONS) <= reached


@pytest.mark.parametrize("name", ["", "mail", "mail.", "mail.nothing", "nothing.send", "mail._wait", "mail.operation"])
def test_what_is_not_in_the_table_is_not_reached(name: str, context: Context) -> None:
    with pytest.raises(errors.Usage, match="no operation"):
        call(context, name, {})


def test_an_unknown_parameter_is_refused(context: Context) -> None:
    with pytest.raises(errors.Usage, match="no parameter 'colour'"):
        call(context, "mail.check", {"identity": "ann", "colour": "red"})


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return local({"HOME": str(tmp_path)}, str(tmp_path))
