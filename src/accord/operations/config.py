"""The settings, and which projects may set what."""

import os

from accord import errors
from accord.errors.table import to_json
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
    """Show every setting, its value, where that comes from, and what is `wrong` with those that cannot be read."""
    good, wrong = context.settings.without_bad_files()
    settings: list[results.Setting] = []
    for name, setting in SETTINGS.items():
        try:
            value, source = good.find(name)
        except errors.AccordError as error:
            wrong.append(error)
        else:
            settings.append({"name": name, "value": as_is(value), "source": source, "help": setting.help})
    return {"home": context.home.path, "settings": settings, "wrong": [to_json(error) for error in wrong]}


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
