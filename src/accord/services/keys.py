"""Who may come in over ZeroMQ: pairs of CURVE keys, made by the operator.

hub/keys/hub.json           the hub's own pair; no other key can have that name
hub/keys/NAME.json          what an agent needs to connect; it may be moved to where the agent runs
hub/keys/allowed/PUBLIC     lets in whoever has the secret to this public key, in hex; holds the key's name

The door looks for the last at each handshake and at each message, so that what is made or revoked counts at once.
"""

import os

from accord import errors, jsontext, place
from accord.model import timestamp
from accord.services.hub import HubFiles
from accord.store.local import folder
from accord.store.local.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Pair = tuple[str, str]  # public and secret, as ZeroMQ writes keys (Z85)
    T = TypeVar("T")

LOCAL = "tcp://127.0.0.1:"  # before the port

_PATIENCE_S = 10.0
_MOST_BYTES = 4096
_Z85_LENGTH = 40


class Keys:
    def __init__(self, home: str) -> None:
        self.path = f"{HubFiles(home).folder}/keys"
        self._own = f"{self.path}/hub.json"
        self._allowed = f"{self.path}/allowed"

    def own(self) -> "Pair":
        """The hub's pair, made when there is none."""
        return self._alone(self._make_own)

    def make(self, name: str, endpoint: str) -> "dict[str, Any]":
        """A new pair, let in from now on. The secret is in the file at `path`, and nowhere else."""
        return self._alone(lambda: self._make(name, endpoint))

    def move(self, endpoint: str) -> "list[str]":
        """Let the files that lie here name where the hub is now; the names of those that said otherwise."""
        return self._alone(lambda: [name for name in self._names() if self._move(name, endpoint)])

    def revoke(self, name: str) -> "dict[str, Any]":
        """Let a key in no more."""
        return self._alone(lambda: self._revoke(name))

    def listed(self) -> "list[dict[str, Any]]":
        """Those that are let in, by name."""
        found = [{"name": self.name_of(public), **self._about(public)} for public in self._publics()]
        return sorted((key for key in found if key["name"]), key=lambda key: str(key["name"]))

    def name_of(self, public: str) -> str:
        """The name of a key that is let in, by its public half in hex; "" for any other."""
        return _read(f"{self._allowed}/{public}").decode("utf-8", "replace").strip()

    def is_allowed(self, public: str) -> bool:
        return os.path.exists(f"{self._allowed}/{public}")

    def _make_own(self) -> "Pair":
        found = _read(self._own)
        if not found:
            public, secret = _new_pair()
            _write(self._own, jsontext.dumps({"public": public, "secret": secret}))
            return public, secret
        try:
            pair: Any = jsontext.loads(found)
            public, secret = pair["public"], pair["secret"]
            _hex(public), _hex(secret)
        except (errors.InvalidJson, KeyError, TypeError, ValueError):
            reason = "it holds no pair of keys; once it is removed the hub makes another, and agents need new keys too"
            raise errors.InvalidConfig(path=self._own, reason=reason) from None
        return public, secret

    def _make(self, name: str, endpoint: str) -> "dict[str, Any]":
        if self._named(name):
            raise errors.KeyExists(name=name)
        public, secret = _new_pair()
        shown = {"name": name, "server": self._make_own()[0], "public": public, "endpoint": endpoint}
        path = f"{self.path}/{name}.json"
        _write(path, jsontext.dumps({**shown, "secret": secret}))
        _write(f"{self._allowed}/{_hex(public)}", name)
        return {**shown, "path": path}

    def _revoke(self, name: str) -> "dict[str, Any]":
        found = self._named(name)
        if not found:
            raise errors.KeyNotFound(name=name)
        for public in found:
            folder.unlink_if_there(f"{self._allowed}/{public}")
        folder.flush_folder(self._allowed)
        folder.unlink_if_there(f"{self.path}/{name}.json")
        return {"name": name}

    def _move(self, name: str, endpoint: str) -> bool:
        path = f"{self.path}/{name}.json"
        try:
            key: Any = jsontext.loads(_read(path))
            old = key["endpoint"]
        except (errors.AccordError, KeyError, TypeError):
            return False  # it was moved to where the agent runs, or is somebody's own
        if old == endpoint or not str(old).startswith(LOCAL):
            return False  # as it should be, or made to lead here by another way
        _write(path, jsontext.dumps({**key, "endpoint": endpoint}))
        return True

    def _names(self) -> "list[str]":
        return sorted({name for public in self._publics() if (name := self.name_of(public))})

    def _named(self, name: str) -> "list[str]":
        return [public for public in self._publics() if self.name_of(public) == name]

    def _publics(self) -> "list[str]":
        try:
            return [file for file in os.listdir(self._allowed) if not file.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise folder.refusal(error, self._allowed) from None

    def _about(self, public: str) -> "dict[str, str]":
        from zmq.utils import z85

        try:
            made_at = timestamp(os.stat(f"{self._allowed}/{public}").st_mtime)
            return {"public": z85.encode(bytes.fromhex(public)).decode(), "made_at": made_at}
        except (FileNotFoundError, ValueError):
            return {"public": "", "made_at": ""}  # it was revoked just now, or is no key at all

    def _alone(self, work: "Callable[[], T]") -> "T":
        """Do it while nobody else makes or revokes."""
        folder.make_folder(self.path, secret=True)
        if not place.is_private(self.path):
            raise errors.DataDirError(path=self.path, errno=1, reason="it is not this user's alone")
        folder.make_folder(self._allowed)
        gate = Gate(f"{self.path}/.lock")
        try:
            gate.acquire(_PATIENCE_S)
            try:
                return work()
            finally:
                gate.release()
        finally:
            gate.close()


def _new_pair() -> "Pair":
    import zmq

    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


def _hex(key: str) -> str:
    """A key, as a file may be called."""
    from zmq.utils import z85

    if len(key) != _Z85_LENGTH:
        raise ValueError(key)
    return z85.decode(key).hex()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise folder.refusal(error, path) from None


def _write(path: str, text: str) -> None:
    """Put a whole file there, durably."""
    where, name = os.path.split(path)
    staged = f"{where}/.{name}"  # whoever writes is alone
    folder.unlink_if_there(staged)
    fd = folder.open_private(staged, os.O_WRONLY | os.O_CREAT)
    try:
        os.write(fd, text.encode() + b"\n")
        os.fsync(fd)
        os.rename(staged, path)
        folder.flush_folder(where)
    except OSError as error:
        folder.unlink_if_there(staged)
        raise folder.refusal(error, path) from None
    finally:
        os.close(fd)
