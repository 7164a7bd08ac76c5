"""The rules that every message meets: who may be called what, ids, types, times, and what a body may be."""

import os
import time

from accord import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HUMAN = "human"  # the owner's inbox, always there
ALL = "all"  # as a recipient: every registered agent but the sender
RESERVED = frozenset(("hub", ALL, "broadcast", HUMAN))

# What a message is for, in a conversation between agents; the order of a usual one.
MESSAGE_TYPES = ("request", "progress", "query", "pushback", "complete", "release", "escalate")

PRIORITIES = ("high", "normal", "low")

HALTED = "(HALT active; cross-agent comms paused)"  # what models are told under a HALT
HOOK_EVENTS = ("start", "prompt", "step", "stop", "end")  # of a session of an agent

TASK_STATES = ("ready", "waiting", "claimed", "started", "blocked", "done")

MAX_MESSAGE_BYTES = 1_048_576  # of a body; what fits into a commit with all that goes with it

_LONGEST = 64  # of an identity or an id
_LONGEST_LABEL = 128
LONGEST_NAME = 200  # of a document, a lock or a queue
LONGEST_TITLE = 200  # of a task
LONGEST_SESSION = 128  # of an agent

# Bytes for ids, fetched many at once: each call of the system costs as much as the rest of an id. A child that was
# forked must not give out what its parent will.
_RANDOMS = 32
_randoms: list[str] = []
os.register_at_fork(after_in_child=_randoms.clear)

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NAME_ALPHABET = _LETTERS + "0123456789-"
_ID_ALPHABET = _NAME_ALPHABET + "_"
_LABEL_ALPHABET = _ID_ALPHABET + _LETTERS.upper() + "."


def read_identity(text: str) -> str:
    """The name as it is stored."""
    name = text.lower()
    if not 0 < len(name) <= _LONGEST:
        raise errors.InvalidIdentity(identity=text[:100], reason=f"it has {len(name)} characters")
    if not text.isascii() or name.strip(_NAME_ALPHABET):  # some letters become ASCII when lowered
        raise errors.InvalidIdentity(identity=text, reason="it holds something else than letters, digits and -")
    if name[0] not in _LETTERS or name[-1] == "-":
        raise errors.InvalidIdentity(identity=text, reason="it starts or ends with what it may not")
    return name


def read_identities(texts: "Iterable[str]") -> "tuple[list[str], list[errors.InvalidIdentity]]":
    """The names as they are stored, and an error for each that can be nobody's."""
    names, wrong = [], []
    for text in texts:
        try:
            names.append(read_identity(text))
        except errors.InvalidIdentity as error:
            wrong.append(error)
    return names, wrong


def refuse_identities(wrong: "Sequence[errors.InvalidIdentity]") -> "errors.InvalidIdentity":
    """One error for all of them."""
    invalid = [str(error.details["identity"]) for error in wrong]
    reason = str(wrong[0].details["reason"]) if len(wrong) == 1 else "none of these can"
    return errors.InvalidIdentity(identity=", ".join(invalid), reason=reason, invalid=invalid)


def read_own_identity(text: str) -> str:
    """A name that somebody may register."""
    name = read_identity(text)
    if name in RESERVED:
        raise errors.InvalidIdentity(identity=text, reason="it is reserved")
    return name


def name_like(text: str) -> str:
    """A name that somebody may register, made from any text."""
    letters = [letter if letter in _NAME_ALPHABET else "-" for letter in text.lower()]
    name = "-".join([part for part in "".join(letters).split("-") if part])[: _LONGEST - 8].strip("-")
    if not name or name[0] not in _LETTERS or name in RESERVED:
        name = f"agent-{name}".strip("-")
    return name


def read_message_id(text: str) -> str:
    id = text.lower()
    if not text.isascii() or not 0 < len(id) <= _LONGEST or id.strip(_ID_ALPHABET):
        raise errors.InvalidId(id=text[:100])
    return id


def read_label(text: str) -> str:
    """Who or what somebody is called by those who need not be registered."""
    if not 0 < len(text) <= _LONGEST_LABEL or not text.isascii() or text.strip(_LABEL_ALPHABET):
        raise ValueError(f"is not 1 to {_LONGEST_LABEL} letters, digits, - _ and .")
    return text


def read_name(text: str) -> str:
    """What a document, a lock or a queue is called: parts between slashes, as in a path."""
    reason = ""
    if not 0 < len(text) <= LONGEST_NAME:
        reason = f"it must have 1 to {LONGEST_NAME} characters"
    elif not text.isprintable():
        reason = "it holds what cannot be printed"
    elif not {"", ".", ".."}.isdisjoint(text.split("/")):
        reason = "no part between slashes may be empty, . or .."
    if reason:
        raise errors.InvalidName(length=len(text), reason=reason)
    return text


def read_body(text: str) -> str:
    if not text.strip():
        raise errors.EmptyMessageNotAllowed()
    return text


def new_request() -> str:
    """Some caller's name for one thing it asks: when, and enough that is random for any number of machines."""
    try:
        random = _randoms.pop()
    except IndexError:
        fresh = os.urandom(10 * _RANDOMS).hex()
        _randoms.extend([fresh[at : at + 20] for at in range(20, len(fresh), 20)])
        random = fresh[:20]
    return f"{int(time.time() * 1000):012x}{random}"


def new_message_id(request: str = "") -> str:
    """A UUID of version 7, in the order of time; the same one for the same request."""
    digits = request or new_request()
    variant = "89ab"[int(digits[31], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-7{digits[12:15]}-{variant}{digits[15:18]}-{digits[18:30]}"


_last_second: tuple[int, str] = (-1, "")  # the one that was asked for last, as text: mostly it is asked for again


def timestamp(seconds: float) -> str:
    """An instant as ISO 8601 in UTC, to the millisecond."""
    global _last_second
    whole = int(seconds)
    known, text = _last_second
    if known != whole:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
        _last_second = (whole, text)
    return f"{text}.{int((seconds - whole) * 1000):03d}Z"
