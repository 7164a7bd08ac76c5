"""A home: the folder in which everything of accord lies, and what is where in it.

store.db            the default store
accord.yml          the owner's settings
agents/NAME.token   the token of each agent that was registered here; agents/STORE/ for those of another store
operator/token      what the operator shows; apart from the agents', so that a sandbox can hide it
shell/              what shells have begun with the functions of `accord shellenv`
cache/              what can be made anew at any time

A home is its owner's alone, or shared by a group, as the mode of its folder says (2770). Tokens are never shared.
"""

import os

from accord import errors, place
from accord.store.local import folder
from accord.store.local.gate import Gate

_MOST_BYTES = 200  # of a token


class Home:
    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def make(self) -> None:
        """Make it if it is not there; refuse one that belongs to somebody else, or to a group of others."""
        folder.make_folder(self.path, secret=True)
        owner, me, gid = os.stat(self.path).st_uid, os.geteuid(), self.gid()
        if gid is not None and me != 0 and gid not in own_groups():
            reason = f"it is the home of the group {gid}, which user {me} is not in"
        elif owner != me and (gid is None or me == 0):
            reason = f"it belongs to user {owner}, and this is user {me}"
        else:
            return
        raise errors.DataDirError(path=self.path, errno=1, reason=reason)

    def gid(self) -> int | None:
        """The group that shares it; None: it is its owner's alone."""
        return os.stat(self.path).st_gid if place.is_shared(self.path) else None

    def is_own(self) -> bool:
        """Whether this user is its owner, and so the operator."""
        return os.stat(self.path).st_uid == os.geteuid()

    def admits(self, uid: int, groups: set[int]) -> bool:
        """Whether a user who is in these groups may use it."""
        if uid == os.geteuid():
            return True
        gid = self.gid()
        return gid is not None and (gid in groups or uid == os.stat(self.path).st_uid)

    def make_operator_token(self) -> None:
        """While there is room for it: it is needed where there may be none, as for `unhalt` and `hub stop`."""
        if not os.path.lexists(f"{self.path}/operator/token"):
            try:
                self.operator_token()
            except errors.AccordError:
                pass  # whoever needs it will be told

    def operator_token(self) -> str:
        """The operator's token, made when there is none; "" where it is out of reach, as in a sandbox."""
        path = f"{self.path}/operator/token"
        try:
            found = self._read_owners(path)
            if found:
                return found
            self.make()
            if not self.is_own():
                return ""
            folder.make_folder(f"{self.path}/operator", secret=True)
            _put_first(path, os.urandom(16).hex())
            return self._read_owners(path)
        except PermissionError:
            return ""
        except OSError as error:
            raise folder.refusal(error, path) from None

    def _read_owners(self, path: str) -> str:
        """A file of the home's owner. In a group's home a member could have put another there, which they can read."""
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno())
                is_owners = found.st_uid == os.stat(self.path).st_uid and not found.st_mode & 0o077
                if is_owners or self.gid() is None:
                    return _text(file.read(_MOST_BYTES))
        except FileNotFoundError:
            return ""
        raise errors.DataDirError(path=path, errno=1, reason="it is not private to the owner of the home")

    def tokens(self, store: str) -> "Tokens":
        """Those of the agents in a store, of which this is a name; "": the one in the home."""
        return Tokens(f"{self.path}/agents/{store}" if store else f"{self.path}/agents", store)


class Tokens:
    def __init__(self, path: str, store: str = "") -> None:
        self.path = path
        self.store = store

    def alone(self, timeout_s: float) -> "_Alone":
        """For the time in which a name is registered or given back: else the token of one could end up as another's."""
        folder.make_folder(self.path)
        return _Alone(f"{self.path}/.lock", timeout_s)

    def path_of(self, name: str) -> str:
        return f"{self.path}/{name}.token"

    def read(self, name: str) -> str:
        """The token of an agent that was registered here; "" when there is none."""
        try:
            return _read(self.path_of(name))
        except PermissionError as error:
            if place.is_shared(self.path):
                return ""  # another member's
            reason = "this user may not read it"
            raise errors.DataDirError(path=self.path_of(name), errno=error.errno, reason=reason) from None
        except OSError as error:
            raise folder.refusal(error, self.path_of(name)) from None

    def stage(self, name: str, token: str) -> str:
        """Write a token before the registration that makes it good; its file, to be kept or dropped afterwards."""
        staged = f"{self.path}/{name}.{os.urandom(4).hex()}.staged"
        _write(staged, token)
        return staged

    def keep(self, name: str, staged: str) -> None:
        os.rename(staged, self.path_of(name))

    def drop(self, name: str) -> None:
        folder.unlink_if_there(self.path_of(name))

    def staged(self, name: str) -> list[tuple[str, str]]:
        """Files and tokens of registrations that were cut short."""
        files = [file for file in self._files() if file.startswith(f"{name}.") and file.endswith(".staged")]
        own = [path for path in [f"{self.path}/{file}" for file in files] if os.access(path, os.R_OK)]
        return [(path, _read(path)) for path in own]

    def copy_to(self, other: "Tokens", timeout_s: float) -> int:
        """Have all that can be read here lie there too, in place of what was there; how many."""
        found = {name: token for name in self.names() if (token := self.read(name))}
        if found:
            with other.alone(timeout_s):
                for name, token in found.items():
                    other.keep(name, other.stage(name, token))
        return len(found)

    def names(self) -> list[str]:
        """Whose tokens lie here."""
        return sorted(file.removesuffix(".token") for file in self._files() if file.endswith(".token"))

    def _files(self) -> list[str]:
        try:
            return os.listdir(self.path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise folder.refusal(error, self.path) from None


class _Alone:
    """A gate for the length of a `with` block."""

    def __init__(self, path: str, timeout_s: float) -> None:
        self._gate = Gate(path)
        self._timeout_s = timeout_s

    def __enter__(self) -> None:
        try:
            self._gate.acquire(self._timeout_s)
        except BaseException:
            self._gate.close()
            raise

    def __exit__(self, *exc: object) -> None:
        self._gate.release()
        self._gate.close()


def own_groups() -> set[int]:
    """Those that this process is in."""
    return {os.getegid(), *os.getgroups()}


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return _text(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()


def _write(path: str, text: str) -> None:
    fd = folder.open_private(path, os.O_WRONLY | os.O_CREAT, secret=True)
    try:
        os.write(fd, text.encode() + b"\n")
        os.fsync(fd)
    except OSError as error:
        os.unlink(path)
        raise folder.refusal(error, path) from None
    finally:
        os.close(fd)


def _put_first(path: str, text: str) -> None:
    """Write a file unless another process was faster."""
    mine = f"{path}.{os.urandom(4).hex()}"
    _write(mine, text)
    try:
        os.link(mine, path)
    except FileExistsError:
        pass
    os.unlink(mine)
