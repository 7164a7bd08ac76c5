"""Every check on every engine."""

from functools import partial
from pathlib import Path

import pytest

pytest.register_assert_rewrite("accord.testing.conformance")  # so that a check that fails shows the values it compared

from accord.store.open import engines, open_store  # noqa: E402 - after the line above
from accord.testing import conformance  # noqa: E402
from tests.conformance.engines import ENGINES, Engine  # noqa: E402
from tests.often import some_of  # noqa: E402


def checks_for(engine: Engine) -> list[conformance.Check]:
    checks = conformance.checks()
    checks += conformance.checks_with_exclusive() if engine.exclusive else conformance.checks_without_exclusive()
    if engine.shared:
        checks += conformance.checks_across_processes()
    if engine.own_clock:
        checks += conformance.checks_with_own_clock()
    if engine.long_history:
        checks += conformance.checks_with_long_history()
    return checks


def params_for(engine: Engine) -> list[object]:
    """On an engine of a server, where each commit takes its time, `make test` tries some of the checks."""
    checks = checks_for(engine)
    tried = some_of(len(checks)) if engine.server else range(len(checks))
    return [
        pytest.param(
            engine,
            check,
            id=f"{engine.name}-{check.__name__.removeprefix('check_')}",
            marks=[] if at in tried else [pytest.mark.more],
        )
        for at, check in enumerate(checks)
    ]


@pytest.mark.covers("S1", "S2")
@pytest.mark.parametrize(
    ("engine", "check"),
    [param for engine in ENGINES for param in params_for(engine)],
)
def test_engine(engine: Engine, check: conformance.Check, tmp_path: Path) -> None:
    check(engine.at(tmp_path))


@pytest.mark.covers("S3")
@pytest.mark.parametrize(
    "check",
    [*conformance.checks_with_exclusive(), *conformance.checks_across_processes()],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
def test_files_with_the_other_kind_of_lock(check: conformance.Check, tmp_path: Path) -> None:
    check(partial(open_store, f"files:{tmp_path / 'store'}?lock=mkdir"))


def test_every_engine_is_tested() -> None:
    assert {engine.name for engine in ENGINES} == set(engines()) - {"rediss"}  # which is redis, over TLS
