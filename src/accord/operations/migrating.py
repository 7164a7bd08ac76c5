"""A migration as a home sees it: both stores by their URLs, and what lies beside them in the home."""

from accord import errors
from accord.operations.context import all_tokens_of
from accord.place import OTHER_PASSWORD_VARIABLE
from accord.services import chain, migrate
from accord.store.open import is_there, open_store
from accord.store.remote import login

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.operations import results
    from accord.operations.context import Context
    from accord.services.migrate import Done, Migration
    from accord.services.migrate.reading import Amount
    from accord.store.protocols import Store


class Plan:
    def __init__(self, context: "Context", source: str, target: str) -> None:
        self._context = context
        self._source = context.settings.placed_engine(source, "--from")
        self._target = context.settings.placed_engine(target, "--to")
        self._opened: list[Store] = []
        for url in (self._source, self._target):
            if url.partition(":")[0] == "memory":
                reason = f"What is in {url} is gone when this command ends"
                raise errors.Usage(reason=reason, see="accord migrate --help")

    def look(self) -> "results.Migration":
        """How much there is, and what would keep it from being copied. Nothing is made or changed."""
        problems = []
        try:
            source = self._open_source()
            amount = migrate.count(source, self._source)
            for check in (self._check_hub, self._check_target):
                try:
                    check()
                except errors.AccordError as error:
                    problems.append(error)
        finally:
            self._close()
        return self._result("counted", amount, problems=problems)

    def run(self) -> "results.Migration":
        try:
            source = self._open_source()
            self._check_hub()
            migration = self._to(source)
            tokens: list[int] = []
            done = migration.run(lambda epoch: tokens.append(self._carry(migration, epoch)), self._context.progress)
        finally:
            self._close()
        return self._result(done.how, done.amount, done, sum(tokens))

    def _open(self, url: str) -> "Store":
        self._opened.append(open_store(self._complete(url)))
        return self._opened[-1]

    def _complete(self, url: str) -> str:
        """With its password. Of two engines elsewhere each has its own: none is shown to the other's server."""
        settings = self._context.settings
        second = self._source if self._target == settings["engine"] else self._target
        if url != second or any(login.is_local(one) for one in (self._source, self._target)):
            return settings.complete(url)
        return login.join(url, settings.variable(OTHER_PASSWORD_VARIABLE))

    def _open_source(self) -> "Store":
        """Refused before anything is made of the target."""
        if not is_there(self._source):
            raise errors.NothingToMigrate(path=self._source)
        source = self._open(self._source)
        migrate.origin_of(source, self._source)
        return source

    def _close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _to(self, source: "Store") -> "Migration":
        return migrate.Migration(source, self._source, self._open(self._target), self._target)

    def _check_hub(self) -> None:
        """It keeps its store open, whatever the settings say by then."""
        found = self._context.hub.status()
        if found["running"]:
            raise errors.HubRunning(home=self._context.home.path, pid=found["pid"])

    def _check_target(self) -> None:
        if is_there(self._target):
            self._to(self._opened[0]).look()

    def _carry(self, migration: "Migration", epoch: str) -> int:
        """What the home has of the source, for the copy: the tokens of agents, and the chain of the audit."""
        home, timeout_s = self._context.home, self._context.settings["lock_timeout_s"]
        chain.carry_on(home.path, migration.origin.epoch, epoch)
        targets = all_tokens_of(home, self._target)
        counts = [
            tokens.copy_to(target, timeout_s) for tokens in all_tokens_of(home, self._source) for target in targets
        ]
        return max(counts)

    def _result(
        self,
        how: str,
        amount: "Amount",
        done: "Done | None" = None,
        tokens: int = 0,
        problems: "list[errors.AccordError] | None" = None,
    ) -> "results.Migration":
        return {
            "source": self._source,
            "target": self._target,
            "how": how,
            "collections": amount.collections,
            "items": amount.items,
            "bytes": amount.bytes,
            "checksum": amount.checksum,
            "revision": done.revision if done else None,
            "copied_to": done.copied_to if done else None,
            "mended": done.mended if done else 0,
            "tokens": tokens,
            "problems": [{"error_code": error.code, "error_message": str(error)} for error in problems or ()],
        }
