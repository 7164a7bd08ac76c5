"""One caller, for as long as it is connected, and what it has shown of itself."""

from _operator import _compare_digest
from typing import TYPE_CHECKING

from accord import errors
from accord.home import Home
from accord.model import read_identity

if TYPE_CHECKING:
    from accord.home import Tokens


class Session:
    """A caller that is known by what it shows, never by what it could have read."""

    def __init__(self, home: Home, tokens: "Tokens", pid: int = 0) -> None:
        self.agent = ""
        self.request = ""
        self.pid = pid  # 0: not known
        self.gone = False
        self.hashes: dict[str, str] = {}  # of tokens as they were when first needed, in all contexts of this caller
        self._home = home
        self._tokens = tokens
        self._operator = False
        self._shown: dict[str, str] = {}

    def open(self, agent: str = "", token: str = "", operator: str = "") -> None:
        """Show who it is: an agent by its token, or the operator by theirs. The operator may act as anybody."""
        if operator:
            known = self._home.operator_token()
            if not known or not _compare_digest(operator.encode(), known.encode()):
                raise errors.NotPermitted(operation="session.open", agent="without the operator's token")
        self.hashes = {}
        self._operator = bool(operator) and not agent
        self.agent = read_identity(agent) if agent else ""
        if token:
            self._shown[self.agent] = token

    def is_operator(self) -> bool:
        return self._operator

    def token_of(self, name: str) -> str:
        if self._operator:
            return self._tokens.read(name)
        return self._shown.get(name, "") or self._shown.get("", "")

    def renewed(self, request: str) -> "Session":
        """The same caller, in one request of theirs."""
        other = Session(self._home, self._tokens, self.pid)
        other.agent, other.request = self.agent, request
        other._operator, other._shown, other.hashes = self._operator, self._shown, self.hashes
        return other
