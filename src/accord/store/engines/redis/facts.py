"""What a server says of itself: whether it may hold a store, what survives what, and which history it has."""

from accord import errors
from accord.store.engines.redis.address import Address
from accord.store.engines.redis.wire import Lost, Wire, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.redis.wire import Reply

_NEEDED = (6, 2)
_WAITAOF_NEEDED = (7, 2)
_NO_LINE = "0" * 40

# By appendfsync. With `everysec` the server answers without having written to its log while a flush is under way:
# killed at that moment, it loses up to two seconds. Snapshots (`save`) alone lose minutes.
_SURVIVES = {"always": "power", "no": "process"}


class Facts:
    server = ""  # its name and version
    durability = "none"
    line = b""  # the replication id: another after each restart, and each change of the master
    run = b""  # of the process
    had_other_line = False  # it was a replica, and became a master
    restarts_lose_nothing = False


def facts_of(wire: Wire, address: Address) -> Facts:
    """Ask a server that was just connected to, and refuse one that is unfit."""
    info = _info(wire.ask(pack(b"INFO"))[0])
    if info.get("role") not in ("master", None):
        raise Lost("it is a replica, which takes no writes", unsure=False)
    if info.get("loading") == "1":  # its log is off until it has read its data, as if it kept none
        raise Lost("it is reading its data", unsure=False)
    _check_version(info, address)
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        cure = "Set it with: CONFIG SET maxmemory-policy noeviction, and in its file"
        raise errors.EngineUnfit(path=address.shown, reason=f"its maxmemory-policy is {policy}", cure=cure)
    log = _log(wire, info)
    if address.copies and address.copies[0] and not log:
        cure = "Set it with: CONFIG SET appendonly yes, and in its file"
        raise errors.EngineUnfit(path=address.shown, reason="waitaof needs appendonly, which is off", cure=cure)
    facts = Facts()
    name = "valkey" if "valkey_version" in info else "redis"
    facts.server = f"{name.capitalize()} {info.get(f'{name}_version', '?')}"
    # Not by `waitaof`: some servers answer it before they have flushed, unless they flush always.
    facts.durability = _SURVIVES.get(log, "none")
    facts.line = info.get("master_replid", "").encode()
    facts.run = info.get("run_id", "").encode()
    facts.had_other_line = info.get("master_replid2", _NO_LINE) != _NO_LINE
    # With replicas, what looks like a restart may be one of them in the master's place.
    facts.restarts_lose_nothing = log == "always" and info.get("connected_slaves") == "0"
    return facts


def _check_version(info: "dict[str, str]", address: Address) -> None:
    found = info.get("redis_version", "0")
    needed = _WAITAOF_NEEDED if address.copies else _NEEDED
    if tuple(int(part) for part in found.split(".")[:2]) < needed:
        text = "Redis {}.{}".format(*needed) + (" for waitaof" if address.copies else "")
        raise errors.EngineTooOld(path=address.shown, found=f"Redis {found}", needed=text)


def _log(wire: Wire, info: "dict[str, str]") -> str:
    """How the server keeps its log of commands: "" for none, "?" where the user may not know."""
    if info.get("aof_enabled") != "1":
        return ""
    try:
        found = wire.ask(pack(b"CONFIG", b"GET", b"*appendfsync*"))[0]
    except errors.EngineRefused:
        return "?"
    policies = dict(zip(found[::2], found[1::2], strict=True))
    if policies.get(b"no-appendfsync-on-rewrite") == b"yes" and policies.get(b"appendfsync") == b"always":
        return "no"  # as it is while the log is written anew
    return str(policies.get(b"appendfsync", b"?"), "ascii")


def _info(text: "Reply") -> "dict[str, str]":
    if not isinstance(text, bytes):
        raise Lost("what answers is no Redis", unsure=False)
    pairs = [line.partition(":") for line in str(text, "utf-8", "replace").splitlines()]
    return {name: value for name, colon, value in pairs if colon}
