"""The checks that every engine passes, as functions `check_<sentence>(open_store)`.

`open_store` takes no argument, can be pickled, and opens the same place anew at each call; the place is empty
at first, another one for each check. A check that fails raises. This proves an engine:

    @pytest.mark.parametrize("check", [*conformance.checks(), *conformance.checks_across_processes()])
    def test_engine(check, tmp_path):
        check(functools.partial(open_store, f"mine:{tmp_path}/store"))

and `checks_with_exclusive()` or `checks_without_exclusive()`, as the engine has a write lock or not; what few engines
cannot have, or not in reasonable time, is in `checks_with_own_clock()` and `checks_with_long_history()`.
"""

from collections.abc import Callable
from types import ModuleType

from accord.testing.conformance import (
    across_processes,
    exclusive,
    isolation,
    lifetime,
    limits,
    loading,
    long_history,
    optimistic,
    own_clock,
    reading,
    threads,
    transactions,
    watching,
    writing,
)
from accord.testing.conformance.tools import Opener

Check = Callable[[Opener], None]


def checks() -> list[Check]:
    """What holds on every engine."""
    modules = [reading, writing, limits, isolation, threads, watching, transactions, loading, lifetime]
    return [check for module in modules for check in _checks_in(module)]


def checks_with_exclusive() -> list[Check]:
    """What holds on an engine that has `exclusive`."""
    return _checks_in(exclusive)


def checks_without_exclusive() -> list[Check]:
    """What holds on an engine that has no `exclusive`."""
    return _checks_in(optimistic)


def checks_across_processes() -> list[Check]:
    """What holds on an engine whose places several processes can open."""
    return _checks_in(across_processes)


def checks_with_own_clock() -> list[Check]:
    """What holds on an engine whose clock is not one that somebody may set."""
    return _checks_in(own_clock)


def checks_with_long_history() -> list[Check]:
    """What holds on every engine that keeps its history itself; it takes more than 100,000 commits."""
    return _checks_in(long_history)


def _checks_in(module: ModuleType) -> list[Check]:
    if not __debug__:
        raise RuntimeError("python -O takes the assertions out of the checks: run them without it")
    found = [value for name, value in vars(module).items() if name.startswith("check_")]
    return [check for check in found if check.__module__ == module.__name__]
