"""The parameters of operations, for help and schemas: a word for each kind, its JSON schema, and a sentence each."""

from accord import model

_NAME: dict[str, object] = {"type": "string", "pattern": "^[a-z]([a-z0-9-]{0,62}[a-z0-9])?$"}
_NAMES: dict[str, object] = {"type": "array", "items": _NAME, "minItems": 1}
_ID: dict[str, object] = {"type": "string", "pattern": "^[a-z0-9_-]{1,64}$"}

WORDS = {
    "Identity": "NAME",
    "OwnIdentity": "NAME",
    "Recipients": "NAME...",
    "Identities": "NAME...",
    "Channel": "CHANNEL",
    "Body": "TEXT",
    "MessageId": "ID",
    "MessageIds": "ID...",
    "MessageType": "TYPE",
    "Conversation": "CONVERSATION",
    "Count": "N",
    "Seconds": "SECONDS",
    "Flag": "",
    "Text": "TEXT",
    "Path": "PATH",
    "Port": "PORT",
}

SCHEMAS: dict[str, dict[str, object]] = {
    "Identity": _NAME,
    "OwnIdentity": _NAME,
    "Recipients": _NAMES,
    "Identities": _NAMES,
    "Channel": _NAME,
    "Body": {"type": "string", "minLength": 1},
    "MessageId": _ID,
    "MessageIds": {"type": "array", "items": _ID, "minItems": 1},
    "MessageType": {"type": "string", "enum": list(model.MESSAGE_TYPES)},
    "Conversation": {"type": "string", "minLength": 1, "maxLength": 100},
    "Count": {"type": "integer", "minimum": 1},
    "Seconds": {"type": "number", "minimum": 0},
    "Flag": {"type": "boolean"},
    "Text": {"type": "string"},
    "Path": {"type": "string"},
    "Port": {"type": "integer", "minimum": 1, "maximum": 65535},
}

# One name means one thing in every operation.
HELP = {
    "by": "how it was handed over: push, hook, terminal",
    "deadline": "seconds after which it ends whatever is left to do",
    "http_port": "the port of the HTTP door",
    "port": "the port of the ZeroMQ door",
    "all": "all who wait for it",
    "channel": "the channel",
    "conversation": "the conversation it belongs to; an answer belongs to that of what it answers",
    "force": "take the name over from whoever has it; the inbox is inherited",
    "id": "the id of a message or conversation; for a new message, one that was made before the first try",
    "identities": "the agents",
    "identity": "the name to act under",
    "ids": "the messages",
    "limit": "at most so many",
    "message": "the text",
    "name": "the name of the key",
    "path": "the file, or the folder it is in",
    "peek": "only look; nothing is acknowledged",
    "project": "the folder that the agent works in",
    "query": "words, all of which must be there; the last may be the start of one",
    "reason": "why, for those who are stopped",
    "reply_to": "the message that this one answers",
    "resume": "come back to a name that is still yours",
    "sender": "who sends it",
    "to": "a recipient, which may be given several times; all is every other agent; an answer needs none",
    "type": "what the message is for: request, progress, query, pushback, complete, release or escalate",
    "wait": "when there is nothing, wait so long for something",
}
