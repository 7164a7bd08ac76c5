"""One caller, for as long as it is connected, and what it has shown of itself."""

from typing import TYPE_CHECKING

from accord import errors, proof
from accord.home import Home
from accord.model import read_identity

if TYPE_CHECKING:
    from accord.home import Tokens


# What a session may do that was opened with a proof, by the purpose that the proof is for. Whoever got hold of it, by
# sitting where the hub should be, can do that and nothing else; all is only for who shows the token itself.
PURPOSES = {
    "hub.stop": ("hub.stop",),
    "listen:human": ("mail.listen", "mail.ack", "mail.hand_over"),
}


class Session:
    """A caller that is known by what it shows, never by what it could have read."""

    def __init__(self, home: Home, tokens: "Tokens", pid: int, uid: int) -> None:
        self.agent = ""
        self.request = ""
        self.uid = uid  # the hub's own, or in a group's home another member's
        self.pid = pid  # 0: not known
        self._life = [True]  # shared by all that this connection ever was
        self.hashes: dict[str, str] = {}  # of tokens as they were when first needed, in all contexts of this caller
        self._home = home
        self._tokens = tokens
        self._operator = False
        self._purpose = ""  # what the operator's right is for; "": everything
        self._shown: dict[str, str] = {}

    def open(self, agent: str = "", token: str = "", operator: str = "", purpose: str = "") -> None:
        """Show who it is: an agent by its token, or the operator by theirs. The operator may act as anybody."""
        if purpose and purpose not in PURPOSES:
            raise errors.Usage(reason=f"There is no purpose {purpose[:100]!r}", see="session.open in docs/rpc.md")
        what = f"session.open {purpose}" if purpose else ""
        if operator and not proof.holds(operator, self._home.operator_token(), what):
            raise errors.NotPermitted(operation="session.open", agent="without the operator's token")
        self.hashes = {}
        self._operator = bool(operator) and not agent
        self._purpose = purpose
        self.agent = read_identity(agent) if agent else ""
        if token:
            self._shown[self.agent] = token

    @property
    def gone(self) -> bool:
        return not self._life[0]

    def end(self) -> None:
        """Nobody is there any more."""
        self._life[0] = False

    def is_operator(self, what: str = "") -> bool:
        return self._operator and (not self._purpose or what in PURPOSES[self._purpose])

    def token_of(self, name: str) -> str:
        if self.is_operator():
            return self._tokens.read(name)
        return self._shown.get(name, "") or self._shown.get("", "")

    def renewed(self, request: str) -> "Session":
        """The same caller, in one request of theirs."""
        other = Session(self._home, self._tokens, self.pid, self.uid)
        other.agent, other.request = self.agent, request
        other._operator, other._purpose = self._operator, self._purpose
        other._shown, other.hashes = self._shown, self.hashes
        other._life = self._life
        return other

    def known_as(self, name: str) -> "Session":
        """The same caller as an agent that it is known to be, and to which it need not show a token."""
        other = self.renewed("")
        other.agent = name
        other.hashes = {}
        other._shown = {name: self._tokens.read(name)}
        return other

    def as_agent(self) -> "Session":
        """The same caller with the right of an agent and no more, whatever it has shown."""
        other = self.renewed("")
        other._operator = False
        return other

    def anew(self) -> "Session":
        """The same connection, to show something else; what was asked before stays as it was asked."""
        other = self.renewed("")
        other._shown = dict(self._shown)
        return other
