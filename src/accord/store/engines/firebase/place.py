"""`//PROJECT/PATH?OPTIONS`: which database that is, where in it, and who asks."""

from urllib.parse import quote

from accord.store.engines.firebase.account import Nobody, Owner, Service
from accord.store.remote.http import Endpoint
from accord.store.remote.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.firebase.account import Account

OPTIONS = {
    "url": "",  # of the database; by default the project's first one
    "key": "",  # the file of a service account
    "emulator": "",  # HOST:PORT
    "uid": "",  # who the security rules see; by default nobody asks them, since a service account is an administrator
}
PATH = "accord"

_FORBIDDEN = set(".$#[]") | {chr(number) for number in (*range(32), 127)}
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Where:
    def __init__(self, text: str) -> None:
        place = Place("firebase", text, OPTIONS)
        options = place.options
        self.shown = place.shown
        self.uid = options["uid"]
        self.namespace = ""
        if len(place.hosts) != 1 or place.user:
            raise place.wrong("it is written firebase://PROJECT/PATH")
        self.path = self._checked_path(place)
        url = options["url"] or f"https://{place.hosts[0]}-default-rtdb.firebaseio.com"
        if options["emulator"]:
            if options["key"]:
                raise place.wrong("an emulator takes no key")
            self.namespace = url.partition("//")[2].partition(".")[0]
            self.endpoint = Endpoint(*place.address(options["emulator"], 9000))
            self.account: Account = Owner()
            return
        self.endpoint = _endpoint_of(place, url)
        self.account = Service(options["key"], self.shown) if options["key"] else Nobody()
        if options["key"] and not self.endpoint.secure and self.endpoint.host not in _LOCAL:
            raise place.wrong("a key is used over https alone")

    def _checked_path(self, place: Place) -> str:
        path = place.path.strip("/") or PATH
        for part in path.split("/"):
            if not part or _FORBIDDEN & set(part) or len(part.encode()) > 700:
                raise place.wrong(f"{part!r} can be no part of a path: it has one of . $ # [ ] or is empty or too long")
        return quote(path)


def _endpoint_of(place: Place, url: str) -> Endpoint:
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    if scheme not in ("http", "https") or not host or path:
        raise place.wrong(f"the url of a database is written https://HOST, not {url}")
    secure = scheme == "https"
    return Endpoint(*place.address(host, 443 if secure else 80), secure)
