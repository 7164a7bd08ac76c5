"""Redis over TLS: `rediss://USER@HOST:PORT/DATABASE?ca=FILE`."""

from accord.store.engines import redis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.protocols import Store


def open_store(place: str) -> "Store":
    return redis.open_store(place, engine="rediss")


beside = redis.beside


def remove(place: str) -> None:
    redis.remove(place, engine="rediss")
