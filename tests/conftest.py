"""Writes the requirements that the passing tests cover to $ACCORD_COVERED, and says what was skipped."""

import os
from collections import Counter, defaultdict
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from tests.often import IS_MORE

NOT_IN_MAKE_TEST = {"agents", "long", "more"}
# Modules in which nearly every test starts a hub, or many commands.
HEAVY = ("test_both_ways", "test_forwarding", "test_homes", "test_lifecycle", "test_mcp", "test_shellenv")
WITH_PROCESSES = ("agents", "cli", "doors", "engines", "group", "hub", "install", "migrate", "operations", "robustness")

# How long one example takes says more of what else the machine does than of accord.
settings.register_profile("accord", deadline=None)
settings.load_profile("accord")


def pytest_configure(config: pytest.Config) -> None:
    file = os.environ.get("ACCORD_COVERED")
    # The workers of pytest-xdist send their reports to the one process that writes the file.
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Covered(Path(file)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not IS_MORE:
        leave_to_more(items)
    for item in items:
        # User properties are the part of a report that travels from a worker.
        item.user_properties += [("covers", id) for id in ids_of(item)]


def leave_to_more(items: list[pytest.Item]) -> None:
    """Of a test that starts processes for three values or more, `make test` tries a third: another one in each test.

    Of heavy modules it runs a third of the tests.
    """
    values = defaultdict(list)
    for item in items:
        module, _, test = item.nodeid.partition("[")[0].rpartition("::")
        test = module if module.rpartition("/")[2].removesuffix(".py") in HEAVY else f"{module}::{test}"
        if test.split("/")[1] in WITH_PROCESSES and not item.get_closest_marker("more"):
            values[test].append(item)
    left = []
    for test, each in values.items():
        turn = crc32(test.encode())
        left += [item for at, item in enumerate(each) if len(each) >= 3 and (at + turn) % 3]
    tried = [
        item for item in set(items) - set(left) if not NOT_IN_MAKE_TEST & {mark.name for mark in item.iter_markers()}
    ]
    proved = {id for item in tried for id in ids_of(item)}
    for item in left:
        if proved.issuperset(ids_of(item)):
            item.add_marker(pytest.mark.more)
        proved.update(ids_of(item))


def ids_of(item: pytest.Item) -> set[object]:
    """The requirements that it proves."""
    return {id for mark in item.iter_markers("covers") for id in mark.args}


class Covered:
    """Writes the ids that at least one passed test covers, and no failed one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.passed: set[object] = set()
        self.failed: set[object] = set()
        file.unlink(missing_ok=True)  # a run that is broken off must not leave an older run's answer

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = {value for name, value in report.user_properties if name == "covers"}
        if report.failed:
            self.failed |= ids
        elif report.passed and report.when == "call":
            self.passed |= ids

    def pytest_sessionfinish(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("".join(f"{id}\n" for id in sorted(map(str, self.passed - self.failed))))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("NOT TESTED", yellow=True, bold=True)
        reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
        for reason, count in sorted(reasons.items()):
            terminalreporter.line(f"{count} skipped: {reason}")
