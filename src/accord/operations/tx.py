"""Several changes in one step: all of them, or none."""

from accord import errors, operations
from accord.operations import as_is, operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Steps
    from accord.store.transaction import Transaction


@operation(changes=True)
def run(context: "Context", *, steps: "Steps") -> "results.Made":
    """Make several changes in one atomic step: writes of documents, pushes, changes of tasks."""
    ready = [_read(context, step, number) for number, step in enumerate(steps, 1)]
    context.halts = any(operations.find(name).halts for name, _ in ready)  # type: ignore[attr-defined]
    context.check_halt()

    def work(tx: "Transaction") -> "dict[str, Any]":
        return {"results": [_do(context, tx, number, *step) for number, step in enumerate(ready, 1)]}

    return as_is(context.change(work))


def _read(context: "Context", step: "dict[str, Any]", number: int) -> "tuple[str, dict[str, Any]]":
    """The operation of a step, and its parameters."""
    params = dict(step)
    name = params.pop("operation", None)
    group, _, word = name.partition(".") if isinstance(name, str) else ("", "", "")
    function: Any = operations.find(name) if word in operations.NAMES.get(group, ()) else None
    if function is None or not function.step:
        what = f"{str(name)[:50]!r}" if name else "one without an operation"
        raise errors.Usage(reason=f"Step {number} is {what}, which can be no step", see="the list of operations")
    operations.check_right(context, name, function)
    try:
        return name, operations.read(name, function, params)
    except errors.Usage as error:
        raise errors.Usage(reason=f"Step {number}: {error.details['reason']}", see=name) from None


def _do(context: "Context", tx: "Transaction", number: int, name: str, given: "dict[str, Any]") -> "Any":
    try:
        return operations.find(name)(context.within(tx, name, given), **given)
    except errors.AccordError as error:
        error.details["step"] = number
        raise
