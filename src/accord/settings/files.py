"""Reading `accord.yml`, once for each change of it, and which ones their owner trusts."""

import os
import stat

from accord import errors, jsontext, place
from accord.settings import COMMUNICATION, SETTINGS, read_cache
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_BYTES = 1 << 20

# Of paths that their owner trusts, with what they held then.
_TRUSTED = "operator/trusted.json"

_KNOWN = [*sorted(SETTINGS), f"{COMMUNICATION} 1"]  # what this accord reads, and how: raised when that changes


def values_of(path: str, home: str) -> tuple[dict[str, object], str]:
    """What a file sets, and the digest of its text."""
    stamp = _stamp(path)
    cache = f"cache/settings-{os.geteuid()}.json"
    cached = read_cache(f"{home}/{cache}").get(path)
    if isinstance(cached, dict) and cached.get("stamp") == stamp and cached.get("known") == _KNOWN:
        return cached["values"], cached["digest"]
    values, digest = values_in(path, _read_text(path))
    _remember(home, cache, path, {"stamp": stamp, "known": _KNOWN, "values": values, "digest": digest})
    return values, digest


def values_in(path: str, text: bytes) -> tuple[dict[str, object], str]:
    """What the text of a file sets, and its digest."""
    from _blake2 import blake2b

    return _parse(path, text), blake2b(text, digest_size=32).hexdigest()


def is_trusted(path: str, digest: str, home: str) -> bool:
    return read_cache(f"{home}/{_TRUSTED}").get(path) == digest


def needs_trust(name: str, value: "Any") -> bool:
    """Whether a project may set it only once its owner trusts the file."""
    if name == COMMUNICATION:
        from accord.settings.engine import needs_trust

        return needs_trust(value)
    return SETTINGS[name].trust


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
    _check_once(path, root)
    values: dict[str, object] = {}
    for name, value in found.items():
        one = _communication(path, value) if name == COMMUNICATION else _setting(path, name, value)
        for both in sorted(values.keys() & one.keys()):
            raise errors.InvalidConfig(path=path, reason=f"it sets {both} twice, also below {COMMUNICATION}")
        values |= one
    if "engine" in values:
        _check_engine(path, values)
    return values


def _check_once(path: str, root: "Any") -> None:
    """Of names that come twice YAML takes the last, unseen."""
    parts = [root, *_below(root, COMMUNICATION)]
    for node in [*parts, *[one for part in parts[1:] for one in _below(part, "settings")]]:
        names = [key.value for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise errors.InvalidConfig(path=path, reason=f"it sets {str(name)[:100]!r} twice")


def _below(node: "Any", name: str) -> "list[Any]":
    return [value for key, value in node.value if key.value == name and value.id == "mapping"]


def _check_engine(path: str, values: "dict[str, Any]") -> None:
    from accord.settings.engine import check_url

    if "backend" in values.get(COMMUNICATION, ()):
        reason = f"it chooses an engine twice, with engine and with {COMMUNICATION}.backend; leave one of them out"
        raise errors.InvalidConfig(path=path, reason=reason)
    check_url(values["engine"], path)


def _communication(path: str, found: "Any") -> dict[str, object]:
    """What stands below `communication`, with settings that have names of their own under those."""
    from accord.settings.engine import KEYS

    parts = found if isinstance(found, dict) else {} if found is None else {"": found}
    given = parts.get("settings")
    below = given if isinstance(given, dict) else {} if given is None else {"": given}
    if "" in {**parts, **below}:
        raise errors.InvalidConfig(path=path, reason=f"{COMMUNICATION} consists of backend and settings, NAME: VALUE")
    for name in parts:
        if name not in ("backend", "settings"):
            raise _no_setting(path, f"{COMMUNICATION}.{name}", str(name))
    values: dict[str, object] = {}
    kept: dict[str, object] = {}
    if "backend" in parts:
        kept["backend"] = _read(path, f"{COMMUNICATION}.backend", _word, parts["backend"])
    for name, value in below.items():
        if name not in KEYS:
            raise _no_setting(path, f"{COMMUNICATION}.settings.{name}", str(name))
        key = KEYS[name]
        read = _read(path, f"{COMMUNICATION}.settings.{name}", key.read, value)
        (values if key.same_as else kept)[key.same_as or name] = read
    return {**values, COMMUNICATION: kept} if kept else values


def _word(value: object) -> object:
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise ValueError("the name of an engine")
    return value


def _setting(path: str, name: object, value: object) -> dict[str, object]:
    if name not in SETTINGS:
        raise _no_setting(path, str(name), str(name))
    return {str(name): _read(path, str(name), SETTINGS[str(name)].read, value)}


def _no_setting(path: str, shown: str, name: str) -> errors.AccordError:
    from difflib import get_close_matches

    from accord.settings.engine import KEYS

    there = {**{key: f"{COMMUNICATION}.settings.{key}" for key in KEYS}, "backend": f"{COMMUNICATION}.backend"}
    there |= {"settings": f"{COMMUNICATION}.settings", COMMUNICATION: COMMUNICATION} | {one: one for one in SETTINGS}
    near = [there[found] for found in get_close_matches(name, there)]
    hint = f"perhaps {' or '.join(near)} is meant" if near else f"there are {', '.join([*SETTINGS, COMMUNICATION])}"
    return errors.InvalidConfig(path=path, reason=f"it sets {shown[:100]!r}, which is no setting; {hint}")


def _read(path: str, name: str, read: "Callable[[object], object]", value: object) -> object:
    try:
        return read(value)
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
