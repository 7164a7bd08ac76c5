"""Documents: texts with versions, which several may change without losing each other's changes.

doc/...         the text as it is now, and nothing else; on `files` people may edit it by hand
version/NAME    each version: a line of JSON about it, then its text; its number is the document's revision
"""

import time

from accord import errors, jsontext
from accord.model import read_name, timestamp
from accord.services import locks, named
from accord.store import names
from accord.store.contract import PLAIN, number_id
from accord.store.transaction import First

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from accord.store.contract import Item
    from accord.store.transaction import Transaction

MAX_BYTES = 524_288  # a commit holds it twice: as the text, and as a version

_MOST_TRIMMED = 20  # versions that one write removes; more only where fewer are to be kept than before
_PAGE = 20  # texts that are in memory at once
_HAND = "by hand"
_SHOWN = ("checksum", "size", "by", "at", "expires_at")


class Document:
    """A document as it is now, or was."""

    def __init__(self, name: str, revision: int, about: "dict[str, Any]", text: str, edited: bool = False) -> None:
        self.name = name
        self.revision = revision  # 0: there never was one
        self.about = about
        self.text = text
        self.edited = edited  # by hand, and no version yet

    @property
    def is_there(self) -> bool:
        return bool(self.revision) and not self.about["deleted"] and not _is_over(self.about)

    @property
    def base(self) -> int:
        """What a write that knows how it is names as its base."""
        return self.revision if self.is_there else 0

    def summary(self) -> "dict[str, Any]":
        return {"name": self.name, "revision": self.revision, **{word: self.about[word] for word in _SHOWN}}


class Writing:
    """Who writes, when, and on what conditions."""

    def __init__(
        self,
        by: str,
        at: str,
        keep: int,
        base: "int | None" = None,
        ttl_s: "float | None" = 0,
        fence: "tuple[str, int] | None" = None,
    ) -> None:
        self.by = by
        self.at = at
        self.keep = keep  # earlier versions
        self.base = base  # the revision that it must still have; 0: none; None: any
        self.keeps_end = ttl_s is None  # it is gone by itself when it would have been before
        self.expires_at = timestamp(time.time() + ttl_s) if ttl_s else None  # or then; None: never
        self.fence = fence  # a lock that must still be held, and its number


def read(tx: "Transaction", name: str, revision: "int | None", keep: int) -> "dict[str, Any]":
    """The document, or one of its earlier versions."""
    found = take_in(tx, name, keep)
    if revision is None and not found.is_there:
        raise _not_found(tx, name)
    if revision is not None and revision != found.revision:
        found = _version(tx, name, revision)
    if found.about["deleted"]:
        raise errors.RevisionNotFound(name=name, revision=f"{revision} with a text")
    return {**found.summary(), "text": found.text}


def write(tx: "Transaction", name: str, text: str, how: Writing) -> "dict[str, Any]":
    """Make this the text, unless the document moved on; the new revision."""
    _check_size(f"The document {name}", text.encode())
    _check_fence(tx, how)
    found = _writable(tx, name, how)
    return _write(tx, found, text, how, found).summary()


def remove(tx: "Transaction", name: str, how: Writing) -> "dict[str, Any]":
    """Remove it; that is a version too, and can be taken back as long as the ones before are kept."""
    _check_fence(tx, how)
    found = _writable(tx, name, how)
    if not found.is_there:
        raise _not_found(tx, name)
    about = {**_about(how.by, how.at, b"", None), "deleted": True}
    tx.delete(*names.to_key(PLAIN, name))
    return {"name": name, "revision": _add(tx, found, about, "", how.keep).revision}


def restore(tx: "Transaction", name: str, revision: "int | None", how: Writing) -> "dict[str, Any]":
    """Write an earlier version again: the one named, or the last before the one that is there now."""
    _check_fence(tx, how)
    try:
        found = _writable(tx, name, how)
    except errors.StoreDamaged:
        # What is damaged can only be replaced, and the version of the same number may be whole.
        found = Document(name, _number(_newest(tx, name)), {"deleted": True}, "")
    source = (
        _last_text(tx, name, found.revision + (not found.is_there))
        if revision is None
        else _version(tx, name, revision)
    )
    if source is None or source.about["deleted"]:
        raise errors.RevisionNotFound(name=name, revision=f"{revision or ''} with a text".lstrip())
    return _write(tx, found, source.text, how, found if found.is_there else source).summary()


def history(tx: "Transaction", name: str, keep: int) -> "list[dict[str, Any]]":
    """The versions that are kept, the newest first."""
    now = take_in(tx, name, keep)
    if not now.revision:
        raise _not_found(tx, name)
    earlier = [(int(item.id), _about_of(name, item)) for item in _versions(tx, name) if int(item.id) < now.revision]
    return [
        {"revision": revision, **{word: about[word] for word in (*_SHOWN, "deleted")}}
        for revision, about in [(now.revision, now.about), *earlier]
    ]


def all_of(tx: "Transaction", prefix: str) -> "list[Document | dict[str, Any]]":
    """Every document whose name starts so, in the order of their names; what cannot be read, as what is wrong."""
    found: list[Document | dict[str, Any]] = []
    for name in sorted(name for name in _names(tx) if name.startswith(prefix)):
        try:
            document = find(tx, name)
            if document.is_there:
                found.append(document)
        except (errors.StoreDamaged, errors.InvalidEncoding, errors.TooLarge) as error:
            found.append({"name": name, "revision": None, **dict.fromkeys(_SHOWN), "problem": error.code})
    return found


def find(tx: "Transaction", name: str) -> Document:
    """It as it is now. What somebody edited by hand has the number of the version that it will be."""
    collection = _collection(name)
    if collection in tx.notes:
        written: Document = tx.notes[collection]
        return written
    item = tx.get(*names.to_key(PLAIN, name))
    last = _newest(tx, name)
    if last is None and item is None:
        return Document(name, 0, {}, "")
    about: dict[str, Any] = _about_of(name, last) if last is not None else {"deleted": True, "expires_at": None}
    is_edited = item is not None and (last is None or item.revision > last.revision)
    if is_edited or (item is None and not about["deleted"]):
        return _by_hand(name, _number(last) + 1, item, None if _is_over(about) else about["expires_at"])
    if item is None:
        return Document(name, _number(last), about, "")
    return Document(name, _number(last), about, _whole(name, about, item.value))


def take_in(tx: "Transaction", name: str, keep: int) -> Document:
    """It as it is now, after what was edited by hand was made a version."""
    found = find(tx, name)
    if not found.edited:
        return found
    before = Document(name, found.revision - 1, {}, "")
    return _add(tx, before, found.about, found.text, keep)


def _check_fence(tx: "Transaction", how: Writing) -> None:
    if how.fence is not None:
        locks.check_fence(tx, *how.fence)


def _writable(tx: "Transaction", name: str, how: Writing) -> Document:
    found = find(tx, name)
    if found.edited:
        # In a commit of its own: a conflict must tell of a version that is there, and two texts may not fit into one.
        raise First(lambda tx: take_in(tx, name, how.keep))
    if how.base is not None and how.base != found.base:
        raise errors.Conflict(
            name=name,
            base=how.base,
            revision=found.base,
            text=found.text if found.is_there else None,
            base_text=_text_at(tx, name, how.base),
        )
    return found


def _write(tx: "Transaction", found: Document, text: str, how: Writing, before: Document) -> Document:
    """It with this text, and the end of `before` where that is kept; what is so already is left alone."""
    expires_at = before.about["expires_at"] if how.keeps_end and before.is_there else how.expires_at
    if found.is_there and found.text == text and found.about["expires_at"] == expires_at:
        return found
    data = text.encode()
    tx.put(*names.to_key(PLAIN, found.name), data)
    return _add(tx, found, _about(how.by, how.at, data, expires_at), text, how.keep)


def _add(tx: "Transaction", before: Document, about: "dict[str, Any]", text: str, keep: int) -> Document:
    """Append a version, and drop those that are too old."""
    collection = _collection(before.name)
    added = Document(before.name, before.revision + 1, about, text)
    tx.append(collection, jsontext.dumps(about).encode() + b"\n" + text.encode())
    tx.notes[collection] = added
    for item in tx.list(collection, limit=_MOST_TRIMMED):
        if int(item.id) < added.revision - keep:
            tx.delete(collection, item.id)
    return added


def _by_hand(name: str, revision: int, item: "Item | None", expires_at: "str | None") -> Document:
    """What the text is when somebody else than accord made it so."""
    data = item.value if item is not None else b""
    _check_size(f"The document {name}, edited by hand,", data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidEncoding(what=f"The document {name}", at=error.start) from None
    about = {**_about(_HAND, timestamp(time.time()), data, expires_at), "deleted": item is None}
    return Document(name, revision, about, text, edited=True)


def _version(tx: "Transaction", name: str, revision: int) -> Document:
    item = tx.get(_collection(name), number_id(revision))
    if item is None:
        raise errors.RevisionNotFound(name=name, revision=revision)
    return _decoded(name, item)


def _last_text(tx: "Transaction", name: str, before: int) -> "Document | None":
    """The newest version before that one that has a text and is whole."""
    for item in _versions(tx, name):
        if int(item.id) < before:
            try:
                version = _decoded(name, item)
            except errors.StoreDamaged:
                continue
            if not version.about["deleted"]:
                return version
    return None


def _versions(tx: "Transaction", name: str) -> "Iterator[Item]":
    """Those that are kept, the newest first."""
    after = ""
    while page := tx.list(_collection(name), after, _PAGE, reverse=True):
        yield from page
        after = page[-1].id


def _text_at(tx: "Transaction", name: str, revision: int) -> "str | None":
    """What it was then; None where that is not known, or was nothing."""
    try:
        found = _version(tx, name, revision)
    except (errors.RevisionNotFound, errors.StoreDamaged):
        return None
    return None if found.about["deleted"] else found.text


def _newest(tx: "Transaction", name: str) -> "Item | None":
    page = tx.list(_collection(name), limit=1, reverse=True)
    return page[0] if page else None


def _names(tx: "Transaction") -> "set[str]":
    """Of all that ever were, and those that were made by hand under a name that a document can have."""
    by_hand = {name for name, _ in named.each(tx, PLAIN, _PAGE) if _is_name(name)}
    return {*named.each_collection(tx, "version"), *by_hand}


def _is_name(name: str) -> bool:
    try:
        return read_name(name) == name
    except errors.InvalidName:
        return False


def _not_found(tx: "Transaction", name: str) -> errors.DocumentNotFound:
    return errors.DocumentNotFound(name=name, near=named.near(name, named.each_collection(tx, "version")))


def _about(by: str, at: str, text: bytes, expires_at: "str | None") -> "dict[str, Any]":
    return {
        "by": by,
        "at": at,
        "checksum": _checksum(text),
        "size": len(text),
        "expires_at": expires_at,
        "deleted": False,
    }


def _is_over(about: "dict[str, Any]") -> bool:
    return bool(about["expires_at"]) and about["expires_at"] <= timestamp(time.time())


def _decoded(name: str, item: "Item") -> Document:
    about = _about_of(name, item)
    return Document(name, int(item.id), about, _whole(name, about, item.value.partition(b"\n")[2]))


def _about_of(name: str, item: "Item") -> "dict[str, Any]":
    """What a version says of itself."""
    try:
        about: Any = jsontext.loads_own(item.value.partition(b"\n")[0])
        if about.keys() >= {*_SHOWN, "deleted"}:
            return about  # type: ignore[no-any-return]
    except (errors.InvalidJson, ValueError, AttributeError):
        pass
    raise errors.StoreDamaged(path=f"version {int(item.id)} of {name}", reason="what describes it cannot be read")


def _whole(name: str, about: "dict[str, Any]", text: bytes) -> str:
    """The text, which must be the one that was written."""
    if _checksum(text) != about["checksum"]:
        reason = "its text has another checksum than when it was written (accord doc restore brings a whole one back)"
        raise errors.StoreDamaged(path=f"The document {name}", reason=reason)
    return text.decode()


def _check_size(what: str, text: bytes) -> None:
    if len(text) > MAX_BYTES:
        raise errors.TooLarge(what=what, most=MAX_BYTES, found=len(text))


def _number(version: "Item | None") -> int:
    return 0 if version is None else int(version.id)


def _checksum(text: bytes) -> str:
    from hashlib import sha256

    return sha256(text).hexdigest()


def _collection(name: str) -> str:
    return names.to_collection("version", name)
