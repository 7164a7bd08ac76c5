"""Reservations of files: who works where, so that two do not change the same file."""

import os
import time

from accord import errors, jsontext
from accord.model import timestamp
from accord.operations import operation
from accord.services import reservations
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Flag, Folder, Globs, Label, Lease, Paths, Text
    from accord.services.reservations import Reservation
    from accord.store.transaction import Transaction

LONGEST_NOTE = 1000


@operation(changes=True, halts=True)
def add(
    context: "Context",
    *,
    project: "Folder",
    globs: "Globs",
    owner: "Label",
    ttl: "Lease" = 3600,
    note: "Text" = "",
    advisory: "Flag" = False,
) -> "results.Reserved":
    """Reserve files of a project, or renew that; all of them, or none when another has reserved what overlaps."""
    if len(note) > LONGEST_NOTE:
        raise errors.Usage(reason=f"note has more than {LONGEST_NOTE} characters", see="reserve.add")
    wanted = reservations.Wanted(_project(project), globs, owner, ttl, note, advisory)

    def work(tx: "Transaction") -> "results.Reserved":
        found = reservations.add(tx, wanted, context.now())
        return {
            "project": wanted.project,
            "owner": owner,
            "globs": [*wanted.globs],
            "advisory": advisory,
            "expires_at": timestamp(time.time() + ttl),
            "overlaps": [{"wanted": text, **_shown(one)} for text, one in found],
        }

    return context.change(work)


@operation(changes=True)
def release(
    context: "Context", *, project: "Folder", owner: "Label", globs: "Globs | None" = None, all: "Flag" = False
) -> "results.ReleasedGlobs":
    """Give back what one has reserved in a project: the globs that are named, or all."""
    if all == (globs is not None):
        raise errors.Usage(reason="Give either globs or all", see="reserve.release")
    folder = _project(project)
    return {"project": folder, "owner": owner, "released": _release(context, folder, owner, globs)}


def _release(context: "Context", project: str, owner: str, globs: "Globs | None") -> "Globs":
    """Which they were. One commit holds only so many."""
    released: Globs = []
    while True:
        left = None if globs is None else [text for text in globs if text not in released]
        some = _release_some(context, project, owner, left, len(released))
        released += some
        if len(some) < reservations.MOST_AT_ONCE:
            return released


def _release_some(context: "Context", project: str, owner: str, globs: "Globs | None", before: int) -> "Globs":
    """One commit, called by how many were released before: who asks again is told of it."""
    key = context.key(f"{context.operation} after {before}")
    params = jsontext.dumps(context.given).encode()
    return transact(context.store, lambda tx: reservations.release(tx, project, owner, globs), key, params)


@operation()
def check(
    context: "Context", *, project: "Folder", paths: "Paths", owner: "Label | None" = None
) -> "results.HeldPaths":
    """Say which of these files, or folders, others have reserved."""
    folder = _project(project)
    found = transact(context.store, lambda tx: reservations.find(tx, folder, paths, owner))
    return {"project": folder, "held": [{"path": path, **_shown(one)} for path, one in found]}


@operation()
def list(context: "Context", *, project: "Folder | None" = None) -> "results.Reservations":
    """Show who has reserved what, in a project or in all of them."""
    folder = None if project is None else _project(project)
    found = transact(context.store, lambda tx: reservations.all_of(tx, folder))
    return {"reservations": [{"project": one.project, **_shown(one)} for one in found]}


def _project(path: str) -> str:
    """A folder as it is written in reservations. Nobody looks at it: it may be another machine's."""
    if not os.path.isabs(path):
        raise errors.Usage(reason=f"project {path[:100]!r} is not an absolute path", see="reserve.add")
    return os.path.normpath(path)


def _shown(one: "Reservation") -> "results.Reservation":
    return {
        "glob": one.glob,
        "owner": one.owner,
        "advisory": one.advisory,
        "note": one.note,
        "since": one.since,
        "expires_at": timestamp(time.time() + one.left_s),
    }
