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
    ├── DriverMissing        the engine's driver is not installed
    ├── EngineUnreachable    nobody answers where the store should be
    ├── EngineRefused        the store's server does not let accord in
    ├── EngineTooOld         the store's server lacks what accord needs
    ├── EngineUnfit          the store's server is set up so that data would be lost
    ├── Usage           a verb, option or parameter that does not exist, is missing or is no such thing
    ├── InvalidConfig        a setting or a configuration file that cannot be read
    ├── NotTrusted           a project's file chooses what it may not before its owner trusts it
    ├── NotPermitted         an agent asked for what only the operator may do
    ├── Halted               everything is halted
    ├── NotEngaged           the agent was there at a halt, and nobody has engaged it since
    ├── InvalidIdentity      a name that no agent may have
    ├── IdentityAlreadyRegistered  the name is registered
    ├── IdentityTakenOver    another holds the name now
    ├── NotRegistered        nobody is registered under the name that acts
    ├── TokenMissing         acting as somebody needs a token
    ├── TokenInvalid         a token that never was the name's
    ├── InvalidId            an id outside its alphabet
    ├── RecipientNeverRegistered     a message to a name that was never registered
    ├── RecipientGone        a message to a name that was unregistered
    ├── NoRecipients         a message that would reach nobody
    ├── TooManyRecipients    more than one commit can hold
    ├── ChannelNotFound      nobody ever joined it
    ├── EmptyMessageNotAllowed  nothing but blanks
    ├── MessageTooLarge      more than a message may hold
    ├── InvalidEncoding      text that is not UTF-8
    ├── MessageNotFound      no such message, or not to this recipient
    ├── InboxFull            too many unread messages
    ├── FileUnreadable       a file that an argument names
    ├── FileUnwritable       a file that an argument names, to be written
    ├── HaltUnwritable       the file that says whether everything is halted
    ├── NotPrinted           what was done, and could not be reported
    ├── TooManyFiles         the limit of open files is reached
    ├── OutputClosed         nobody reads what accord prints
    ├── Interrupted          Ctrl-C
    ├── HubNotRunning        what needs a hub, and none runs
    ├── HubFailed            a hub that did not start
    ├── HubLost              it went away while a command was in it
    ├── HubOutdated          a newer accord has written to the store of a running hub
    ├── HubSilent            one that runs and does not answer
    ├── PortInUse            another program listens there
    ├── RequestTimeout       a request that took too long
    ├── TooBusy              more at once than the hub takes
    ├── GoLocal              a command that the hub leaves to its caller
    ├── ParseError           a message that is not JSON
    ├── InvalidRequest       JSON that is no request
    ├── MethodNotFound       a request for what does not exist
    ├── KeyNotFound          a key of the ZeroMQ door that nobody made
    ├── KeyExists            a key of that name was made before
    ├── NotAuthenticated     a request by HTTP without a token
    ├── AccessDenied         one with a wrong token, or sent for a foreign page
    ├── TooLarge             a document or an entry that holds more than it may
    ├── Conflict             a document moved on since the revision that a write is based on
    ├── DocumentNotFound     no such document
    ├── RevisionNotFound     a version that never was, or is no longer kept
    ├── EditorFailed         an editor that could not be run, or said that it failed
    ├── NotWritten           a text that was edited and could not be written; it is kept in a file
    ├── LockHeld             another holds the lock, and did not give it back in time
    ├── LockLost             it is not held, or no longer, by whoever renews or releases it
    ├── Fenced               a change in the name of a lock that another holds by now
    ├── Reserved             another works on these files
    ├── ReservationNotFound  no such reservation
    ├── Empty                nothing to take
    ├── QueueFull            a queue that takes no more
    ├── StaleReceipt         what was taken with it is done, or another's by now
    ├── DeadLetterNotFound   no such dead letter
    ├── TaskNotFound         no such task
    ├── TaskExists           a task of that id is there
    ├── AlreadyClaimed       another works on the task
    ├── NotClaimed           a change of a task by somebody who does not hold it
    ├── NotReady             a task that waits for others, is blocked, or is done
    ├── DependencyCycle      tasks that would wait for each other
    ├── NeedsAttention       something is not as it should be, and only a person can tell why
    ├── AuditBroken          the audit's entries are not those that the chain was made of
    ├── GroupNotFound        no such group of users on this machine
    ├── NotInGroup           a home for a group that its owner is not in
    ├── HomeInUse            a home that is one user's, and cannot become a group's any more
    ├── HubOfAnother         a hub that another user runs
    ├── KeyNeeded            the store is encrypted
    ├── WrongKey             with another key than the one given
    ├── CommitStopped        files that others have reserved are about to be committed
    ├── CommandNotFound      a program that `lock run` is to run, and cannot
    ├── HookForeign          a git hook that accord does not know how to change
    ├── SettingsUnusable     a settings file of another program that cannot be read or changed
    ├── SettingsTaken        one that has something else under accord's name
    ├── NothingToMigrate     a source in which nothing is
    ├── MigrationUnfinished  a copy that was not compared to its end
    ├── MigratedBefore       a copy that was used since it was made
    ├── SourceBusy           a source that is changed all the time
    ├── CopyDiffers          a copy that is not what was copied
    ├── HubRunning           a hub that would go on with the source
    ├── CloneBusy            a clone that has a run already
    └── BenchFailed          a worker of `accord bench` that did not come to its end

Each class is one row of the error table: `code` is what programs compare, `rpc` the JSON-RPC number, `exit`
the exit code of the command line, `http` the HTTP status, `text` what people read.
"""

from accord.errors import AccordError


class DataDirError(AccordError):
    code, rpc, exit, http = "DATA_DIR_ERROR", -32010, 73, 500
    text = (
        "{path} cannot be used: {reason}. "
        "Make it one that you own and may write, or choose another with --home or --engine."
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
    text = (
        "The {kind} {key!r} is refused: {reason}. Mend what made it: accord.store.names encodes names, appends give "
        "numbers, and a load comes in order."
    )


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
    text = "{url!r}{where} names no engine{near}. Choose one of {engines}; a URL is ENGINE:PLACE."


class DriverMissing(AccordError):
    code, rpc, exit, http = "DRIVER_MISSING", -32029, 78, 500
    text = "The engine {engine} needs a Python package that is not installed. Install it with: pip install {package}"


class EngineUnreachable(AccordError):
    code, rpc, exit, http = "ENGINE_UNREACHABLE", -32120, 69, 503
    text = (
        "{path} does not answer: {reason}. Nothing was changed. Start it, or mend its address or the network; "
        "`accord config` shows where the address comes from."
    )


class EngineRefused(AccordError):
    code, rpc, exit, http = "ENGINE_REFUSED", -32121, 77, 500
    text = (
        "{path} refuses: {reason}. Look at the user in the URL, and at the password in $ACCORD_ENGINE_PASSWORD "
        "or the file that engine_password_file names; `accord config` shows where they come from."
    )


class EngineTooOld(AccordError):
    code, rpc, exit, http = "ENGINE_TOO_OLD", -32122, 78, 500
    text = "{path} is {found}, and accord needs {needed} or later. Upgrade the server, or choose another engine."


class EngineUnfit(AccordError):
    code, rpc, exit, http = "ENGINE_UNFIT", -32123, 78, 500
    text = "{path} would lose data: {reason}. Mend that at the server: {cure}."


class Usage(AccordError):
    code, rpc, exit, http = "USAGE", -32602, 2, 400
    text = "{reason}. Read: {see}"


class InvalidConfig(AccordError):
    code, rpc, exit, http = "INVALID_CONFIG", -32030, 78, 500
    text = "{path}: {reason}. Mend it."


class NotTrusted(AccordError):
    code, rpc, exit, http = "NOT_TRUSTED", -32031, 78, 403
    text = "{path} sets {setting}, which a project may only once you trust it. Read it, then: accord trust {path}"


class NotPermitted(AccordError):
    code, rpc, exit, http = "NOT_PERMITTED", -32032, 77, 403
    text = "{operation} is for the operator, and this is an agent ({agent}). Ask the person who runs it."


class Halted(AccordError):
    code, rpc, exit, http = "HALTED", -32033, 5, 503
    text = "Everything is halted: {reason}. Wait, or have a person lift it with: accord unhalt"


class NotEngaged(AccordError):
    code, rpc, exit, http = "NOT_ENGAGED", -32034, 5, 503
    text = (
        "{identity} was there when everything was halted. "
        "Ask a person to let it go on, in this home, with: accord engage {identity}"
    )


class InvalidIdentity(AccordError):
    code, rpc, exit, http = "INVALID_IDENTITY", -32035, 65, 400
    text = (
        "{identity!r} cannot be a name: {reason}. Choose one of 1 to 64 of a-z, 0-9 and -, with a letter first and "
        "no - last; hub, all, broadcast and human are reserved."
    )


class IdentityAlreadyRegistered(AccordError):
    code, rpc, exit, http = "IDENTITY_ALREADY_REGISTERED", -32036, 73, 409
    text = (
        "{identity} is registered. Choose another name; if it is yours, come back with --resume, or take it over "
        "with --force."
    )


class IdentityTakenOver(AccordError):
    code, rpc, exit, http = "IDENTITY_TAKEN_OVER", -32037, 77, 403
    text = (
        "Another holds the name {identity} now, and this token is no longer good. Choose another name, and register it."
    )


class NotRegistered(AccordError):
    code, rpc, exit, http = "NOT_REGISTERED", -32038, 67, 404
    text = "{identity} is not registered{near}. Make it so with: accord register {identity}"


class TokenMissing(AccordError):
    code, rpc, exit, http = "TOKEN_MISSING", -32039, 77, 401
    text = (
        "Acting as {identity} needs its token. Put it into $ACCORD_TOKEN or {path}, show it on a connection with "
        "session.open, or register again with --force."
    )


class TokenInvalid(AccordError):
    code, rpc, exit, http = "TOKEN_INVALID", -32053, 77, 403
    text = (
        "This is not the token of {identity}. Put the right one into $ACCORD_TOKEN or {path}, or show it on a "
        "connection with session.open."
    )


class InvalidId(AccordError):
    code, rpc, exit, http = "INVALID_ID", -32040, 65, 400
    text = "{id!r} is no id: ids have 1 to 64 of a-z, 0-9, - and _. Check it, or leave it out for something new."


class RecipientNeverRegistered(AccordError):
    code, rpc, exit, http = "RECIPIENT_NEVER_REGISTERED", -32041, 67, 404
    text = "Never registered: {names}{near}. Nothing was sent. List who is there with: accord discover"


class RecipientGone(AccordError):
    code, rpc, exit, http = "RECIPIENT_GONE", -32042, 67, 410
    text = "Unregistered: {names}. Nothing was sent. List who is there with: accord discover"


class NoRecipients(AccordError):
    code, rpc, exit, http = "NO_RECIPIENTS", -32043, 67, 404
    text = "{where} has nobody else. Nothing was sent. List who is there with: accord discover"


class TooManyRecipients(AccordError):
    code, rpc, exit, http = "TOO_MANY_RECIPIENTS", -32044, 65, 413
    text = "One message reaches at most {most}, and this one names {found}. Nothing was sent. Send several."


class ChannelNotFound(AccordError):
    code, rpc, exit, http = "CHANNEL_NOT_FOUND", -32045, 66, 404
    text = "Nobody ever joined the channel {channel}{near}. Join it with: accord channel join {channel}"


class EmptyMessageNotAllowed(AccordError):
    code, rpc, exit, http = "EMPTY_MESSAGE_NOT_ALLOWED", -32046, 65, 400
    text = "The message is empty, and nothing was sent. Write something."


class MessageTooLarge(AccordError):
    code, rpc, exit, http = "MESSAGE_TOO_LARGE", -32047, 65, 413
    text = (
        "A message holds at most {most} bytes, and this one has {found}. Nothing was sent. Send where it lies instead."
    )


class InvalidEncoding(AccordError):
    code, rpc, exit, http = "INVALID_ENCODING", -32048, 65, 400
    text = "{what} is not UTF-8 text (at byte {at}). Convert it first."


class MessageNotFound(AccordError):
    code, rpc, exit, http = "MESSAGE_NOT_FOUND", -32049, 66, 404
    text = (
        "No such message for {identity}: {ids}. Nothing was changed. "
        "Check the id: `accord sent` and `accord check --peek` show them."
    )


class InboxFull(AccordError):
    code, rpc, exit, http = "INBOX_FULL", -32050, 75, 507
    text = "{identity} has {found} unread messages, and {most} are the limit. Nothing was sent. Try again later."


class FileUnreadable(AccordError):
    code, rpc, exit, http = "FILE_UNREADABLE", -32051, 66, 400
    text = "{path} cannot be read: {reason}. Choose another file."


class FileUnwritable(AccordError):
    code, rpc, exit, http = "FILE_UNWRITABLE", -32002, 73, 400
    text = "{path} cannot be written: {reason}. Choose another file."


class HaltUnwritable(AccordError):
    code, rpc, exit, http = "HALT_UNWRITABLE", -32003, 73, 500
    text = (
        "{path}, which says for all homes of yours whether everything is halted, cannot be written: {reason}. "
        "Nothing was changed. Mend that, and try again."
    )


class NotPrinted(AccordError):
    code, rpc, exit, http = "NOT_PRINTED", -32004, 74, 500
    text = "It was done, and this could not be printed ({reason}): {text}. Do not run it again."


class TooManyFiles(AccordError):
    code, rpc, exit, http = "TOO_MANY_FILES", -32005, 71, 500
    text = "No more files can be opened. Let accord open more (ulimit -n), or end what has many open, and try again."


class OutputClosed(AccordError):
    code, rpc, exit, http = "OUTPUT_CLOSED", -32052, 74, 500
    text = "Nobody reads what is printed ({reason}). Run it again with somewhere to print."


class Interrupted(AccordError):
    code, rpc, exit, http = "INTERRUPTED", -32054, 130, 500
    text = "Interrupted. Run it again if that was not meant."


class HubNotRunning(AccordError):
    code, rpc, exit, http = "HUB_NOT_RUNNING", -32055, 69, 503
    text = "No hub runs in {home}{there}. Start one with: accord hub {command}"


class HubFailed(AccordError):
    code, rpc, exit, http = "HUB_FAILED", -32056, 69, 503
    text = "The hub did not start: {reason}. Read: accord hub logs"


class HubLost(AccordError):
    code, rpc, exit, http = "HUB_LOST", -32057, 75, 503
    text = "The hub went away in the middle: {reason}. What was printed stands. Run it again."


class HubOutdated(AccordError):
    code, rpc, exit, http = "HUB_OUTDATED", -32058, 69, 503
    text = "The hub is older than what wrote to {path} last, and stops. Start it anew with: accord hub start"


class HubSilent(AccordError):
    code, rpc, exit, http = "HUB_SILENT", -32088, 69, 503
    text = (
        "The hub (process {pid}) runs, and has not answered within {timeout_seconds:g} s: it is stopped or stuck. "
        "Run commands without it, or start another with: accord hub restart"
    )


class PortInUse(AccordError):
    code, rpc, exit, http = "PORT_IN_USE", -32059, 69, 503
    text = "Port {port} is held by {holder}. Choose another port, or end that program."


class RequestTimeout(AccordError):
    code, rpc, exit, http = "REQUEST_TIMEOUT", -32060, 75, 504
    text = "{method} was not done within {timeout_seconds:g} s; it may still be. Ask again with the same request id."


class TooBusy(AccordError):
    code, rpc, exit, http = "TOO_BUSY", -32061, 75, 503
    text = "The hub has {most} {what} already. Try again later."


class GoLocal(AccordError):
    code, rpc, exit, http = "GO_LOCAL", -32062, 75, 503
    text = "The hub leaves this to whoever asks: {reason}. Do it without the hub."


class ParseError(AccordError):
    code, rpc, exit, http = "PARSE_ERROR", -32700, 65, 400
    text = "Not JSON that accord accepts: {reason}. Mend the text and send it again."


class InvalidRequest(AccordError):
    code, rpc, exit, http = "INVALID_REQUEST", -32600, 65, 400
    text = "No request of JSON-RPC 2.0: {reason}. Mend it and send it again."


class MethodNotFound(AccordError):
    code, rpc, exit, http = "METHOD_NOT_FOUND", -32601, 65, 404
    text = "There is no method {method!r}{near}. Read: docs/operations.md and docs/rpc.md"


class KeyNotFound(AccordError):
    code, rpc, exit, http = "KEY_NOT_FOUND", -32063, 66, 404
    text = "There is no key {name}. List them with: accord hub keys list"


class KeyExists(AccordError):
    code, rpc, exit, http = "KEY_EXISTS", -32064, 73, 409
    text = "There is a key {name} already. Choose another name, or revoke it first with: accord hub keys revoke {name}"


class NotAuthenticated(AccordError):
    code, rpc, exit, http = "NOT_AUTHENTICATED", -32065, 77, 401
    text = (
        "This needs a token. Send `Authorization: Bearer TOKEN`, the operator's; "
        "or an agent's, with its name as `Accord-Agent: NAME`."
    )


class AccessDenied(AccordError):
    code, rpc, exit, http = "ACCESS_DENIED", -32066, 77, 403
    text = "Refused: {reason}. Ask from a program on this machine, with the right token."


class TooLarge(AccordError):
    code, rpc, exit, http = "TOO_LARGE", -32067, 65, 413
    text = "{what} holds at most {most} bytes, and this one has {found}. Nothing was changed. Split it."


class Conflict(AccordError):
    code, rpc, exit, http = "CONFLICT", -32068, 4, 409
    text = (
        "{name} is at revision {revision} by now, and this was based on {base}. Nothing was changed. "
        "Read it again, put both together, and write with the new base; `accord doc edit` does that."
    )


class DocumentNotFound(AccordError):
    code, rpc, exit, http = "DOCUMENT_NOT_FOUND", -32069, 66, 404
    text = "There is no document {name}{near}. List them with: accord doc list"


class RevisionNotFound(AccordError):
    code, rpc, exit, http = "REVISION_NOT_FOUND", -32070, 66, 404
    text = "{name} has no revision {revision}, or it is no longer kept. List them with: accord doc history {name}"


class EditorFailed(AccordError):
    code, rpc, exit, http = "EDITOR_FAILED", -32090, 69, 500
    text = "{command} did not edit it: {reason}. Nothing was changed. Choose another editor with $EDITOR."


class NotWritten(AccordError):
    code, rpc, exit, http = "NOT_WRITTEN", -32091, 75, 500
    text = (
        "{name} was not written. {reason} Your text is kept in {path}. "
        "Write it from there with: accord doc write {name} --base {base} --file {path}"
    )


class LockHeld(AccordError):
    code, rpc, exit, http = "LOCK_HELD", -32071, 75, 409
    text = (
        "{name} is held by {owner} for another {left_s} s, with {ahead} waiting before this; "
        "{waited_s} s were waited. Try again later, or wait longer."
    )


class LockLost(AccordError):
    code, rpc, exit, http = "LOCK_LOST", -32072, 75, 409
    text = "{owner} does not hold {name} with the number {token}: {reason}. Acquire it again."


class Fenced(AccordError):
    code, rpc, exit, http = "FENCED", -32073, 75, 409
    text = "The number {token} of {name} no longer counts: {reason}. Nothing was changed. Acquire the lock again."


class Reserved(AccordError):
    code, rpc, exit, http = "RESERVED", -32074, 75, 409
    text = "Reserved by others: {held}. Nothing was changed. Ask them, or work elsewhere until it is released."


class ReservationNotFound(AccordError):
    code, rpc, exit, http = "RESERVATION_NOT_FOUND", -32075, 66, 404
    text = "{owner} has no such reservation: {what}. List them with: accord reserve list"


class Empty(AccordError):
    code, rpc, exit, http = "EMPTY", -32076, 3, 404
    text = "{what} has nothing to take{waited}. Try again later."


class QueueFull(AccordError):
    code, rpc, exit, http = "QUEUE_FULL", -32077, 75, 507
    text = "{queue} has {found} entries, and {most} are the limit. Nothing was pushed. Try again later."


class StaleReceipt(AccordError):
    code, rpc, exit, http = "STALE_RECEIPT", -32078, 66, 409
    text = (
        "The receipt {receipt} no longer counts: the entry was done, or came back when its time was over. "
        "Take it again with: accord queue pop {queue}"
    )


class DeadLetterNotFound(AccordError):
    code, rpc, exit, http = "DEAD_LETTER_NOT_FOUND", -32092, 66, 404
    text = "{queue} has no dead letter {sequence}. List them with: accord queue dead {queue}"


class TaskNotFound(AccordError):
    code, rpc, exit, http = "TASK_NOT_FOUND", -32079, 66, 404
    text = "There is no task {id}. List them with: accord task list"


class TaskExists(AccordError):
    code, rpc, exit, http = "TASK_EXISTS", -32080, 73, 409
    text = "There is a task {id} already. Choose another id, or leave it out."


class AlreadyClaimed(AccordError):
    code, rpc, exit, http = "ALREADY_CLAIMED", -32081, 75, 409
    text = "{holder} works on {id} for at least another {left_s} s. Take another with: accord task next"


class NotClaimed(AccordError):
    code, rpc, exit, http = "NOT_CLAIMED", -32082, 75, 409
    text = "{agent} does not hold {id}: {reason}. Nothing was changed. Claim it with: accord task claim {id}"


class NotReady(AccordError):
    code, rpc, exit, http = "NOT_READY", -32083, 75, 409
    text = "{id} cannot be taken or changed: {reason}. Take another with: accord task next"


class DependencyCycle(AccordError):
    code, rpc, exit, http = "DEPENDENCY_CYCLE", -32084, 65, 409
    text = "These tasks would wait for each other: {cycle}. Nothing was changed. Leave one of them out."


class NeedsAttention(AccordError):
    code, rpc, exit, http = "NEEDS_ATTENTION", -32089, 1, 500
    text = "{what}. Look at: {see}"


class AuditBroken(AccordError):
    code, rpc, exit, http = "AUDIT_BROKEN", -32085, 1, 500
    text = "The audit is not what it was: {reason}. Find out who could write to the store or to {path}."


class GroupNotFound(AccordError):
    code, rpc, exit, http = "GROUP_NOT_FOUND", -32096, 67, 404
    text = "There is no group {group!r} on this machine. Choose one of yours ({yours}), or have one made for you."


class NotInGroup(AccordError):
    code, rpc, exit, http = "NOT_IN_GROUP", -32097, 77, 403
    text = (
        "User {uid} is not in the group {group}. Choose one of yours ({yours}), or have yourself added and log in anew."
    )


class HomeInUse(AccordError):
    code, rpc, exit, http = "HOME_IN_USE", -32098, 73, 409
    text = "{path} is a home already, and only a new one can be made for a group. Choose another with --home."


class HubOfAnother(AccordError):
    code, rpc, exit, http = "HUB_OF_ANOTHER", -32099, 77, 403
    text = "The hub of {home} is process {pid} of another user. Ask them to end it, with: kill {pid}"


class KeyNeeded(AccordError):
    code, rpc, exit, http = "KEY_NEEDED", -32086, 78, 500
    text = "{path} is encrypted with the key {key}. Give it in a file (encryption_key_file) or $ACCORD_ENCRYPTION_KEY."


class WrongKey(AccordError):
    code, rpc, exit, http = "WRONG_KEY", -32087, 78, 500
    text = "{path} cannot be read with this key: {reason}. Give the right one, or none if it was never encrypted."


class CommitStopped(AccordError):
    code, rpc, exit, http = "COMMIT_STOPPED", -32095, 8, 409
    text = "The commit would touch what others work on: {held}. Ask them, or commit what is not theirs."


class CommandNotFound(AccordError):
    code, rpc, exit, http = "COMMAND_NOT_FOUND", -32093, 127, 400
    text = "{command} cannot be run: {reason}. Nothing was done. Name a program that is there."


class HookForeign(AccordError):
    code, rpc, exit, http = "HOOK_FOREIGN", -32094, 73, 409
    text = "{path} {reason}, and stays as it is. Have it run `{line}`, and stop the commit when that ends with {stop}."


class SettingsUnusable(AccordError):
    code, rpc, exit, http = "SETTINGS_UNUSABLE", -32140, 73, 409
    text = "{path} {reason}. It stays as it is, and so does all else. Mend that, and run it again."


class SettingsTaken(AccordError):
    code, rpc, exit, http = "SETTINGS_TAKEN", -32141, 73, 409
    text = "{path} {reason}. It stays as it is, and so does all else. Move that away or rename it, and run it again."


class NothingToMigrate(AccordError):
    code, rpc, exit, http = "NOTHING_TO_MIGRATE", -32150, 66, 400
    text = "{path} holds nothing: no store, or one in which nothing was ever stored. Look at what --from names."


class MigrationUnfinished(AccordError):
    code, rpc, exit, http = "MIGRATION_UNFINISHED", -32151, 75, 503
    text = "{path} is a copy that is not finished. Run the same `accord migrate`, from {source}, again."


class MigratedBefore(AccordError):
    code, rpc, exit, http = "MIGRATED_BEFORE", -32152, 73, 409
    text = (
        "{path} is a copy of {source} as of its revision {revision}, and was used since; {source} is at {now} now. "
        "Nothing was changed. Choose an empty place."
    )


class SourceBusy(AccordError):
    code, rpc, exit, http = "SOURCE_BUSY", -32153, 75, 503
    text = (
        "{path} is changed while it is copied, and the copy cannot catch up. "
        "Stop the hubs and agents that use it, and run the same command again."
    )


class CopyDiffers(AccordError):
    code, rpc, exit, http = "COPY_DIFFERS", -32154, 74, 500
    text = (
        "{path} does not give back what was copied there, in {what}. It stays unfinished, and nothing opens it. "
        "Look whether others write to it, empty it, and run the same command again."
    )


class HubRunning(AccordError):
    code, rpc, exit, http = "HUB_RUNNING", -32155, 75, 409
    text = "The hub of {home}, process {pid}, would go on with the old store. Stop it first: accord hub stop"


class CloneBusy(AccordError):
    code, rpc, exit, http = "CLONE_BUSY", -32001, 75, 409
    text = "The clone {clone} is busy with another run. Wait for it, or cancel that run."


class BenchFailed(AccordError):
    code, rpc, exit, http = "BENCH_FAILED", -32006, 69, 500
    text = "The benchmark failed: {reason}. Nothing of yours was touched. Mend that and run it again."


def from_json(found: dict[str, object]) -> AccordError:
    """An error that came as JSON, as an exception of its own kind."""
    data = found.get("data")
    known = data if isinstance(data, dict) else {}
    kinds = [kind for kind in AccordError.__subclasses__() if kind.code == known.get("error_code")]
    kind = kinds[0] if kinds else AccordError
    error = kind.__new__(kind)
    Exception.__init__(error, found.get("message", ""))
    error.details = known.get("details") or {}
    return error


def to_json(error: AccordError) -> dict[str, object]:
    """An error as JSON-RPC has it."""
    details = {name: _whole(value) for name, value in error.details.items()}
    return {"code": error.rpc, "message": _whole(str(error)), "data": {"error_code": error.code, "details": details}}


def _whole(value: object) -> object:
    """A detail, as JSON can say it; names of files may be no text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return value if isinstance(value, bool | int | float | None) else str(value)
