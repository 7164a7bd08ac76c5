"""Judges histories, the files that stores of `accord.store.wrap.recorded` wrote: did the engine keep its word?

    check_history(["a.history", "b.history"])    raises AssertionError when no correct store can have done that

Each item must be a register whose reads, writes and compare-and-sets fit an order that agrees with the clock
(linearizable; `registers.py`), and the revisions must be such an order of everything (strictly serializable;
`revisions.py`). A history begins with an empty store. Give each value once for a quick and sharp judgement.
"""

from collections.abc import Iterable
from pathlib import Path

from accord.testing.histories.history import History, read_history
from accord.testing.histories.registers import check_registers
from accord.testing.histories.revisions import check_revisions


def check_history(paths: Iterable[str | Path]) -> History:
    """Judge the history that these files hold together; what it consists of."""
    history = read_history(paths)
    check_registers(history)
    check_revisions(history)
    return history
