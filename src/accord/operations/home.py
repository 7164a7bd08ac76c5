"""The home itself: making it, and looking whether all is well."""

from accord import errors
from accord.operations import OPERATOR, as_is, operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Flag, Group, Url


@operation(right=OPERATOR, changes=True, beyond=True)
def init(context: "Context", *, group: "Group | None" = None) -> "results.Home":
    """Make the home and its store, for oneself or for a group; other operations make one too, for oneself."""
    from accord.services import group as groups

    if group is not None:
        groups.share(context.home, groups.find(group))
    gid = context.home.gid()
    return {
        "home": context.home.path,
        "durability": context.store.durability,
        "revision": context.revision(),
        "group": None if gid is None else groups.name(gid),
        "closed_above": None if gid is None else groups.closed_above(context.home),
    }


@operation()
def doctor(context: "Context") -> "results.Health":
    """Look whether all is well, and say what to do where it is not."""
    from accord.operations.context import engine_of
    from accord.operations.hub import status
    from accord.services.doctor import examine, shown

    def engine() -> str:
        return engine_of(context.home, context.settings)

    checks = examine(
        context.home,
        lambda: context.tokens,
        context.settings,
        engine,
        context.halt,
        lambda: context.store,
        lambda: as_is(status(context)),
    )
    return {
        "healthy": all(check["ok"] for check in checks),
        "engine": _known(lambda: shown(engine())),
        "checks": as_is(checks),
    }


@operation(right=OPERATOR, changes=True, beyond=True, here=True)
def migrate(context: "Context", *, source: "Url", target: "Url", dry_run: "Flag" = False) -> "results.Migration":
    """Copy everything of a store into an empty one, of any engine, and compare it all."""
    from accord.operations.migrating import Plan

    plan = Plan(context, source, target)
    return plan.look() if dry_run else plan.run()


def _known(find: "Callable[[], str]") -> "str | None":
    """None where the settings, which would say it, cannot be read."""
    try:
        return find()
    except (errors.InvalidConfig, errors.NotTrusted, errors.UnknownEngine):
        return None
