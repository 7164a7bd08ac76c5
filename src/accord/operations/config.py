"""The settings, and which projects may set what."""

import os

from accord import errors
from accord.operations import OPERATOR, as_is, operation
from accord.place import SETTINGS_FILE
from accord.settings import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Path


@operation()
def show(context: "Context") -> "results.Settings":
    """Show every setting, its value, and where that comes from."""
    found = {name: context.settings.find(name) for name in SETTINGS}
    settings: list[results.Setting] = [
        {"name": name, "value": as_is(value), "source": source, "help": SETTINGS[name].help}
        for name, (value, source) in found.items()
    ]
    return {"home": context.home.path, "settings": settings}


@operation(right=OPERATOR, changes=True, beyond=True, here=True)
def trust(context: "Context", *, path: "Path") -> "results.Trusted":
    """Let a project's accord.yml, as it is now, choose an engine and what else needs trust."""
    from accord.settings.files import trust

    try:
        path = os.path.abspath(path)
    except OSError as error:
        raise errors.FileUnreadable(path=path, reason=f"the working directory: {error.strerror}") from None
    if os.path.isdir(path):
        path = f"{path}/{SETTINGS_FILE}"
    if not os.path.isfile(path):
        raise errors.FileUnreadable(path=path, reason="there is no such file")
    return {"path": path, "settings": trust(path, context.home.path)}
