"""A store in which nobody without the key can read what people and agents wrote.

Every value is encrypted with AES-GCM, bound to its collection and to the name of the key. Readable stay collections and
ids, and the numbers that only a commit can give, which stand before the rest:

    NUMBER,NUMBER:  a nonce of 12 bytes  what was encrypted: LENGTH,LENGTH,LENGTH\\n  and the pieces around the numbers

One item is not encrypted: it names the key, so that another one is an error and not rubbish.
"""

import os

from accord import errors
from accord.store.contract import KEY_ITEM, LOCK_WAIT_S, Append, Conflict, Delete, Item, ItemIs, Number, Put
from accord.store.transaction import transact
from accord.store.wrap.around import AroundLedger, AroundSnapshot, AroundStore, inner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store.contract import Check, Committed, Content, Head, Template, Write
    from accord.store.protocols import Batch, Ledger, Snapshot, Store
    from accord.store.wrap.around import Lockable

KEY_BYTES = 32

_NONCE = 12


def encrypted(store: "Store", key: bytes, path: str) -> "Store":
    """`store`, with the key that it is encrypted with; an empty one is so from now on."""
    cipher = Cipher(key, path)
    known = key_of(store)
    if not known:
        if not _is_empty(store):
            raise errors.WrongKey(path=path, reason="what is in it is not encrypted")
        _name_key(store, cipher.name)
        known = key_of(store)
    if known != cipher.name:
        raise errors.WrongKey(path=path, reason=f"it was encrypted with {known}, and this is {cipher.name}")
    return around(store, cipher)


def around(store: "Store", cipher: "Cipher") -> "Store":
    return _EncryptedLockable(store, cipher) if hasattr(store, "exclusive") else _Encrypted(store, cipher)


def key_of(store: "Store") -> str:
    """The name of the key that a store is encrypted with; "": it is not."""
    item = transact(store, lambda tx: tx.get(*KEY_ITEM))
    return "" if item is None else item.value.decode()


def _name_key(store: "Store", name: str) -> None:
    try:
        store.commit([ItemIs(*KEY_ITEM, 0)], [Put(*KEY_ITEM, name.encode())])
    except Conflict:
        pass  # somebody else did at the same time, with this key or another


def _is_empty(store: "Store") -> bool:
    with store.snapshot() as snapshot:
        return snapshot.revision == 0


class Cipher:
    def __init__(self, key: bytes, path: str) -> None:
        from _blake2 import blake2b

        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise errors.DriverMissing(engine="encryption", package="cryptography") from None

        self.name = blake2b(key, digest_size=8, person=b"accord key").hexdigest()
        self._aes = AESGCM(key)
        self._invalid = InvalidTag
        self._path = path

    def close(self, collection: str, value: "bytes | Template") -> "bytes | Template":
        pieces, numbers = _split(value)
        nonce = os.urandom(_NONCE)
        lengths = ",".join(str(len(piece)) for piece in pieces)
        plain = b"".join([lengths.encode(), b"\n", *pieces])
        sealed = b":" + nonce + self._aes.encrypt(nonce, plain, self._bound(collection))
        return (*_with_commas(numbers), sealed) if numbers else sealed

    def open(self, collection: str, item: Item) -> Item:
        numbers, _, sealed = item.value.partition(b":")
        try:
            plain = self._aes.decrypt(sealed[:_NONCE], sealed[_NONCE:], self._bound(collection))
        except (self._invalid, ValueError):
            reason = f"{collection}/{item.id} was changed, or is not encrypted"
            raise errors.WrongKey(path=self._path, reason=reason) from None
        return Item(item.id, _joined(plain, numbers.split(b",")), item.revision)

    def _bound(self, collection: str) -> bytes:
        return f"{collection}\0{self.name}".encode("utf-8", "replace")  # what no collection can be the engine refuses


def _split(value: "bytes | Template") -> "tuple[list[bytes], list[Number]]":
    """The pieces around the numbers, one more than there are numbers."""
    pieces, numbers = [b""], []
    for piece in (value,) if isinstance(value, bytes) else value:
        if isinstance(piece, Number):
            numbers.append(piece)
            pieces.append(b"")
        else:
            pieces[-1] += piece
    return pieces, numbers


def _with_commas(numbers: "list[Number]") -> "Template":
    return tuple([piece for number in numbers for piece in (b",", number)][1:])


def _joined(plain: bytes, numbers: list[bytes]) -> bytes:
    line, _, rest = plain.partition(b"\n")
    pieces, at = [], 0
    for length in map(int, line.split(b",")):
        pieces.append(rest[at : at + length])
        at += length
    between = numbers if len(pieces) > 1 else []
    return b"".join([word for pair in zip(pieces, [*between, b""], strict=True) for word in pair])


class _Snapshot(AroundSnapshot):
    def __init__(self, inner: "Snapshot", cipher: Cipher) -> None:
        super().__init__(inner)
        self._cipher = cipher

    def get(self, collection: str, id: str) -> "Item | None":
        item = self.inner.get(collection, id)
        return None if item is None else self._open(collection, item)

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        return [self._open(collection, item) for item in self.inner.list(collection, after, limit, reverse)]

    def head(self, collection: str) -> "Head":
        return self.inner.head(collection)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        return self.inner.collections(prefix, after, limit)

    def _open(self, collection: str, item: Item) -> Item:
        return item if collection == KEY_ITEM[0] else self._cipher.open(collection, item)


class _EncryptedLedger(AroundLedger):
    """A store or a batch."""

    def __init__(self, ledger: "Ledger", cipher: Cipher) -> None:
        super().__init__(ledger)
        self._cipher = cipher

    def snapshot(self) -> _Snapshot:
        return _Snapshot(self._ledger.snapshot(), self._cipher)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> "Committed":
        return self._ledger.commit(checks, [self._close(write) for write in writes], inner_of(snapshot), timeout_s)

    def _close(self, write: "Write") -> "Write":
        if isinstance(write, Delete):
            return write
        value = self._cipher.close(write.collection, write.value)
        return Append(write.collection, value) if isinstance(write, Append) else Put(write.collection, write.id, value)


class _Encrypted(_EncryptedLedger, AroundStore):
    is_encrypted = True

    def load(self, contents: "Iterable[Content]") -> None:
        super().load((collection, last, self._closed(collection, items)) for collection, last, items in contents)

    def _closed(self, collection: str, items: "Iterable[Item]") -> "Iterable[Item]":
        for item in items:
            value = item.value if collection == KEY_ITEM[0] else self._cipher.close(collection, item.value)
            yield Item(item.id, value, item.revision)  # type: ignore[arg-type]


class _EncryptedLockable(_Encrypted):
    _ledger: "Lockable"

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "_Batch":
        return _Batch(self._ledger.exclusive(timeout_s), self._cipher)


class _Batch(_EncryptedLedger):
    _ledger: "Batch"

    def __enter__(self) -> "_Batch":
        self._ledger.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ledger.__exit__(*exc)
