"""Who calls, on which home, with which settings."""

import os
import time

from accord import errors, jsontext, place
from accord.home import Home
from accord.model import HUMAN, read_own_identity, timestamp
from accord.operations import AGENT, OPERATOR, find
from accord.services.agents import Actor, check_engaged, check_may_act, check_token, hash_token
from accord.services.audited import ELSEWHERE, Audited, note
from accord.services.chain import Keeper
from accord.services.halt import Halt
from accord.settings import Settings
from accord.store.contract import KEY_ITEM, UNFINISHED
from accord.store.open import open_store
from accord.store.transaction import First, transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol, TypeVar

    from accord.home import Tokens
    from accord.store.contract import Item
    from accord.store.protocols import Store
    from accord.store.transaction import Transaction

    T = TypeVar("T")

    class Hub(Protocol):
        """What operations ask of a hub."""

        def status(self) -> dict[str, Any]: ...

        def answers(self) -> bool: ...

        def stop(self, deadline_s: float) -> bool: ...

        def listeners(self) -> dict[str, dict[str, Any]]: ...

        def listener(self, name: str) -> dict[str, Any] | None: ...

    class Caller(Protocol):
        """Who calls, and what they can show for it."""

        agent: str  # "": a person, or a program of theirs
        request: str  # their own name for this call, so that asking again does nothing twice; "": none
        uid: int  # the user they run as

        def is_operator(self, what: str = "") -> bool:
            """Whether they are, for one operation, or for everything."""
            ...

        def token_of(self, name: str) -> str:
            """What they can show to act as somebody; "" when there is nothing."""
            ...


class Owner:
    """Whoever can read the files of the home: they show what lies there."""

    def __init__(self, home: Home, settings: Settings, env: "Mapping[str, str]", request: str = "") -> None:
        self.agent = agent_of(env)
        self.request = request
        self.uid = os.geteuid()
        self._home = home
        self._settings = settings
        self._token = env.get("ACCORD_TOKEN", "")

    def is_operator(self, what: str = "") -> bool:
        """Agents never are, even where they could read the token."""
        if self.agent:
            return False
        self._home.make()  # a home that cannot be used is another matter than one whose token is hidden
        return bool(self._home.operator_token())

    def token_of(self, name: str) -> str:
        return self._token or tokens_of(self._home, self._settings).read(name)


class Context:
    def __init__(
        self,
        home: Home,
        halt: Halt,
        settings: Settings,
        caller: "Caller",
        open: "Callable[[], Store]",
    ) -> None:
        self.home = home
        self.halt = halt
        self.settings = settings
        self.caller = caller
        self.operation = ""  # that is being done
        self.given: Mapping[str, object] = {}  # its parameters
        self.halts = False  # whether a HALT stops it, and who was there at one must be engaged first
        self._tx: Transaction | None = None  # that it is a step of
        self._made: list[int] = []  # numbers of the audit's entries that the operation made
        self._witness: Keeper | None = None  # that goes on with the audit's chain; a hub has its own
        self._open = open
        self.hashes: dict[str, str] = {}  # of tokens as they were when first needed: who is taken over shall notice
        self._opened: list[Store] = []  # one, once it was needed; shared by all operations of this caller
        self._closed: list[bool] = []  # with something in it, once it is
        self.progress: Callable[[int, int], None] = _unseen  # called in long work, with how much of how much is done
        self.is_gone: Callable[[], bool] = _never  # whether nobody waits for the answer any more
        self._hub: Hub | None = None

    @property
    def agent(self) -> str:
        return self.caller.agent

    @property
    def who(self) -> str:
        """What the audit calls the caller."""
        return self.agent or f"uid:{self.caller.uid}"

    @property
    def right(self) -> str:
        return OPERATOR if self.caller.is_operator() else AGENT

    def during(self, operation: str, given: "Mapping[str, object]") -> "Context":
        """The same, for one operation."""
        other = Context.__new__(Context)
        other.__dict__.update(self.__dict__)
        other.operation = operation
        other.given = given
        other._made = []
        other.halts = find(operation).halts  # type: ignore[attr-defined]
        return other

    def within(self, tx: "Transaction", operation: str, given: "Mapping[str, object]") -> "Context":
        """The same, for one operation that is a step of a transaction."""
        other = self.during(operation, given)
        other._tx = tx
        return other

    def _raw_store(self) -> "Store":
        if not self._opened:
            if self._closed:
                raise errors.StoreClosed(path=self.home.path)
            self._opened.append(self._open())
        return self._opened[0]

    @property
    def store(self) -> "Store":
        store = self._raw_store()
        return Audited(store, self.who, self.caller.uid, self.operation, self._made) if self.operation else store

    @property
    def hub(self) -> "Hub":
        """The home's hub: the one that this runs in, or what can be learnt of it from outside."""
        if self._hub is None:
            from accord.services.hub import Outside

            self._hub = Outside(self.home.path)
        return self._hub

    @hub.setter
    def hub(self, hub: "Hub") -> None:
        self._hub = hub

    def listeners(self) -> "dict[str, dict[str, Any]]":
        """Who is connected to the hub and listens, by name."""
        return self.hub.listeners() if self._may_have_hub() else {}

    def listener(self, name: str) -> "dict[str, Any] | None":
        """Who of that name is connected to the hub and listens."""
        return self.hub.listener(name) if self._may_have_hub() else None

    def _may_have_hub(self) -> bool:
        return self._hub is not None or os.path.exists(place.socket_path(self.home.path))

    @property
    def tokens(self) -> "Tokens":
        """Of the agents in this store."""
        return tokens_of(self.home, self.settings)

    def close(self) -> None:
        self._closed.append(True)
        while self._opened:
            store = self._opened.pop()
            if self._witness is not None:
                self._witness.catch_up(store)
            store.close()

    def change(self, work: "Callable[[Transaction], T]", rivals: bool = False) -> "T":
        """Have the operation's change made, once for each request; an agent that waits to be engaged starts nothing.

        `rivals`: others most likely change the same at the same time.
        """
        if self._tx is not None:
            return work(self._tx)
        halts = self.halt.count() if self.agent and self.halts else 0

        def checked(tx: "Transaction") -> "T":
            if halts:
                check_engaged(tx, self.agent, halts)
            return work(tx)

        key = self.key(self.operation)
        params = b"" if key is None else jsontext.dumps(self.given).encode()
        while True:
            try:
                return transact(self.store, checked, key, params, rivals=rivals)
            except First as first:
                transact(self.store, first.work)

    def witness(self, has_changed: bool) -> None:
        """After an operation: have the audit's chain follow, and note what was read where that is wanted."""
        if has_changed and self.operation in ELSEWHERE:
            self._note_change_elsewhere()
        if self._made and self._witness is not None:
            self._witness.changed(self._opened[0], self._made[-1])
        if not has_changed and self._opened and self.settings["audit"] == "reads":
            note(self._opened[0], self.who, self.caller.uid, self.operation, self.given)

    def _note_change_elsewhere(self) -> None:
        """What lies in files has no commit of its own. A HALT must not fail, or make a home, for want of an entry."""
        try:
            if os.path.isdir(self.home.path):
                self._made += note(self._raw_store(), self.who, self.caller.uid, self.operation, self.given)
        except errors.AccordError:
            pass

    def check_halt(self) -> None:
        """For what goes on for a while: a HALT that came meanwhile stops it."""
        function: Any = find(self.operation)
        if self.halts and not self.given.get(function.unless):
            self.halt.check()

    def key(self, what: str) -> str | None:
        """A name of one change that this call makes, by which it is made once; None where the caller gave none."""
        return f"{what} {self.caller.request}" if self.caller.request else None

    def actor(self, name: str) -> Actor:
        """Somebody who acts, with the token that the caller has for them."""
        if name == HUMAN:
            if not self.caller.is_operator(self.operation or "mail.listen"):
                raise errors.NotPermitted(operation="acting as human", agent=self.agent or "without its token")
            return Actor(HUMAN)
        if self.agent not in ("", name):
            raise errors.NotPermitted(operation=f"acting as {name}", agent=self.agent)
        return self.holder(name)

    def holder(self, name: str) -> Actor:
        """An agent, with the token that the caller has for it, whoever the caller says that it is."""
        known = self.hashes.get(name, "")
        if not known:
            token = self.caller.token_of(name)
            known = hash_token(token) if token else ""
            if known:
                self.hashes[name] = known
        return Actor(name, known, self.halt.count(), self.tokens.path_of(name))

    def forget_token(self, name: str) -> None:
        """After it was registered or given back here."""
        self.hashes.pop(name, None)

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


def local(env: "Mapping[str, str]", cwd: str = "", home: str = "", engine: str = "", request: str = "") -> Context:
    """The context of a call that is made in this process."""
    there = Home(_absolute(cwd, home, env))
    flags = {"engine": engine} if engine else {}
    settings = Settings(there.path, cwd, env, flags)
    caller = Owner(there, settings, env, request)
    context = Context(there, Halt(place.user_home(env)), settings, caller, lambda: open_in(there, settings))
    context._witness = Keeper(there.path)
    return context


def open_in(home: Home, settings: Settings) -> "Store":
    """The store of a home."""
    home.make()
    engine = engine_of(home, settings)
    store = _readable(open_store(settings.complete(engine)), settings.encryption_key(), engine)
    store.patience_s = settings["lock_timeout_s"]
    return store


def _readable(store: "Store", key: bytes, engine: str) -> "Store":
    """The store with its key, if it has one; not a copy that is not whole yet."""

    def look(tx: "Transaction") -> "tuple[Item | None, Item | None, str]":
        return tx.get(*KEY_ITEM, check=False), tx.get(*UNFINISHED, check=False), tx.revision

    named, unfinished, revision = transact(store, look, expected=(KEY_ITEM, UNFINISHED))
    if unfinished is not None:
        raise errors.MigrationUnfinished(path=engine, source=unfinished.value.decode())
    if key:
        from accord.store.wrap.encrypted import encrypted

        return encrypted(store, key, engine)
    if named is not None:
        raise errors.KeyNeeded(path=engine, key=named.value.decode())
    if revision.endswith(".0"):
        from accord.store.wrap.unnamed import unnamed

        return unnamed(store, engine)
    return store


def engine_of(home: Home, settings: Settings) -> str:
    """The URL of the home's store, without its password: it may be shown."""
    return settings["engine"] or f"sqlite:{home.path}/store.db"


def tokens_of(home: Home, settings: Settings) -> "Tokens":
    return home.tokens(_folder_of(settings["engine"]))


def all_tokens_of(home: Home, engine: str) -> "list[Tokens]":
    """Of the agents in a store, wherever they can lie: the home's own store need not be named in the settings."""
    folders = [_folder_of(engine)]
    kind, _, path = engine.partition(":")
    if kind == "sqlite" and os.path.realpath(os.path.expanduser(path)) == os.path.realpath(f"{home.path}/store.db"):
        folders.append(_folder_of(""))
    return [home.tokens(folder) for folder in folders]


def _folder_of(engine: str) -> str:
    if "@" in engine or "?" in engine:
        from accord.store.remote.login import place_of

        engine = place_of(engine)
    return hash_token(engine)[:16] if engine else ""


def agent_of(env: "Mapping[str, str]") -> str:
    """The agent that a process says it is; "": it says nothing. What no agent can be called is refused."""
    named = env.get("ACCORD_AGENT", "")
    return read_own_identity(named) if named else ""


def _never() -> bool:
    return False


def _unseen(done: int, total: int) -> None:
    """Nobody looks on."""


def _absolute(cwd: str, named: str, env: "Mapping[str, str]") -> str:
    """Where a home lies that a person named."""
    path = place.home_path(named, cwd, env)
    reason = ""
    if path.startswith("~"):
        reason = "$HOME is not set"
    elif not os.path.isabs(path):
        reason = "the working directory is gone"
    elif not _is_text(path):
        reason = "its name is not UTF-8"
    if reason:
        raise errors.DataDirError(path=path, errno=2, reason=reason)
    return path


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
