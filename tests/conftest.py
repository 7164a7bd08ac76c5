"""Writes the requirements that the passing tests cover to $ACCORD_COVERED, and says what was skipped."""

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# How long one example takes says more of what else the machine does than of accord.
settings.register_profile("accord", deadline=None)
settings.load_profile("accord")


def pytest_configure(config: pytest.Config) -> None:
    file = os.environ.get("ACCORD_COVERED")
    # The workers of pytest-xdist send their reports to the one process that writes the file.
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Covered(Path(file)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # User properties are the part of a report that travels from a worker.
        item.user_properties += [("covers", id) for mark in item.iter_markers("covers") for id in mark.args]


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
