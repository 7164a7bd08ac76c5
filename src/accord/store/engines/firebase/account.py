"""Who asks: nobody in particular, the emulator's owner, or a service account with a token that lasts an hour."""

import os
import stat
import time
from _thread import allocate_lock
from binascii import b2a_base64

from accord import errors, jsontext
from accord.store.remote.http import Client, Endpoint, NoAnswer, NotSent, NotTrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from cryptography.hazmat.primitives.asymmetric import rsa

    class Account(Protocol):
        can_refresh: bool

        def token(self, fresh: bool = False) -> str:
            """What follows `Bearer`; "" when nobody asks in particular. `fresh`: the last one was refused."""
            ...

        def close(self) -> None: ...


SCOPES = "https://www.googleapis.com/auth/userinfo.email https://www.googleapis.com/auth/firebase.database"
GRANT = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"

_LIVES_S = 3600
_EARLY_S = 300.0  # before a token's end a new one is asked for
_TRIES = 3


class Nobody:
    can_refresh = False

    def token(self, fresh: bool = False) -> str:
        return ""

    def close(self) -> None:
        pass


class Owner(Nobody):
    def token(self, fresh: bool = False) -> str:
        return "owner"


class Service:
    """Signs with its key that it is itself, and is given a token for that."""

    can_refresh = True

    def __init__(self, path: str, place: str) -> None:
        self._place = place
        self._lock = allocate_lock()
        self._token = ""
        self._until = 0.0  # on the monotonic clock
        self._key: rsa.RSAPrivateKey | None = None
        self._facts = _read(path)
        host, self._path = _split(self._facts["token_uri"], path)
        self._client = Client([host])

    def token(self, fresh: bool = False) -> str:
        with self._lock:
            if fresh or time.monotonic() >= self._until:
                self._token, lives_s = self._exchange()
                self._until = time.monotonic() + max(lives_s / 2, lives_s - _EARLY_S)
            return self._token

    def close(self) -> None:
        self._client.close()

    def _exchange(self) -> "tuple[str, float]":
        body = f"grant_type={GRANT}&assertion={self._assertion()}".encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        for left in reversed(range(_TRIES)):
            try:
                answer = self._client.request("POST", self._path, body, headers, timeout_s=20.0, safe=True)
            except NotTrusted as error:
                raise self._refused(str(error)) from None
            except (NotSent, NoAnswer) as error:
                if not left:
                    raise errors.EngineUnreachable(path=self._facts["token_uri"], reason=str(error)) from None
                continue
            if answer.status == 200:
                found: Any = jsontext.loads(answer.body)
                return found["access_token"], float(found.get("expires_in", _LIVES_S))
            if answer.status < 500 or not left:
                break
        raise self._refused(f"{self._facts['token_uri']} answers {answer.status} to the service account's key")

    def _assertion(self) -> str:
        now = int(time.time())  # which is what the other end looks at
        head = {"alg": "RS256", "typ": "JWT", "kid": self._facts.get("private_key_id", "")}
        claims = {
            "iss": self._facts["client_email"],
            "scope": SCOPES,
            "aud": self._facts["token_uri"],
            "iat": now,
            "exp": now + _LIVES_S,
        }
        text = ".".join([_base64(jsontext.dumps(part).encode()) for part in (head, claims)])
        return f"{text}.{_base64(self._signed(text.encode()))}"

    def _signed(self, text: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        if self._key is None:
            self._key = self._read_key()
        return self._key.sign(text, padding.PKCS1v15(), hashes.SHA256())

    def _read_key(self) -> "rsa.RSAPrivateKey":
        from cryptography.hazmat.primitives.asymmetric import rsa
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(self._facts["private_key"].encode(), None)
        except ValueError:
            raise self._refused("the private key of the service account cannot be read") from None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise self._refused("the private key of the service account is not one of RSA")
        return key

    def _refused(self, reason: str) -> errors.EngineRefused:
        return errors.EngineRefused(path=self._place, reason=reason)


def _read(path: str) -> "dict[str, str]":
    """What the file of a service account says; nobody else may read it."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(65536)
    except OSError as error:
        raise errors.InvalidConfig(path=path, reason=error.strerror) from None
    if stat.S_IMODE(mode) & 0o077:
        raise errors.InvalidConfig(path=path, reason="others may read the key in it: chmod 600 it")
    try:
        facts: Any = jsontext.loads(text)
        if all(isinstance(facts[name], str) for name in ("client_email", "private_key", "token_uri")):
            return facts  # type: ignore[no-any-return]
    except (errors.InvalidJson, KeyError, TypeError):
        pass
    raise errors.InvalidConfig(path=path, reason="it is not the key of a service account, as Google's console makes it")


def _split(url: str, path: str) -> "tuple[Endpoint, str]":
    scheme, _, rest = url.partition("://")
    host, _, target = rest.partition("/")
    name, colon, port = host.partition(":")
    secure = scheme == "https"
    if not (secure or (scheme == "http" and name in ("127.0.0.1", "localhost"))) or (colon and not port.isdecimal()):
        raise errors.InvalidConfig(path=path, reason=f"its token_uri is {url}")
    return Endpoint(name, int(port) if colon else 443 if secure else 80, secure), f"/{target}"


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode().translate(str.maketrans("+/", "-_", "="))
