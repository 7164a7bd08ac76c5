"""Documents: texts with versions, which several may change without losing each other's changes.

doc/...         the text as it is now, and nothing else; on `files` people may edit it by hand
version/NAME    each version: a line of JSON about it, then its text; its number is the document's revision
"""

import time

from accord import errors, jsontext
from accord.model import timestamp
from accord.services import locks, named
from accord.store import names
from accord.store.contract import MAX_PAGE, PLAIN, number_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from accord.store.contract import Item
    from accord.store.transaction import Transaction

MAX_BYTES = 524_288  # a commit holds it twice: as the text, and as a version

_MOST_TRIMMED = 20  # versions that one write removes; more only where fewer are to be kept than before
_HAND = "by hand"
_SHOWN = ("checksum", "size", "by", "at", "expires_at")


class Document:
    """A document as it is now."""

    def __init__(self, name: str, revision: int, about: "dict[str, Any]", text: str) -> None:
        self.name = name
        self.revision = revision  # 0: there never was one
        self.about = about
        self.text = text

    @property
    def is_there(self) -> bool:
        return bool(self.revision) and not self.about["deleted"] and not _is_over(self.about)

    @property
    def base(self) -> int:
        """What a write that knows how it is names as its base."""
        return self.revision if self.is_there else 0

    def shown(self) -> "dict[str, Any]":
        return {"name": self.name, "text": self.text, **described(self.revision, self.about)}


class Writing:
    """Who writes, when, and on what conditions."""

    def __init__(
        self,
        by: str,
        at: str,
        keep: int,
        base: "int | None" = None,
        ttl_s: float = 0,
        fence: "tuple[str, int] | None" = None,
    ) -> None:
        self.by = by
        self.at = at
        self.keep = keep  # earlier versions
        self.base = base  # the revision that it must still have; 0: none; None: any
        self.ttl_s = ttl_s  # after which it is gone; 0: never
        self.fence = fence  # a lock that must still be held, and its number


def read(tx: "Transaction", name: str, revision: "int | None" = None) -> "dict[str, Any]":
    """The document, or one of its earlier versions."""
    found = find(tx, name)
    if revision is not None and revision != found.revision:
        found = _version(tx, name, revision)
    if not found.is_there:
        raise errors.DocumentNotFound(name=name, near=named.near(name, _names(tx)))
    return found.shown()


def write(tx: "Transaction", name: str, text: str, how: Writing) -> "dict[str, Any]":
    """Make this the text, unless the document moved on; the new revision."""
    size = len(text.encode())
    if size > MAX_BYTES:
        raise errors.TooLarge(what="A document", most=MAX_BYTES, found=size)
    found = _writable(tx, name, how)
    expires_at = timestamp(time.time() + how.ttl_s) if how.ttl_s else None
    if found.is_there and found.text == text and found.about["expires_at"] == expires_at:
        return {"name": name, **described(found.revision, found.about)}
    about = _about(how.by, how.at, text, expires_at)
    _add(tx, name, found.revision, about, text, how.keep)
    tx.put(*names.to_key(PLAIN, name), text.encode())
    return {"name": name, **described(found.revision + 1, about)}


def remove(tx: "Transaction", name: str, how: Writing) -> "dict[str, Any]":
    """Remove it; that is a version too, and can be taken back as long as the ones before are kept."""
    found = _writable(tx, name, how)
    if not found.is_there:
        raise errors.DocumentNotFound(name=name, near=named.near(name, _names(tx)))
    _add(tx, name, found.revision, {**_about(how.by, how.at, "", None), "deleted": True}, "", how.keep)
    tx.delete(*names.to_key(PLAIN, name))
    return {"name": name, "revision": found.revision + 1}


def restore(tx: "Transaction", name: str, revision: "int | None", how: Writing) -> "dict[str, Any]":
    """Write an earlier version again: the one named, or the last before the one that is there now."""
    if revision is None:
        now = find(tx, name, adopt=False).revision
        kept = [version for version in _versions(tx, name) if version.revision < now]
    else:
        kept = [_version(tx, name, revision)]
    with_text = [version for version in kept if not version.about["deleted"]]
    if not with_text:
        raise errors.RevisionNotFound(name=name, revision="with a text" if revision is None else revision)
    return write(tx, name, with_text[0].text, how)


def history(tx: "Transaction", name: str) -> "list[dict[str, Any]]":
    """The versions that are kept, the newest first."""
    now = find(tx, name)
    if not now.revision:
        raise errors.DocumentNotFound(name=name, near=named.near(name, _names(tx)))
    earlier = [version for version in _versions(tx, name) if version.revision < now.revision]
    return [
        {**described(version.revision, version.about), "deleted": version.about["deleted"]}
        for version in [now, *earlier]
    ]


def all_of(tx: "Transaction", prefix: str) -> "list[dict[str, Any]]":
    """Every document whose name starts so, in the order of their names."""
    found = []
    for name in _names(tx):
        if name.startswith(prefix):
            document = find(tx, name, adopt=False)
            if document.is_there:
                found.append({"name": name, **described(document.revision, document.about)})
    return sorted(found, key=lambda document: str(document["name"]))


def find(tx: "Transaction", name: str, adopt: bool = True) -> Document:
    """It as it is now. What somebody edited by hand becomes a version, or is only shown as one."""
    item = tx.get(*names.to_key(PLAIN, name))
    last = _newest(tx, name)
    if last is None and item is None:
        return Document(name, 0, {}, "")
    about, text = _decoded(last) if last is not None else ({"deleted": True}, "")
    is_edited = item is not None and (last is None or item.revision > last.revision)
    if is_edited or (item is None and not about["deleted"]):
        return _by_hand(tx, name, last, item, adopt)
    if item is not None and _checksum(item.value) != about["checksum"]:
        reason = "its text has another checksum than when it was written"
        raise errors.StoreDamaged(path=f"document {name}", reason=reason)
    return Document(name, _number(last), about, text)


def described(revision: int, about: "dict[str, Any]") -> "dict[str, Any]":
    return {"revision": revision, **{word: about[word] for word in _SHOWN}}


def _writable(tx: "Transaction", name: str, how: Writing) -> Document:
    if how.fence is not None:
        locks.check_fence(tx, *how.fence)
    found = find(tx, name)
    if how.base is not None and how.base != found.base:
        raise errors.Conflict(
            name=name,
            base=how.base,
            revision=found.base,
            text=found.text if found.is_there else None,
            base_text=_text_at(tx, name, how.base),
        )
    return found


def _by_hand(tx: "Transaction", name: str, last: "Item | None", item: "Item | None", adopt: bool) -> Document:
    """What the text is when somebody else than accord made it so."""
    try:
        text = item.value.decode() if item is not None else ""
    except UnicodeDecodeError as error:
        raise errors.InvalidEncoding(what=f"The document {name}", at=error.start) from None
    about = {**_about(_HAND, timestamp(time.time()), text, None), "deleted": item is None}
    if adopt:
        tx.append(_collection(name), _encoded(about, text))
    return Document(name, _number(last) + 1, about, text)


def _add(tx: "Transaction", name: str, revision: int, about: "dict[str, Any]", text: str, keep: int) -> None:
    """Append a version, and drop those that are too old."""
    collection = _collection(name)
    tx.append(collection, _encoded(about, text))
    oldest = tx.list(collection, limit=_MOST_TRIMMED)
    for item in oldest:
        if int(item.id) < revision + 1 - keep:
            tx.delete(collection, item.id)


def _version(tx: "Transaction", name: str, revision: int) -> Document:
    item = tx.get(_collection(name), number_id(revision))
    if item is None:
        raise errors.RevisionNotFound(name=name, revision=revision)
    return Document(name, revision, *_decoded(item))


def _versions(tx: "Transaction", name: str) -> "list[Document]":
    """Those that are kept, the newest first."""
    page = tx.list(_collection(name), limit=MAX_PAGE, reverse=True)
    return [Document(name, int(item.id), *_decoded(item)) for item in page]


def _text_at(tx: "Transaction", name: str, revision: int) -> "str | None":
    item = tx.get(_collection(name), number_id(revision)) if revision else None
    return None if item is None else _decoded(item)[1]


def _newest(tx: "Transaction", name: str) -> "Item | None":
    page = tx.list(_collection(name), limit=1, reverse=True)
    return page[0] if page else None


def _names(tx: "Transaction") -> "Iterator[str]":
    """Of all that ever were, and those that were made by hand."""
    yield from {*named.each_collection(tx, "version"), *[name for name, _ in named.each(tx, PLAIN)]}


def _about(by: str, at: str, text: str, expires_at: "str | None") -> "dict[str, Any]":
    return {
        "by": by,
        "at": at,
        "checksum": _checksum(text.encode()),
        "size": len(text.encode()),
        "expires_at": expires_at,
        "deleted": False,
    }


def _is_over(about: "dict[str, Any]") -> bool:
    return bool(about["expires_at"]) and about["expires_at"] <= timestamp(time.time())


def _encoded(about: "dict[str, Any]", text: str) -> bytes:
    return jsontext.dumps(about).encode() + b"\n" + text.encode()


def _decoded(item: "Item") -> "tuple[dict[str, Any], str]":
    line, _, text = item.value.partition(b"\n")
    return jsontext.loads_own(line), text.decode()  # type: ignore[return-value]


def _number(version: "Item | None") -> int:
    return 0 if version is None else int(version.id)


def _checksum(text: bytes) -> str:
    from hashlib import sha256

    return sha256(text).hexdigest()


def _collection(name: str) -> str:
    return names.to_collection("version", name)
