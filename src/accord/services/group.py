"""Homes that several users of one machine share: which group, and letting it in."""

import errno
import os

from accord import errors, place
from accord.home import Home, own_groups
from accord.store.local import folder


def find(group: str) -> int:
    """The number of a group, by name or number, that this user may make a home for."""
    gid = _number(group)
    if gid not in own_groups() and os.geteuid() != 0:
        raise errors.NotInGroup(group=group, uid=os.geteuid(), yours=_yours())
    return gid


def name(gid: int) -> str:
    """What people call a group; its number where it has no name."""
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def share(home: Home, gid: int) -> None:
    """Let a group in. What else lies there was made for one user, so there may be nothing but the operator's."""
    if home.gid() == gid:
        return
    if set(os.listdir(home.path)) - {"operator"} or home.gid() is not None:
        raise errors.HomeInUse(path=home.path)
    if not place.socket_path(home.path).startswith(f"{home.path}/"):
        reason = "its path is too long for a socket that several users share"
        raise errors.DataDirError(path=home.path, errno=errno.ENAMETOOLONG, reason=reason)
    try:
        os.chown(home.path, -1, gid)
        os.chmod(home.path, folder.SHARED)
    except OSError as error:
        raise folder.refusal(error, home.path) from None


def closed_above(home: Home) -> str | None:
    """The highest folder on the way to a home that its group may not go through."""
    gid, way, closed = home.gid(), home.path, None
    while way != "/":
        way = os.path.dirname(way)
        found = os.stat(way)
        if not found.st_mode & (0o010 if found.st_gid == gid else 0o001):
            closed = way
    return closed


def _number(group: str) -> int:
    import grp

    try:
        return grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):
        if group.isascii() and group.isdigit() and len(group) < 10:
            return int(group)
    raise errors.GroupNotFound(group=group, yours=_yours())


def _yours() -> str:
    return ", ".join(sorted(name(gid) for gid in own_groups()))
