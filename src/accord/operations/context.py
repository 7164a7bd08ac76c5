"""Who calls, on which home, with which settings."""

import os
import time

from accord import errors
from accord.home import DEFAULT, Home
from accord.model import HUMAN, timestamp
from accord.operations import AGENT, OPERATOR
from accord.services.agents import Actor, check_token
from accord.services.halt import Halt
from accord.settings import Settings
from accord.store.open import open_store
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.store.protocols import Store


class Context:
    def __init__(self, env: "Mapping[str, str]", cwd: str = "", home: str = "", engine: str = "") -> None:
        user_home = env.get("HOME") or os.path.expanduser("~")
        path = home or env.get("ACCORD_HOME") or f"{user_home}{DEFAULT[1:]}"
        self.home = Home(os.path.join(cwd, path))
        self.cwd = cwd
        self.halt = Halt(user_home)
        self.settings = Settings(self.home.path, cwd, env, {"engine": engine} if engine else {})
        self.agent = env.get("ACCORD_AGENT", "").lower()  # "": a person, or a program of theirs
        self._token = env.get("ACCORD_TOKEN", "")
        self._tokens: dict[str, str] = {}  # as they were when first needed: who is taken over shall notice
        self._store: Store | None = None

    @property
    def right(self) -> str:
        """Agents never have the operator's, even where they could read the token."""
        return OPERATOR if not self.agent and self.home.operator_token() else AGENT

    @property
    def store(self) -> "Store":
        if self._store is None:
            self.home.make()
            self._store = open_store(str(self.settings["engine"]) or f"sqlite:{self.home.path}/store.db")
            self._store.patience_s = self.settings["lock_timeout_s"]
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def actor(self, name: str) -> Actor:
        """Somebody who acts, with the token that the caller has for them."""
        if name == HUMAN:
            if self.right != OPERATOR:
                raise errors.NotPermitted(operation="acting as human", agent=self.agent or "without its token")
            return Actor(HUMAN)
        token = self._token if self.agent in ("", name) else ""
        if not token:
            token = self._tokens[name] = self._tokens.get(name) or self.home.token(name)
        return Actor(name, token, self.halt.count(), self.home.token_path(name))

    def forget_token(self, name: str) -> None:
        """After it was registered or given back here."""
        self._tokens.pop(name, None)

    def check_reader(self, name: str) -> None:
        """Only whoever may act as somebody may read their inbox."""
        actor = self.actor(name)
        if name != HUMAN:
            transact(self.store, lambda tx: check_token(tx, actor))

    def now(self) -> str:
        return timestamp(time.time())

    def revision(self) -> str:
        """Where the store stands: what a reader may keep, and watch from."""
        with self.store.snapshot() as snapshot:
            return f"{snapshot.epoch}.{snapshot.revision}"
