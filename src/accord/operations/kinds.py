"""What a parameter may be: a reader for each name used in the operations' annotations.

The annotations are strings, so that no operation needs `typing` to be called; type checkers take them from below.
"""

from accord import errors, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Identity = str
    OwnIdentity = str
    Recipients = list[str]
    Identities = list[str]
    Channel = str
    Body = str
    MessageId = str
    MessageIds = list[str]
    MessageType = str
    Conversation = str
    Count = int
    Seconds = float
    Lease = float
    Flag = bool
    Text = str
    Path = str
    Url = str
    Folder = str
    Group = str
    Command = str
    Port = int
    Name = str
    Label = str
    Labels = list[str]
    Globs = list[str]
    Paths = list[str]
    Priority = str
    Title = str
    Reason = str
    TaskId = str
    TaskIds = list[str]
    TaskState = str
    Session = str
    Revision = int
    Place = int
    Grant = int
    Fence = tuple[str, int]
    Steps = list[dict[str, Any]]
    HookEvent = str
    SessionId = str

_MOST = 1_000_000_000
_LAST = 1 << 53  # of what is counted on for ever; every reader of JSON can tell it from the next


def _identities(value: object) -> list[str]:
    """Names; several may stand in one word, with commas between them."""
    names, wrong = model.read_identities(_recipients(value))
    if wrong:
        raise model.refuse_identities(wrong)
    return names


def _recipients(value: object) -> list[str]:
    """As they were written: only who knows the registered ones can name all that are wrong."""
    return [word for one in _list(value) for word in _text(one).split(",")]


def _own_identity(value: object) -> str:
    return model.read_own_identity(_text(value))


def _message_ids(value: object) -> list[str]:
    """Each once: what is done to a message twice is done."""
    return list(dict.fromkeys(model.read_message_id(_text(one)) for one in _list(value)))


def _message_type(value: object) -> str:
    text = _text(value).lower()
    if text not in model.MESSAGE_TYPES:
        raise ValueError(f"is not one of {', '.join(model.MESSAGE_TYPES)}")
    return text


def _conversation(value: object) -> str:
    text = _text(value)
    if not 0 < len(text) <= 100 or not text.isprintable():
        raise ValueError("is not 1 to 100 printable characters")
    return text


def _count(value: object, most: int = _MOST) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 17:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise ValueError(f"is not a whole number from 1 to {most}")
    return value


def _grant(value: object) -> int:
    """The number that a lock was granted with."""
    return _count(value, _LAST)


def _seconds(value: object) -> float:
    try:
        seconds = float(value) if isinstance(value, str | int | float) else -1.0
    except (ValueError, OverflowError):
        seconds = -1.0
    if not 0 <= seconds <= _MOST:
        raise ValueError(f"is not a number of seconds from 0 to {_MOST}")
    return seconds


def _lease(value: object) -> float:
    """How long something is somebody's."""
    seconds = _seconds(value)
    if not seconds:
        raise ValueError("is not more than 0 seconds")
    return seconds


def _port(value: object) -> int:
    try:
        port = _count(value)
    except ValueError:
        port = _MOST
    if port > 65535:
        raise ValueError("is not a port, a number from 1 to 65535")
    return port


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is neither true nor false")
    return value


def _list(value: object) -> "list[object]":
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise ValueError("is not a list with something in it")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidEncoding(what="A parameter", at=error.start) from None
    return value


def _path(value: object) -> str:
    text = _text(value)
    if not text or "\0" in text:
        raise ValueError("is no path")
    return text


def _identity(value: object) -> str:
    return model.read_identity(_text(value))


def _body(value: object) -> str:
    return model.read_body(_text(value))


def _message_id(value: object) -> str:
    return model.read_message_id(_text(value))


def _name(value: object) -> str:
    return model.read_name(_text(value))


def _label(value: object) -> str:
    return model.read_label(_text(value))


def _labels(value: object) -> list[str]:
    """Several may stand in one word, with commas between them."""
    return [model.read_label(word) for one in _list(value) for word in _text(one).split(",")]


def _globs(value: object) -> list[str]:
    """Of files in a project."""
    from accord.model import globs

    return [globs.normal(_path(one)) for one in _list(value)]


def _paths(value: object) -> list[str]:
    """Of files in a project."""
    from accord.model import globs

    paths = [_path(one) for one in _list(value)]
    for path in paths:
        globs.read_path(path)
    return paths


def _priority(value: object) -> str:
    text = _text(value).lower()
    if text not in model.PRIORITIES:
        raise ValueError(f"is not one of {', '.join(model.PRIORITIES)}")
    return text


def _title(value: object) -> str:
    text = _text(value)
    if not 0 < len(text) <= model.LONGEST_TITLE or not text.isprintable() or text.isspace():
        raise ValueError(f"is not 1 to {model.LONGEST_TITLE} printable characters")
    return text


def _session(value: object) -> str:
    """What an agent's own program calls it."""
    text = _text(value)
    if not 0 < len(text) <= model.LONGEST_SESSION or not text.isprintable() or text.isspace():
        raise ValueError(f"is not 1 to {model.LONGEST_SESSION} printable characters")
    return text


def _task_state(value: object) -> str:
    text = _text(value).lower()
    if text not in model.TASK_STATES:
        raise ValueError(f"is not one of {', '.join(model.TASK_STATES)}")
    return text


def _revision(value: object) -> int:
    try:
        return 0 if value in (0, "0") and not isinstance(value, bool) else _count(value)
    except ValueError:
        raise ValueError(f"is not a whole number from 0 to {_MOST}") from None


def _fence(value: object) -> tuple[str, int]:
    """A lock and the number it was granted with."""
    name, colon, number = _text(value).rpartition(":")
    if not colon:
        raise ValueError("is not LOCK:NUMBER")
    return model.read_name(name), _grant(number)


def _steps(value: object) -> "list[object]":
    if not isinstance(value, list) or not value or not all(isinstance(step, dict) for step in value):
        raise ValueError("is not a list of objects with something in it")
    return value


def _hook_event(value: object) -> str:
    text = _text(value).lower()
    if text not in model.HOOK_EVENTS:
        raise ValueError(f"is not one of {', '.join(model.HOOK_EVENTS)}")
    return text


def _session_id(value: object) -> str:
    text = _text(value)
    if not 0 < len(text) <= 200 or not text.isprintable():
        raise ValueError("is not 1 to 200 printable characters")
    return text


# Each gives the value, or an error: an AccordError, or a ValueError that says what it is not.
READERS: "dict[str, Callable[[Any], object]]" = {
    "Identity": _identity,
    "OwnIdentity": _own_identity,
    "Recipients": _recipients,
    "Identities": _identities,
    "Channel": _own_identity,
    "Body": _body,
    "MessageId": _message_id,
    "MessageIds": _message_ids,
    "MessageType": _message_type,
    "Conversation": _conversation,
    "Count": _count,
    "Seconds": _seconds,
    "Lease": _lease,
    "Flag": _flag,
    "Text": _text,
    "Path": _path,
    "Url": _path,
    "Folder": _path,
    "Group": _text,
    "Command": _text,
    "Port": _port,
    "Name": _name,
    "Label": _label,
    "Labels": _labels,
    "Globs": _globs,
    "Paths": _paths,
    "Priority": _priority,
    "Title": _title,
    "Reason": _text,
    "TaskId": _label,
    "TaskIds": _labels,
    "TaskState": _task_state,
    "Session": _session,
    "Revision": _revision,
    "Place": _revision,
    "Grant": _grant,
    "Fence": _fence,
    "Steps": _steps,
    "HookEvent": _hook_event,
    "SessionId": _session_id,
}
