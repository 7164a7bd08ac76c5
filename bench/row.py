"""A figure of the report: what was sampled, what it should be, and whether it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Unit:
    suffix: str
    digits: int
    more_is_better: bool = False

    def text(self, value: float) -> str:
        # A rounded nothing from below would read -0.
        return f"{round(value, self.digits) + 0.0:,.{self.digits}f}{self.suffix}"


MILLISECONDS = Unit(" ms", 2)
MICROSECONDS = Unit(" µs", 1)
SECONDS = Unit(" s", 1)
PERCENT = Unit(" %", 2)
MEBIBYTES = Unit(" MiB", 1)
COUNT = Unit("", 0)
ROUND_TRIPS = Unit(" round trips", 1)
RATE = Unit("/s", 0, more_is_better=True)
TIMES_AS_FAST = Unit(" x", 2, more_is_better=True)
TIMES_AS_LONG = Unit(" x", 2)
SHARE = Unit("", 2, more_is_better=True)


@dataclass(frozen=True)
class Row:
    what: str
    unit: Unit
    samples: Sequence[float]  # one per round; none: it could not be measured here
    target: float | None = None  # at least this where more is better, else at most
    always: bool = False  # the target holds for each sample, not for their median
    void_if_missed: bool = False  # the figures of the whole run mean nothing then
    note: str = ""

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def best(self) -> float:
        return max(self.samples) if self.unit.more_is_better else min(self.samples)

    @property
    def worst(self) -> float:
        return min(self.samples) if self.unit.more_is_better else max(self.samples)

    @property
    def verdict(self) -> str:
        if not self.samples:
            return "not measured"
        if self.target is None:
            return ""
        judged = self.worst if self.always else self.median
        if judged >= self.target if self.unit.more_is_better else judged <= self.target:
            return "met"
        return "VOID" if self.void_if_missed else "missed"

    def cells(self) -> list[str]:
        """What, median, best, worst, target and verdict, as text."""
        what = f"{self.what} ({self.note})" if self.note else self.what
        figures = [self.median, self.best, self.worst] if self.samples else []
        texts = [self.unit.text(figure) for figure in figures] or ["-"] * 3
        return [what, *texts, self._target_text(), self.verdict]

    def _target_text(self) -> str:
        if self.target is None:
            return ""
        bound = f"{self.target:g}{self.unit.suffix}"
        return f"at {'least' if self.unit.more_is_better else 'most'} {bound}{', always' if self.always else ''}"
