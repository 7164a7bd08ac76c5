"""Where a home, a project's settings and a hub's socket are. Every command asks, so it imports next to nothing."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = "~/.accord"
SETTINGS_FILE = "accord.yml"
HUB = "hub"  # the folder of the hub, in the home
KEY_VARIABLE = "ACCORD_ENCRYPTION_KEY"
PASSWORD_VARIABLE = "ACCORD_ENGINE_PASSWORD"  # noqa: S105  # where it is, and not what
OTHER_PASSWORD_VARIABLE = "ACCORD_MIGRATE_PASSWORD"  # noqa: S105  # of a second engine, for `accord migrate`
BACKEND_VARIABLE = "COMMUNICATION_BACKEND"

# Those that choose an engine, or say where it is, and have names that others gave them.
ENGINE_VARIABLES = (
    BACKEND_VARIABLE, "REDIS_HOST", "REDIS_PORT", "SQLITE_DB", "FIREBASE_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS",
    "FIREBASE_DATABASE_EMULATOR_HOST",
)  # fmt: skip

_LONGEST_SOCKET = 100  # bytes of its path; Linux takes 107, macOS 103


def home_path(named: str, cwd: str, env: "Mapping[str, str]") -> str:
    """The home that was named, or the usual one; not absolute where $HOME or `cwd` would be needed and is not known."""
    path = named or env.get("ACCORD_HOME") or HOME
    if path == "~" or path.startswith("~/"):
        path = user_home(env) + path[1:]
    return path if path.startswith("~") else os.path.join(cwd, path)


def user_home(env: "Mapping[str, str]") -> str:
    return env.get("HOME") or os.path.expanduser("~")  # which stays "~" where nobody knows


def project_file(cwd: str, home: str) -> str:
    """The nearest settings of a project upwards from the working directory; "" when there are none."""
    own = f"{home}/{SETTINGS_FILE}"
    folder = cwd
    while folder:
        path = f"{folder.rstrip('/')}/{SETTINGS_FILE}"
        if path != own and os.path.lexists(path):
            return path
        parent = os.path.dirname(folder)
        folder = parent if parent != folder else ""
    return ""


def socket_path(home: str) -> str:
    """Where the hub of a home listens. A path too long for a socket becomes a short one, made from it."""
    path = f"{home}/{HUB}/socket"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET:
        return path
    from _blake2 import blake2b

    return f"{short_folder()}/{blake2b(os.fsencode(path), digest_size=12).hexdigest()}"


def short_folder() -> str:
    """The folder of sockets whose own is too long. Others could have made it: see `is_ours`."""
    return f"/tmp/accord-{os.geteuid()}"  # noqa: S108


def is_shared(folder: str) -> bool:
    """Whether a folder is for the whole of its group, as a group's home is and all in it that is no secret: 2770."""
    try:
        return os.stat(folder).st_mode & 0o172777 == 0o042770
    except OSError:
        return False


def is_ours(folder: str) -> bool:
    """Whether only this user, or a member of the group whose home this is in, can have put a socket there."""
    return is_private(folder) or (is_shared(folder) and is_shared(os.path.dirname(folder)))


def is_private(folder: str) -> bool:
    """Whether a folder is this user's and closed to others, so that nobody else can have put a socket there."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and found.st_mode & 0o170077 == 0o040000
