"""Security rules for the database: one account may do what accord does, below one path; nobody else may do anything.

They bind whoever comes with that account's `uid`. A service account that does not say which uid it acts as is an
administrator, whom no rule binds.
"""

from urllib.parse import unquote

from accord import jsontext
from accord.store.engines.firebase.place import PATH, Where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UID = "accord"


def rules(place: str = "", uid: str = "") -> "tuple[dict[str, Any], str, str]":
    """The rules, and the path and the uid that they admit: those of `place`, the engine's URL without its name."""
    where = Where(place) if place else None
    path = unquote(where.path) if where else PATH
    uid = uid or (where.uid if where else "") or UID
    found = _below(f"auth != null && auth.uid === {jsontext.dumps(uid)}")
    for part in reversed(path.split("/")):
        found = {part: found}
    return {"rules": {".read": False, ".write": False, **found}}, path, uid


def _below(is_it: str) -> "dict[str, Any]":
    text = {".validate": "newData.isString()"}
    number = {".validate": "newData.isNumber()"}
    follows = "(!data.exists() || newData.child('s/r').val() === data.child('s/r').val() + 1)"
    state = {
        ".validate": "newData.hasChildren(['r', 'e', 'd', 'i', 'f'])",
        **dict.fromkeys(("r", "f"), number),
        **dict.fromkeys(("e", "d", "i", "k", "l"), text),
        "$other": {".validate": False},
    }
    return {
        ".read": is_it,
        "head": {
            ".write": f"{is_it} && newData.exists() && {follows}",
            ".validate": "newData.hasChildren(['s'])",
            "s": state,
            "w": {"$place": text},
            "$other": {".validate": False},
        },
        "data": {".write": is_it},
        "clocks": {".write": is_it, "$machine": {".validate": "newData.hasChildren(['b', 't'])"}},
        "$other": {".validate": False},
    }
