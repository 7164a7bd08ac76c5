"""A home: the folder in which everything of accord lies, and what is where in it.

store.db            the default store
accord.yml          the owner's settings
agents/NAME.token   the token of each agent that was registered here; agents/STORE/ for those of another store
operator/token      what the operator shows; apart from the agents', so that a sandbox can hide it
cache/              what can be made anew at any time
"""

import os

from accord import errors
from accord.store.local import folder
from accord.store.local.gate import Gate


class Home:
    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def make(self) -> None:
        """Make it if it is not there; refuse one that belongs to somebody else."""
        folder.make_folder(self.path)
        owner = os.stat(self.path).st_uid
        if owner != os.geteuid():
            reason = f"it belongs to user {owner}, and this is user {os.geteuid()}"
            raise errors.DataDirError(path=self.path, errno=1, reason=reason)

    def operator_token(self) -> str:
        """The operator's token, made when there is none; "" where it is out of reach, as in a sandbox."""
        path = f"{self.path}/operator/token"
        try:
            found = _read(path)
        except PermissionError:
            return ""
        except OSError as error:
            raise folder.refusal(error, path) from None
        if not found:
            self.make()
            folder.make_folder(f"{self.path}/operator")
            _put_first(path, os.urandom(16).hex())
            found = _read(path)
        return found

    def tokens(self, store: str) -> "Tokens":
        """Those of the agents in a store, of which this is a name; "": the one in the home."""
        return Tokens(f"{self.path}/agents/{store}" if store else f"{self.path}/agents")


class Tokens:
    def __init__(self, path: str) -> None:
        self.path = path

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
        return [(f"{self.path}/{file}", _read(f"{self.path}/{file}")) for file in files]

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


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(200).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""


def _write(path: str, text: str) -> None:
    fd = folder.open_private(path, os.O_WRONLY | os.O_CREAT)
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
