"""A home: the folder in which everything of accord lies, and what is where in it.

store.db            the default store
accord.yml          the owner's settings
agents/NAME.token   the token of each agent that was registered here
operator/token      what the operator shows; apart from the agents', so that a sandbox can hide it
cache/              what can be made anew at any time
"""

import os

from accord import errors
from accord.store.local import folder

DEFAULT = "~/.accord"


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
            if not found:
                folder.make_folder(f"{self.path}/operator")
                _put_first(path, os.urandom(16).hex())
                found = _read(path)
        except (OSError, errors.AccordError):
            return ""
        return found

    def token_path(self, name: str) -> str:
        return f"{self.path}/agents/{name}.token"

    def token(self, name: str) -> str:
        """The token of an agent that was registered here; "" when there is none."""
        try:
            return _read(self.token_path(name))
        except OSError as error:
            raise folder.refusal(error, self.token_path(name)) from None

    def stage_token(self, name: str, token: str) -> str:
        """Write a token before the registration that makes it good; its file, to be kept or dropped afterwards."""
        folder.make_folder(f"{self.path}/agents")
        staged = f"{self.path}/agents/{name}.{os.urandom(4).hex()}.staged"
        _write(staged, token)
        return staged

    def keep_token(self, name: str, staged: str) -> None:
        os.rename(staged, self.token_path(name))

    def staged_tokens(self, name: str) -> list[tuple[str, str]]:
        """Files and tokens of registrations that were cut short."""
        agents = f"{self.path}/agents"
        try:
            names = os.listdir(agents)
        except FileNotFoundError:
            return []
        files = [f"{agents}/{file}" for file in names if file.startswith(f"{name}.") and file.endswith(".staged")]
        return [(file, _read(file)) for file in files]

    def drop_token(self, name: str) -> None:
        folder.unlink_if_there(self.token_path(name))


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
