"""Who calls, on which home, with which settings."""

import os
import time

from accord import errors
from accord.home import DEFAULT, Home
from accord.model import HUMAN, timestamp
from accord.operations import AGENT, OPERATOR
from accord.services.agents import Actor, check_may_act, check_token, hash_token
from accord.services.halt import Halt
from accord.settings import Settings
from accord.store.open import open_store
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from accord.home import Tokens
    from accord.store.protocols import Store


class Context:
    def __init__(self, env: "Mapping[str, str]", cwd: str = "", home: str = "", engine: str = "") -> None:
        user_home = env.get("HOME") or os.path.expanduser("~")  # which stays "~" where nobody knows
        self.home = Home(_absolute(cwd, home or env.get("ACCORD_HOME") or DEFAULT, user_home))
        self.cwd = cwd
        self.halt = Halt(user_home)
        self.settings = Settings(self.home.path, cwd, env, {"engine": engine} if engine else {})
        self.agent = env.get("ACCORD_AGENT", "").lower()  # "": a person, or a program of theirs
        self._token = env.get("ACCORD_TOKEN", "")
        self._hashes: dict[str, str] = {}  # of tokens as they were when first needed: who is taken over shall notice
        self._store: Store | None = None
        self._closed = False
        self.progress: Callable[[int, int], None] = _unseen  # called in long work, with how much of how much is done

    @property
    def right(self) -> str:
        """Agents never have the operator's, even where they could read the token."""
        if self.agent:
            return AGENT
        self.home.make()  # a home that cannot be used is another matter than one whose token is hidden
        return OPERATOR if self.home.operator_token() else AGENT

    @property
    def store(self) -> "Store":
        if self._store is None:
            if self._closed:
                raise errors.StoreClosed(path=self.home.path)
            self.home.make()
            self._store = open_store(self.settings["engine"] or f"sqlite:{self.home.path}/store.db")
            self._store.patience_s = self.settings["lock_timeout_s"]
        return self._store

    @property
    def tokens(self) -> "Tokens":
        """Of the agents in this store."""
        engine = self.settings["engine"]
        return self.home.tokens(hash_token(engine)[:16] if engine else "")

    def close(self) -> None:
        self._closed = True
        if self._store is not None:
            self._store.close()
            self._store = None

    def actor(self, name: str) -> Actor:
        """Somebody who acts, with the token that the caller has for them."""
        if name == HUMAN:
            if self.right != OPERATOR:
                raise errors.NotPermitted(operation="acting as human", agent=self.agent or "without its token")
            return Actor(HUMAN)
        if self.agent not in ("", name):
            raise errors.NotPermitted(operation=f"acting as {name}", agent=self.agent)
        if name not in self._hashes:
            token = self._token or self.tokens.read(name)
            if not token:
                return Actor(name, "", self.halt.count(), self.tokens.path_of(name))
            self._hashes[name] = hash_token(token)
        return Actor(name, self._hashes[name], self.halt.count(), self.tokens.path_of(name))

    def forget_token(self, name: str) -> None:
        """After it was registered or given back here."""
        self._hashes.pop(name, None)

    def check_reader(self, name: str, peek: bool) -> None:
        """Only whoever may act as somebody may read their inbox; who waits to be engaged may only look."""
        actor = self.actor(name)
        if name != HUMAN:
            transact(self.store, lambda tx: check_token(tx, actor) if peek else check_may_act(tx, actor))

    def now(self) -> str:
        return timestamp(time.time())

    def revision(self) -> str:
        """Where the store stands: what a reader may keep, and watch from."""
        with self.store.snapshot() as snapshot:
            return f"{snapshot.epoch}.{snapshot.revision}"


def _unseen(done: int, total: int) -> None:
    """Nobody looks on."""


def _absolute(cwd: str, path: str, user_home: str) -> str:
    """Where a home lies that a person named."""
    if path == "~" or path.startswith("~/"):
        path = user_home + path[1:]
    full = os.path.join(cwd, path)
    reason = ""
    if path.startswith("~"):
        reason = "$HOME is not set"
    elif not os.path.isabs(full):
        reason = "the working directory is gone"
    elif not _is_text(full):
        reason = "its name is not UTF-8"
    if reason:
        raise errors.DataDirError(path=path, errno=2, reason=reason)
    return full


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
