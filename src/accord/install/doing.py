"""Install or uninstall one thing that has a name."""

import sys

from accord.install import changes
from accord.install.record import Record, alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.home import Home
    from accord.install.changes import Change
    from accord.install.site import Site


def look(name: str, site: "Site", home: "Home", is_install: bool) -> "list[Change]":
    """What would change."""
    return _planned(name, site, home, is_install)[0]


def do(name: str, site: "Site", home: "Home", is_install: bool, timeout_s: float) -> "list[Change]":
    """Make the changes; what they were."""
    with alone(home, timeout_s):
        found, record = _planned(name, site, home, is_install)
        changes.make(found, record, is_install)
    return found


def notes(name: str, site: "Site") -> list[str]:
    """What is left for a person to do after installing."""
    found: list[str] = _module(name).notes(site)
    return found


def _planned(name: str, site: "Site", home: "Home", is_install: bool) -> "tuple[list[Change], Record]":
    module = _module(name)
    record = Record(home, name, site.scope, site.root(module.MOVED_BY))
    edits = module.edits(site)
    if is_install:
        return changes.plan_install(edits, record, secret=site.is_user), record
    return changes.plan_uninstall(edits, record), record


def _module(name: str):  # type: ignore[no-untyped-def]  # one of several that export the same
    __import__(f"accord.install.{name}")
    return sys.modules[f"accord.install.{name}"]
