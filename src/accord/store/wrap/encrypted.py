"""A store in which nobody without the key can read what people and agents wrote.

Every value is encrypted with AES-GCM, bound to the name of the key, to its collection, and to its id where it is known
when it is written: an append gets its number from the commit. Readable stay collections and ids, and the numbers that
only a commit can give, which stand before the rest and are bound to nothing:

    NUMBER,NUMBER:  = or #  a nonce of 12 bytes  what was encrypted: LENGTH,LENGTH\\n  and the pieces around the numbers

A = stands before what is bound to its id, a # before what is bound to none and must lie under a number. A value that
cannot be decrypted is one damaged item, and an error for whoever asks for that value.

One item is not encrypted: it names the key, so that another one is an error and not rubbish.
"""

import os

from accord import cipherkey, errors
from accord.store.contract import KEY_ITEM, LOCK_WAIT_S, Append, Delete, Item, Number, Put, is_number
from accord.store.transaction import transact
from accord.store.wrap.around import AroundLedger, AroundSnapshot, AroundStore, inner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store.contract import Check, Committed, Content, Head, Template, Write
    from accord.store.protocols import Batch, Ledger, Snapshot, Store
    from accord.store.transaction import Transaction
    from accord.store.wrap.around import Lockable

_NONCE = 12
_HERE, _NUMBERED = b"=", b"#"
_UNKNOWN = Number(0)  # whatever an append will get


def encrypted(store: "Store", key: bytes, path: str) -> "Store":
    """`store`, with the key that it is encrypted with; an empty one is so from now on."""
    cipher = Cipher(key, path)
    known = key_of(store) or _name_key(store, cipher.name)
    if not known:
        raise errors.WrongKey(path=path, reason="what is in it is not encrypted")
    if known != cipher.name:
        raise errors.WrongKey(path=path, reason=f"it was encrypted with {known}, and this is {cipher.name}")
    return around(store, cipher)


def around(store: "Store", cipher: "Cipher") -> "Store":
    return _EncryptedLockable(store, cipher) if hasattr(store, "exclusive") else _Encrypted(store, cipher)


def key_of(store: "Store") -> str:
    """The name of the key that a store is encrypted with; "": it is not."""
    item = transact(store, lambda tx: tx.get(*KEY_ITEM))
    return "" if item is None else item.value.decode()


def _name_key(store: "Store", name: str) -> str:
    """Have the store name this key if it is empty; what it names then, which is nothing where it is not encrypted."""

    def work(tx: "Transaction") -> None:
        if tx.get(*KEY_ITEM) is None and tx.revision.endswith(".0"):
            tx.put(*KEY_ITEM, name.encode())

    transact(store, work, rivals=True)  # under the lock, where there is one: nobody else makes the first commit
    return key_of(store)


class Cipher:
    def __init__(self, key: bytes, path: str) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise errors.DriverMissing(engine="encryption", package="cryptography") from None

        self.name = cipherkey.name_of(key)
        self._aes = AESGCM(key)
        self._invalid = InvalidTag
        self._path = path

    def close(self, collection: str, id: "str | Number", value: "bytes | Template") -> "bytes | Template":
        pieces, numbers = _split(value)
        nonce = os.urandom(_NONCE)
        lengths = ",".join(str(len(piece)) for piece in pieces)
        plain = b"".join([lengths.encode(), b"\n", *pieces])
        flag, place = (_HERE, id) if isinstance(id, str) else (_NUMBERED, "")
        sealed = b":" + flag + nonce + self._aes.encrypt(nonce, plain, self._bound(collection, place))
        return (*_with_commas(numbers), sealed) if numbers else sealed

    def open(self, collection: str, item: Item) -> Item:
        """The item with its value; StoreDamaged where it is none that was stored there with this key."""
        numbers, _, sealed = item.value.partition(b":")
        flag, nonce, rest = sealed[:1], sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        try:
            plain = self._aes.decrypt(nonce, rest, self._bound(collection, _place(flag, item.id)))
            return Item(item.id, _joined(plain, numbers), item.revision)
        except (self._invalid, ValueError):
            what = f"{collection}/{item.id} in {self._path}"
            raise errors.StoreDamaged(path=what, reason="it cannot be decrypted, though the key is right") from None

    def _bound(self, collection: str, id: str) -> bytes:
        # What no collection or id can be the engine refuses.
        return f"{collection}\0{id}\0{self.name}".encode("utf-8", "replace")


def _place(flag: bytes, id: str) -> str:
    """The id that a value is bound to; "" where it was not known."""
    if flag == _HERE:
        return id
    if flag == _NUMBERED and is_number(id):
        return ""
    raise ValueError("nothing is stored so")


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


def _joined(plain: bytes, numbers: bytes) -> bytes:
    line, _, rest = plain.partition(b"\n")
    pieces, at = [], 0
    for length in map(int, line.split(b",")):
        pieces.append(rest[at : at + length])
        at += length
    between = numbers.split(b",") if numbers else []
    if not all(number.isdigit() for number in between):
        raise ValueError("no commit gave such a number")
    return b"".join([word for pair in zip(pieces, [*between, b""], strict=True) for word in pair])


class _Damaged(Item):
    """One that cannot be decrypted: whoever asks for its value is told, and nobody else."""

    def __init__(self, id: str, revision: int, error: errors.StoreDamaged) -> None:
        self.id = id
        self.revision = revision
        self._error = error

    @property
    def value(self) -> bytes:  # type: ignore[override]
        raise self._error


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
        if collection == KEY_ITEM[0]:
            return item
        try:
            return self._cipher.open(collection, item)
        except errors.StoreDamaged as error:
            return _Damaged(item.id, item.revision, error)


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
        if isinstance(write, Append):
            return Append(write.collection, self._cipher.close(write.collection, _UNKNOWN, write.value))
        return Put(write.collection, write.id, self._cipher.close(write.collection, write.id, write.value))


class _Encrypted(_EncryptedLedger, AroundStore):
    @property
    def key_name(self) -> str:
        return self._cipher.name

    def load(self, contents: "Iterable[Content]") -> None:
        super().load((collection, last, self._closed(collection, items)) for collection, last, items in contents)

    def _closed(self, collection: str, items: "Iterable[Item]") -> "Iterable[Item]":
        for item in items:
            value = item.value if collection == KEY_ITEM[0] else self._cipher.close(collection, item.id, item.value)
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
