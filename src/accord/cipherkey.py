"""The key of an encrypted store, and its name, which tells it from others without showing any of it."""

KEY_BYTES = 32


def read(text: str) -> bytes:
    """The key; nothing where this is none."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        return b""
    return key if len(key) == KEY_BYTES else b""


def name_of(key: bytes) -> str:
    from _blake2 import blake2b

    return blake2b(key, digest_size=8, person=b"accord key").hexdigest()
