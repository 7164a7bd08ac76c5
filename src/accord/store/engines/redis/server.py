"""The server behind a store: its connections, what each finds out when it begins, and what is tried again."""

import hashlib
import time

from accord import errors
from accord.store.contract import LOCK_WAIT_S, new_epoch
from accord.store.engines.redis import scripts
from accord.store.engines.redis.address import Address
from accord.store.engines.redis.facts import Facts, facts_of
from accord.store.engines.redis.wire import Elsewhere, Lost, NoScript, Wire, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from accord.store.engines.redis.wire import Reply

    T = TypeVar("T")

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_MOST_MOVES = 5  # from node to node of a cluster, before one answers
_SLACK_S = 1.0  # servers that wait look at their clocks some times a second
_STALE = b"stale"


class Script:
    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode()


class Stale(Exception):
    """The store was made or loaded anew: the keys have other names by now."""


class Keys:
    """The names of all keys."""

    def __init__(self, root: bytes, gen: bytes) -> None:
        self.gen = gen
        self.meta = root
        self.log = self.meta + b":log"
        base = b"%b:%b:" % (self.meta, gen)
        self.heads = base + b"heads"
        self.names = base + b"names"
        self.items = base + b"items:"
        self.ids = base + b"ids:"


class Server:
    """Threads share it; each uses a connection of its own while it asks."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.facts = Facts()
        self.epoch = b""
        self.keys = Keys(address.root, b"")
        self._seen = (b"", 0, b"0")  # the newest that an answer showed: epoch, revision, its place in the log
        self._idle: list[Wire] = []
        self._node = address.nodes[0] if address.nodes else None
        self._closed = False

    def read(self, script: Script, keys: "Callable[[Keys], Sequence[bytes]]", arguments: "Sequence[bytes]") -> "Reply":
        """The script's answer, asked for until it comes or patience is over. Its first argument is added here."""

        def ask(wire: Wire, timeout_s: float) -> "Reply":
            names = self.keys
            return self.run(wire, script, keys(names), (names.gen, *arguments), timeout_s)[0]

        return self.patiently(ask)

    def patiently(
        self, ask: "Callable[[Wire, float], T]", patience_s: float = LOCK_WAIT_S, repeatable: bool = True
    ) -> "T":
        """Ask on a connection, and on a new one when that broke; what is not repeatable, only if it was not done."""
        deadline = time.monotonic() + patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            left_s = max(0.001, deadline - time.monotonic())
            try:
                return self.once(ask, left_s)
            except Lost as lost:
                if lost.unsure and not repeatable:
                    reason = self.address.without_password(lost.reason)
                    raise errors.OutcomeUnknown(path=self.address.shown, reason=reason) from None
                if time.monotonic() + pause_s >= deadline:
                    raise self.unreachable(lost) from None
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def once(self, ask: "Callable[[Wire, float], T]", left_s: float) -> "T":
        """Ask on a connection that was alive just now."""
        wire = self.take()
        try:
            found = ask(wire, min(left_s, self.address.timeout_s))
        except errors.AccordError:
            self.give_back(wire)  # its answer was read to the end
            raise
        except BaseException as error:
            wire.close()
            if isinstance(error, Lost):
                self._close_idle()  # those of a server that is gone, or that has nothing to say any more
            raise
        self.give_back(wire)
        return found

    def run(
        self,
        wire: Wire,
        script: Script,
        keys: "Sequence[bytes]",
        arguments: "Sequence[bytes]",
        timeout_s: "float | None" = None,
        then: bytes = b"",
    ) -> "list[Reply]":
        """The script's answer and, if there is a command to send with it, which may wait as long again, that one's."""
        if then:
            timeout_s = (timeout_s or 0.0) + self.address.timeout_s + _SLACK_S
        rest = (b"%d" % len(keys), *keys, *arguments)
        commands = (then,) if then else ()
        try:
            found = wire.ask(pack(b"EVALSHA", script.sha, *rest), *commands, timeout_s=timeout_s)
        except NoScript:
            found = wire.ask(pack(b"EVAL", script.text, *rest), *commands, timeout_s=timeout_s)
        if found[0] == _STALE:
            self._begin(wire)
            raise Stale
        return found

    def take(self) -> Wire:
        while True:
            try:
                wire = self._idle.pop()
            except IndexError:
                return self.connect()
            if not wire.is_dead():
                return wire
            wire.close()

    def give_back(self, wire: Wire) -> None:
        if self._closed:
            wire.close()
        else:
            self._idle.append(wire)

    def connect(self) -> Wire:
        """A new connection, to the node that has the slot and takes writes; each that the URL names is tried once."""
        moves, losses = 0, 0
        while True:
            try:
                return self._connect_to(self._node)
            except Elsewhere as elsewhere:
                self._node = elsewhere.node
                moves += 1
                if moves > _MOST_MOVES:
                    raise
            except Lost:
                self._node = self._next_node()
                losses += 1
                if losses >= len(self.address.nodes):
                    raise

    def saw(self, epoch: bytes, revision: int, place: bytes) -> None:
        """Remember it: a new connection finds out whether it is still there."""
        self.epoch = epoch
        if epoch != self._seen[0] or revision > self._seen[1]:
            self._seen = (epoch, revision, place)

    def unreachable(self, lost: Lost) -> errors.EngineUnreachable:
        return errors.EngineUnreachable(path=self.address.shown, reason=self.address.without_password(lost.reason))

    def close(self) -> None:
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        while True:
            try:
                self._idle.pop().close()
            except IndexError:  # another thread may have taken the last
                return

    def _connect_to(self, node: "tuple[str, int] | None") -> Wire:
        wire = Wire(self.address, node)
        try:
            # Those of this wire: another thread may be connecting to another server.
            self.facts = wire.facts = facts_of(wire, self.address)
            self._begin(wire)
        except BaseException as error:
            wire.close()
            if isinstance(error, Lost):
                error.unsure = False  # what shall be done was not sent yet
            raise
        return wire

    def _next_node(self) -> "tuple[str, int] | None":
        """Where to try next: all that the URL names in turn, since a cluster may have lost the one it named."""
        nodes = self.address.nodes
        if not nodes:
            return None
        place = nodes.index(self._node) + 1 if self._node in nodes else 0
        return nodes[place % len(nodes)]

    def _begin(self, wire: Wire) -> None:
        """Learn of which epoch the store is now; make it if it is not there."""
        facts = wire.facts
        epoch, revision, place = self._seen
        arguments = (
            b"%d" % scripts.FORMAT,
            new_epoch().encode(),
            facts.line,
            facts.run,
            b"%d" % facts.had_other_line,
            b"%d" % facts.restarts_lose_nothing,
            epoch,
            b"%d" % revision,
            place,
        )
        keys = Keys(self.address.root, b"")
        found = self.run(wire, OPEN, (keys.meta, keys.log), arguments)[0]
        if found[0] == b"format":
            raise errors.StoreTooNew(path=self.address.shown, found=int(found[1]), known=scripts.FORMAT)
        if found[0] == b"denied":
            raise self.address.refused(f"its user may not use {found[1].decode()}")
        self.epoch = found[0]
        if found[1] != self.keys.gen:
            self.keys = Keys(self.address.root, found[1])


OPEN = Script(scripts.OPEN)
