"""Every error that accord reports: a code, a text that says what happened and then what to do.

    AccordError
    ├── DataDirError         the folder of a store cannot be made or used
    ├── NotAStore            something else lies where the store should be
    ├── StoreTooNew          written by a newer accord
    ├── StoreDamaged         a checksum or the database's own structure is wrong
    ├── StoreForked          a store was opened before a fork and used after it
    ├── StoreClosed          a store was used after close()
    ├── StoreNotEmpty        load() needs an empty store
    ├── StorageFull          no room on the disk
    ├── StorageFailing       the disk reports errors
    ├── LockTimeout          another process holds a lock for too long
    ├── Contention           a transaction met conflicts until its deadline
    ├── OutcomeUnknown       a commit may or may not have happened
    ├── IdReused             a request key came back with other parameters
    ├── HistoryGone          a watcher asked for changes that are no longer kept
    ├── InvalidKey           a collection or id outside the contract's alphabet
    ├── InvalidName          a name that no key can hold
    ├── InvalidJson          text that is not a JSON value accord accepts
    ├── CommitTooLarge       more than one commit may hold
    ├── UnknownEngine        a store's URL names no engine
    └── DriverMissing        the engine's driver is not installed

Each class is one row of the error table: `code` is what programs compare, `rpc` the JSON-RPC number, `exit`
the exit code of the command line, `http` the HTTP status, `text` what people read.
"""


class AccordError(Exception):
    """Base of every error accord reports; `details` holds the names and figures behind the text."""

    code: str = "INTERNAL"
    rpc: int = -32603
    exit: int = 70
    http: int = 500
    text: str = "accord failed in a way it does not know. Run again with -v and report what it shows."

    def __init__(self, **details: object) -> None:
        self.details = details
        super().__init__(self.text.format(**details))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.details)


def _rebuild(kind: type[AccordError], details: dict[str, object]) -> AccordError:
    """An error that came from another process."""
    return kind(**details)


class DataDirError(AccordError):
    code, rpc, exit, http = "DATA_DIR_ERROR", -32010, 73, 500
    text = (
        "{path} cannot be used: {reason}. Make it a folder that you own and may write, or choose another with --home."
    )


class NotAStore(AccordError):
    code, rpc, exit, http = "NOT_A_STORE", -32011, 73, 500
    text = "{path} is not a store of accord: {reason}. Move it away, or choose another place with --engine."


class StoreTooNew(AccordError):
    code, rpc, exit, http = "STORE_TOO_NEW", -32012, 73, 500
    text = "{path} was written by a newer accord (format {found}; this one knows {known}). Upgrade accord."


class StoreDamaged(AccordError):
    code, rpc, exit, http = "STORE_DAMAGED", -32013, 74, 500
    text = "{path} is damaged: {reason}. Stop writing to it and restore it from a backup."


class StoreForked(AccordError):
    code, rpc, exit, http = "STORE_FORKED", -32014, 70, 500
    text = (
        "{path} was opened by process {opened_by} and is used by its child {used_by}. Open the store anew after a fork."
    )


class StoreClosed(AccordError):
    code, rpc, exit, http = "STORE_CLOSED", -32015, 70, 500
    text = "{path} was closed and is used again. Open it anew."


class StoreNotEmpty(AccordError):
    code, rpc, exit, http = "STORE_NOT_EMPTY", -32016, 73, 409
    text = "{path} holds data already, and loading needs an empty store. Choose another place."


class StorageFull(AccordError):
    code, rpc, exit, http = "STORAGE_FULL", -32017, 74, 507
    text = "No room to write at {path}; nothing was changed. Free some space and try again; reading goes on meanwhile."


class StorageFailing(AccordError):
    code, rpc, exit, http = "STORAGE_FAILING", -32018, 74, 500
    text = "The disk under {path} reports an error: {reason}. Nothing was acknowledged. Check the disk, then try again."


class LockTimeout(AccordError):
    code, rpc, exit, http = "LOCK_TIMEOUT", -32019, 75, 503
    text = (
        "Waited {timeout_seconds:g} s for {path}, held by {holder}. "
        "Let that process go on, or end it if it is stuck, and try again."
    )


class Contention(AccordError):
    code, rpc, exit, http = "CONTENTION", -32020, 75, 503
    text = (
        "Others changed the same things {tries} times within {timeout_seconds:g} s; nothing was changed. "
        "Try again, or with a longer timeout."
    )


class OutcomeUnknown(AccordError):
    code, rpc, exit, http = "OUTCOME_UNKNOWN", -32021, 75, 500
    text = "Whether the change at {path} is kept is not known: {reason}. Ask again with the same request id."


class IdReused(AccordError):
    code, rpc, exit, http = "ID_REUSED", -32022, 65, 409
    text = "The request id {key} was used before with other parameters. Make a new id for a new request."


class HistoryGone(AccordError):
    code, rpc, exit, http = "HISTORY_GONE", -32023, 75, 410
    text = (
        "Changes since {since} are no longer kept (they start after {oldest}). "
        "Read the present state and watch from there."
    )


class InvalidKey(AccordError):
    code, rpc, exit, http = "INVALID_KEY", -32024, 65, 400
    text = "{key!r} is no {kind}: parts are 1 to 100 of a-z, 0-9, _ and -. Encode names with accord.store.names."


class InvalidName(AccordError):
    code, rpc, exit, http = "INVALID_NAME", -32025, 65, 400
    text = "A name of {length} characters cannot be stored: {reason}. Choose a shorter or simpler one."


class InvalidJson(AccordError):
    code, rpc, exit, http = "INVALID_JSON", -32026, 65, 400
    text = "Not a JSON value accord accepts: {reason}. Mend the text and send it again."


class CommitTooLarge(AccordError):
    code, rpc, exit, http = "COMMIT_TOO_LARGE", -32027, 65, 413
    text = "One commit holds at most {most} {what}, and this one has {found}. Split it."


class UnknownEngine(AccordError):
    code, rpc, exit, http = "UNKNOWN_ENGINE", -32028, 78, 400
    text = "{url!r} names no engine. Write it as ENGINE:PLACE with one of: {engines}."


class DriverMissing(AccordError):
    code, rpc, exit, http = "DRIVER_MISSING", -32029, 78, 500
    text = "The engine {engine} needs a Python package that is not installed. Install it with: pip install {package}"
