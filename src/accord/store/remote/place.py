"""What follows the engine in the URL of a store elsewhere: `//USER:PASSWORD@HOST:PORT,.../PATH?OPTIONS`."""

from urllib.parse import parse_qsl, unquote

from accord import errors


class Place:
    """Shown as it was written, but for the password."""

    def __init__(self, engine: str, text: str, options: "dict[str, str]") -> None:
        """`options` has every option that the engine knows, with its default."""
        head, _, query = text.removeprefix("//").partition("?")
        authority, _, self.path = head.partition("/")
        login, at, hosts = authority.rpartition("@")
        user, _, password = login.partition(":")
        self.user = unquote(user)
        self.password = unquote(password)
        self.shown = f"{engine}://{f'{user}@' if user else ''}{hosts}{'/' * bool(self.path)}{self.path}"
        self.hosts = hosts.split(",") if hosts else []
        self._engine = engine
        if not text.startswith("//") or (at and not login):
            raise self.wrong("it is written ENGINE://HOST")
        self.options = {**options, **self._read_options(query, options)}

    def wrong(self, reason: str) -> errors.InvalidConfig:
        return errors.InvalidConfig(path=self.shown, reason=reason)

    def address(self, host: str, port: int) -> "tuple[str, int]":
        """One of the hosts, and its port or else this one."""
        name, colon, number = host.rpartition(":")
        if not colon or (host.startswith("[") and host.endswith("]")):
            return host.strip("[]"), port
        if not (number.isascii() and number.isdigit() and 0 < int(number) < 65536):
            raise self.wrong(f"{number!r} is no port")
        return name.strip("[]"), int(number)

    def _read_options(self, query: str, known: "dict[str, str]") -> "dict[str, str]":
        try:
            found = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        except ValueError:
            raise self.wrong("its options are written ?NAME=VALUE&NAME=VALUE") from None
        for name in found:
            if name not in known:
                raise self.wrong(f"{name!r} is none of its options: {', '.join(sorted(known))}")
        return found


def with_path(place: str, path: str) -> str:
    """The same place but for its path."""
    head, mark, query = place.partition("?")
    return f"//{head.removeprefix('//').partition('/')[0]}/{path}{mark}{query}"


def with_option(place: str, name: str, value: str) -> str:
    """The same place but for one option."""
    head, _, query = place.partition("?")
    others = [option for option in query.split("&") if option and option.partition("=")[0] != name]
    return f"{head}?{'&'.join([*others, f'{name}={value}'])}"
