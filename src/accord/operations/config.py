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
    from accord.settings import Settings
    from accord.settings.engine import Part


@operation()
def show(context: "Context") -> "results.Settings":
    """Show every setting, its value, where that comes from, and what is `wrong` with those that cannot be read."""
    good, wrong = context.settings.without_bad_files()
    settings: list[results.Setting] = []
    unused: list[results.Part] = []
    for name, setting in SETTINGS.items():
        try:
            value, source = good.find(name)
            parts = _parts(good) if name == "engine" else []
            unused += _unused(good) if name == "engine" else []
        except errors.AccordError as error:
            wrong.append(error)
        else:
            found: results.Setting = {"name": name, "value": as_is(value), "source": source, "help": setting.help}
            settings.append({**found, "parts": parts} if parts else found)
    shown = [to_json(error) for error in wrong]
    return {"home": context.home.path, "settings": settings, "unused": unused, "wrong": shown}


def _parts(settings: "Settings") -> "list[results.Part]":
    """What the engine is made of, where it does not stand in one place; of a password only where it is."""
    parts = [_part(part) for part in settings.chosen_engine().parts]
    place = settings.password_place(settings["engine"])
    return [*parts, {"name": "password", "value": "(not shown)", "source": place}] if place else parts


def _unused(settings: "Settings") -> "list[results.Part]":
    from accord.settings.engine import unused

    return [_part(part) for part in unused(settings)]


def _part(part: "Part") -> "results.Part":
    return {"name": part.name, "value": part.value, "source": part.source}


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
