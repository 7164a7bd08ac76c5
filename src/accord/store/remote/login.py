"""The password in a store's URL: taken out where URLs are kept and shown, put in where the store is opened."""

from accord import errors

LOCAL = ("sqlite", "files", "file", "memory")  # whose place is a path or a name, in which @ and : are letters

FILES = ("ca", "cert", "key")  # options that name files on this machine, with what it takes to get in
# Options that say how to get in, and not where.
_MANNER = (*FILES, "clock_skew_s", "timeout_s", "tls", "uid", "wait", "waitaof")

# Options by which passwords are given elsewhere. Here they would be shown, with all else that stands after the `?`.
_SECRET = ("auth", "pass", "passwd", "password", "pwd", "secret", "token")

CURE = (
    "put it into $ACCORD_ENGINE_PASSWORD, or into a file of mode 600 that the setting engine_password_file names, "
    "and leave it out of the URL"
)


def is_local(url: str) -> bool:
    return url.partition(":")[0] in LOCAL


def split(url: str) -> "tuple[str, str | None]":
    """The URL without its password, and the password as it stands there, percent-encoded; None: it has none."""
    engine, colon, place = url.partition(":")
    if engine in LOCAL:
        return url, None
    slashes = "//" if place.startswith("//") else ""
    authority, rest = _cut(place[len(slashes) :])
    login, at, hosts = authority.rpartition("@")
    if "@" in rest and not at and not all(_is_host(host) for host in authority.split(",")):
        raise _wrong(engine, "it holds a password with a / or ? in it: write them as %2F and %3F")
    user, _, password = login.partition(":")
    options = [option.partition("=")[0].lower() for option in rest.partition("?")[2].split("&")]
    if any(option in _SECRET for option in options):
        raise _wrong(engine, f"a password is none of its options: {CURE}")
    return f"{engine}{colon}{slashes}{user}{'@' * bool(user)}{hosts}{rest}", password or None


def join(url: str, password: str) -> str:
    """The URL with this password, as `open_store` takes it."""
    from urllib.parse import quote

    engine, _, place = url.partition(":")
    if engine in LOCAL or not place.startswith("//") or not password:
        return url
    authority, rest = _cut(place[2:])
    user, _, hosts = authority.rpartition("@")
    return f"{engine}://{user}:{quote(password, safe='')}@{hosts}{rest}"


def place_of(url: str) -> str:
    """The URL without what only says how to get in there: the same for all who share the store."""
    engine, _, place = url.partition(":")
    if engine in LOCAL or not place.startswith("//"):
        return url
    authority, rest = _cut(place[2:])
    path, _, options = rest.partition("?")
    kept = [option for option in options.split("&") if option.partition("=")[0] not in ("", *_MANNER)]
    return f"{engine}://{authority.rpartition('@')[2]}{path}{'?' * bool(kept)}{'&'.join(kept)}"


def shown(url: str) -> str:
    """For errors: without its password, whatever it looks like."""
    try:
        return split(url)[0]
    except errors.InvalidConfig as error:
        return str(error.details["path"])


def _cut(text: str) -> "tuple[str, str]":
    """What names the hosts, and what follows."""
    ends = [text.find(mark) for mark in "/?" if mark in text]
    end = min(ends, default=len(text))
    return text[:end], text[end:]


def _is_host(text: str) -> bool:
    """Whether it is a host, or one with a port, and not the beginning of USER:PASSWORD."""
    name, colon, port = text.rpartition(":")
    return not colon or name.startswith("[") or (":" not in name and (not port or port.isdigit()))


def _wrong(engine: str, reason: str) -> errors.InvalidConfig:
    return errors.InvalidConfig(path=f"the URL {engine}:...", reason=reason)
