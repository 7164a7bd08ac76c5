"""Redis: `redis://USER@HOST:PORT/DATABASE?prefix=NAME`, or `redis:///PATH/OF/SOCKET`. `rediss:` is the same over TLS.

One Lua script makes a commit, one answers reads, and a stream is the log that watches follow.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.protocols import Store


def open_store(place: str, engine: str = "redis") -> "Store":
    from accord.store.engines.redis.address import Address
    from accord.store.engines.redis.store import Redis

    return Redis(Address(engine, place))


def beside(place: str, name: str) -> str:
    """Among the keys of this one's prefix, where a user's rights end."""
    from accord.store.remote.place import with_option

    return with_option(place, "below", name)


def remove(place: str, engine: str = "redis") -> None:
    from accord.store.engines.redis import loading
    from accord.store.engines.redis.address import Address
    from accord.store.engines.redis.server import Server

    server = Server(Address(engine, place))
    try:
        loading.remove(server)
    finally:
        server.close()
