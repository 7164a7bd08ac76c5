"""Where the server is, and as whom to come, as a URL says it."""

import os

from accord import errors
from accord.store.remote import wire
from accord.store.remote.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

_PORT = 6379
_OPTIONS = {
    "prefix": "accord",
    "below": "",  # another store among the keys of that prefix, to which whoever may use the one has rights as well
    "database": "",  # of a server on a socket, whose URL has no other place for it
    "wait": "",
    "waitaof": "",
    "timeout_s": "5",
    "ca": "",
    "cert": "",
    "key": "",
}
_IN_PREFIX = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-")
_LONGEST_PREFIX = 100


class Address:
    def __init__(self, engine: str, text: str) -> None:
        self._place = place = Place(engine, text, _OPTIONS)
        options = place.options
        self.shown = place.shown
        prefix, below = options["prefix"], options["below"]
        if not 0 < len(prefix) <= _LONGEST_PREFIX or not _IN_PREFIX.issuperset(prefix + below):
            raise place.wrong(f"a prefix has 1 to {_LONGEST_PREFIX} letters, digits, _, ., : and -")
        # Braces make a Cluster keep all keys together.
        self.root = f"{{{prefix}}}{':' * bool(below)}{below}".encode()
        self.timeout_s = self._seconds(options["timeout_s"])
        self.replicas = self._numbers("wait", 1)
        self.copies = self._numbers("waitaof", 2)
        if self.replicas and self.copies:
            raise place.wrong("wait and waitaof exclude each other")
        self.is_secure = engine == "rediss"
        self._context: ssl.SSLContext | None = None
        if self.is_secure and not place.hosts:
            raise place.wrong("TLS needs a host")
        self._files = {name: self._file(name) for name in ("ca", "cert", "key") if options[name]}
        database = options["database"] or (place.path if place.hosts else "")
        self.database = self._number("the database", database)
        self.nodes = [place.address(host, _PORT) for host in place.hosts]

    @property
    def socket(self) -> str:
        """Where the server is, if it names no host."""
        return f"/{self._place.path}"

    @property
    def login(self) -> "tuple[bytes, ...]":
        """A user, if there is one, and a password; nothing where neither is given."""
        user, password = self._place.user, self._place.password
        if not user:
            return (password.encode(),) if password else ()
        return user.encode(), password.encode()

    @property
    def shows_none(self) -> bool:
        """It has no certificate of its own to show."""
        return self.is_secure and "cert" not in self._files

    def tls(self) -> "ssl.SSLContext":
        """What to secure connections with."""
        if self._context is None:
            try:
                self._context = wire.tls_context(*[self._files.get(name, "") for name in ("ca", "cert", "key")])
            except OSError as error:
                raise self.refused(f"TLS failed, {wire.words(error)}") from None
        return self._context

    def refused(self, reason: str) -> errors.EngineRefused:
        return errors.EngineRefused(path=self.shown, reason=self.without_password(reason).rstrip("."))

    def without_password(self, reason: str) -> str:
        password = self._place.password
        return reason.replace(password, "...") if password else reason

    def _seconds(self, text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0.0 < seconds <= 3600.0:
            raise self._place.wrong(f"timeout_s is {text!r}, and must be seconds")
        return seconds

    def _numbers(self, name: str, count: int) -> "tuple[int, ...]":
        text = self._place.options[name]
        if not text:
            return ()
        parts = text.split(",")
        if len(parts) != count:
            raise self._place.wrong(f"{name} is {text!r}, and must have {count} number{'s' * (count > 1)}")
        return tuple(self._number(name, part) for part in parts)

    def _number(self, name: str, text: str) -> int:
        if not text:
            return 0
        if not (text.isascii() and text.isdigit() and len(text) < 6):
            raise self._place.wrong(f"{name} is {text!r}, and must be a number")
        return int(text)

    def _file(self, name: str) -> str:
        if not self.is_secure:
            raise self._place.wrong(f"{name} is for TLS: write rediss:// instead of redis://")
        path = os.path.expanduser(self._place.options[name])
        if not os.access(path, os.R_OK):
            raise self._place.wrong(f"{name} names the file {path}, which cannot be read")
        return path
