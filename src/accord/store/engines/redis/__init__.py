"""Redis: `redis://USER@HOST:PORT/DATABASE?prefix=NAME`, or `redis:///PATH/OF/SOCKET`. `rediss:` is the same over TLS.

One Lua script makes a commit, one answers reads, and a stream is the log that watches follow.
"""

from accord import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.protocols import Store


def open_store(place: str, engine: str = "redis") -> "Store":
    try:
        import redis  # noqa: F401 - the driver, of the same name
    except ModuleNotFoundError:
        raise errors.DriverMissing(engine=engine, package="'accord[redis]'") from None
    from accord.store.engines.redis.address import Address
    from accord.store.engines.redis.store import Redis

    return Redis(Address(engine, place))
