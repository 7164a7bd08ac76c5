"""`head`: the last commit, whole. Putting it under the ETag of the one before is what commits.

head
  s   r  its revision           e  the store's epoch              d  where the data lie: data/<d>
      i  its own random name    f  the newest revision whose change is forgotten
      k  the keys it wrote, "COLLECTION:ID ..."     l  new last numbers, "COLLECTION:NUMBER ..."
  w   k00, k01 ...  the value of each key; none where it was deleted
"""

from os import urandom

from accord import errors
from accord.store.contract import new_epoch
from accord.store.engines.firebase import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.engines.firebase.keys import Node
    from accord.store.engines.firebase.rest import Reply


class State:
    """What all but the values of the last commit tell."""

    def __init__(self, found: "dict[str, Any]") -> None:
        self.revision: int = found["r"]
        self.epoch: str = found["e"]
        self.data: str = found["d"]
        self.id: str = found["i"]
        self.floor: int = found["f"]
        self.keys = keys_in(found.get("k", ""))
        self.lasts = {key: int(last) for key, last in keys_in(found.get("l", ""))}


class Head(State):
    def __init__(self, node: "dict[str, Any]", etag: str) -> None:
        super().__init__(node["s"])
        self.node: Node = node
        self.etag = etag  # "" is not known
        found = node.get("w", {})
        texts = [found.get(_place(number)) for number in range(len(self.keys))]
        self.values = {
            key: None if text is None else keys.decode(text) for key, text in zip(self.keys, texts, strict=True)
        }
        self.collections = {collection for collection, _ in self.keys}

    def next(self, values: "dict[tuple[str, str], bytes | None]", lasts: "dict[str, int]", floor: int) -> "Head":
        """The head of a commit that follows this one."""
        state = {"r": self.revision + 1, "e": self.epoch, "d": self.data, "i": urandom(10).hex(), "f": floor}
        state |= {"k": keys_text(values), "l": " ".join([f"{name}:{last}" for name, last in lasts.items()])}
        texts = {_place(n): keys.encode(value) for n, value in enumerate(values.values()) if value is not None}
        return Head({"s": state, "w": texts}, "")

    def loaded(self, data: str) -> "Head":
        """The head of a store that was filled: revision 1, from which its history begins."""
        state = {"r": 1, "e": self.epoch, "d": data, "i": urandom(10).hex(), "f": 1}
        return Head({"s": state}, "")

    @property
    def is_applied_anyway(self) -> bool:
        """Nothing, or a load, has nothing to be applied."""
        return self.revision <= self.floor


def first() -> Head:
    epoch = new_epoch()
    return Head({"s": {"r": 0, "e": epoch, "d": epoch, "i": urandom(10).hex(), "f": 0}}, "")


def read(reply: "Reply", place: str) -> Head:
    try:
        return Head(reply.value, reply.etag)
    except (errors.InvalidJson, KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise errors.NotAStore(path=place, reason="what lies under `head` is not accord's") from None


def keys_in(text: str) -> "tuple[tuple[str, str], ...]":
    found = [word.partition(":") for word in text.split()]
    return tuple([(collection, id) for collection, _, id in found])


def keys_text(found: "dict[tuple[str, str], bytes | None]") -> str:
    return " ".join([f"{collection}:{id}" for collection, id in found])


def _place(number: int) -> str:
    return f"k{number:02d}"
