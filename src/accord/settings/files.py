"""Reading `accord.yml`, once for each change of it, and which ones their owner trusts."""

import os
import stat

from accord import errors, jsontext, place
from accord.settings import SETTINGS, read_cache
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 1 << 20

# Of paths that their owner trusts, with what they held then.
_TRUSTED = "operator/trusted.json"


def values_of(path: str, home: str) -> tuple[dict[str, object], str]:
    """What a file sets, and the digest of its text."""
    stamp = _stamp(path)
    cache = f"cache/settings-{os.geteuid()}.json"
    cached = read_cache(f"{home}/{cache}").get(path)
    if isinstance(cached, dict) and cached.get("stamp") == stamp and cached.get("known") == sorted(SETTINGS):
        return cached["values"], cached["digest"]
    values, digest = values_in(path, _read_text(path))
    _remember(home, cache, path, {"stamp": stamp, "known": sorted(SETTINGS), "values": values, "digest": digest})
    return values, digest


def values_in(path: str, text: bytes) -> tuple[dict[str, object], str]:
    """What the text of a file sets, and its digest."""
    from _blake2 import blake2b

    return _parse(path, text), blake2b(text, digest_size=32).hexdigest()


def is_trusted(path: str, digest: str, home: str) -> bool:
    return read_cache(f"{home}/{_TRUSTED}").get(path) == digest


def trust(path: str, home: str) -> list[str]:
    """Let a project's file, as it is now, set what needs trust; the names of what it sets."""
    values, digest = values_of(path, home)
    folder.make_folder(home, secret=True)
    _remember(home, _TRUSTED, path, digest, must=True)
    return sorted(values)


def check_owner(path: str, home: str) -> None:
    """In a home that a group shares, any member could have put the settings of all there."""
    if place.is_shared(home) and _stat(path).st_uid not in (os.stat(home).st_uid, 0):
        raise errors.InvalidConfig(path=path, reason="it is not of the owner of the home, and set for all members")


def _stat(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        raise errors.InvalidConfig(path=path, reason=f"it cannot be read ({error.strerror})") from None


def _stamp(path: str) -> str:
    found = _stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise errors.InvalidConfig(path=path, reason="it is no file")
    return f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino} {found.st_dev}"


def _read_text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise errors.InvalidConfig(path=path, reason=f"it cannot be read ({error.strerror})") from None
    if len(text) > MOST_BYTES:
        raise errors.InvalidConfig(path=path, reason=f"it has more than {MOST_BYTES} bytes")
    return text


def _parse(path: str, text: bytes) -> dict[str, object]:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        found: Any = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise errors.InvalidConfig(path=path, reason=f"it is not YAML ({str(error).splitlines()[0]})") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise errors.InvalidConfig(path=path, reason="it does not consist of settings, NAME: VALUE")
    names = [key.value for key, _ in root.value]
    for name in names:
        if names.count(name) > 1:  # of which YAML takes the last, unseen
            raise errors.InvalidConfig(path=path, reason=f"it sets {str(name)[:100]!r} twice")
    return {_name(path, name): _value(path, name, value) for name, value in found.items()}


def _name(path: str, name: object) -> str:
    if name not in SETTINGS:
        from difflib import get_close_matches

        near = get_close_matches(str(name), SETTINGS)
        hint = f"perhaps {near[0]} is meant" if near else f"there are {', '.join(SETTINGS)}"
        raise errors.InvalidConfig(path=path, reason=f"it sets {str(name)[:100]!r}, which is no setting; {hint}")
    return str(name)


def _value(path: str, name: str, value: object) -> object:
    try:
        return SETTINGS[name].read(value)
    except ValueError as error:
        raise errors.InvalidConfig(path=path, reason=f"{name} should be {error}") from None


def _remember(home: str, file: str, key: str, value: object, must: bool = False) -> None:
    """Put one entry into a file of entries. A cache that cannot be written costs time, and nothing else."""
    path = f"{home}/{file}"
    try:
        if not os.path.isdir(home):
            return  # reading a setting makes no home
        folder.make_folder(os.path.dirname(path), secret=must)
        text = jsontext.dumps({**read_cache(path), key: value})
        mine = f"{path}.{os.getpid()}"
        fd = folder.open_private(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
        os.rename(mine, path)
    except (OSError, errors.AccordError) as error:
        if must:
            raise errors.DataDirError(path=path, errno=getattr(error, "errno", 0), reason=str(error)) from None
