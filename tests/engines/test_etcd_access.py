"""etcd: who may come in, by which way: certificates, passwords, roles."""

import datetime
import ipaddress
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from accord import errors
from accord.store.open import open_store
from accord.testing.conformance.tools import append, contents, put, take, values_of
from tests.servers.etcd import Cluster
from tests.servers.etcd_between import Between

pytestmark = pytest.mark.covers("S2")

DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates, each with its key in files of a folder: NAME.crt and NAME.key, and ca.crt."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        self._write(
            "ca", self._key, self._made(self._name, self._key).add_extension(x509.BasicConstraints(True, 0), True)
        )

    def issue(self, name: str, host: str = "") -> None:
        """For a server at that address, or else for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        # A server's has no name: its gateway would show it to the server itself as that of a user.
        made = self._made(x509.Name([] if host else [x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if host else [])]
        made = made.add_extension(x509.ExtendedKeyUsage(uses), False)
        if host:
            made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), False)
        self._write(name, key, made)

    def path(self, file: str) -> str:
        return str(self.folder / file)

    def _made(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
        return made.not_valid_before(now - DAY).not_valid_after(now + DAY)

    def _write(self, name: str, key: ec.EllipticCurvePrivateKey, made: x509.CertificateBuilder) -> None:
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (self.folder / f"{name}.key").write_bytes(text)
        (self.folder / f"{name}.crt").write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))


# Certificates.


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("tls") / "ours")
    authority.issue("server", "127.0.0.1")
    authority.issue("client")
    return authority


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Cluster]:
    """A member that takes clients with a certificate of ours only."""
    files = {"cert-file": "server.crt", "key-file": "server.key", "trusted-ca-file": "ca.crt"}
    options = [f"--{option}={authority.path(file)}" for option, file in files.items()]
    cluster = Cluster(1, options=[*options, "--client-cert-auth"])
    cluster.members[0].scheme = "https"
    files = {"cacert": "ca.crt", "cert": "client.crt", "key": "client.key"}
    cluster.ctl_options = [f"--{option}={authority.path(file)}" for option, file in files.items()]
    cluster.start()
    yield cluster
    cluster.remove()


def query(authority: Authority, name: str = "client") -> str:
    return f"?ca={authority.path('ca.crt')}&cert={authority.path(name)}.crt&key={authority.path(name)}.key"


def use(url: str) -> list[bytes]:
    with closing(open_store(url)) as store:
        append(store, "c", b"1")
        return values_of(store, "c")


def test_a_certificate_of_the_authority_gets_in(secured: Cluster, authority: Authority) -> None:
    url = secured.url("tls", query=query(authority))
    with closing(open_store(url)) as store, store.watch(["c"], 0) as watch:
        append(store, "c", b"1")
        assert len(take(watch, 1)) == 1
        assert contents(store).revision == 1


def test_without_a_certificate_nobody_gets_in(secured: Cluster, authority: Authority) -> None:
    with pytest.raises(errors.EngineRefused, match=r"(?i)certificate"):
        use(secured.url("tls", query=f"?ca={authority.path('ca.crt')}"))


def test_a_certificate_of_another_authority_is_refused(secured: Cluster, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    other.issue("client")
    mixed = query(authority).replace(authority.path("client"), other.path("client"))
    with pytest.raises(errors.EngineRefused):
        use(secured.url("tls", query=mixed))


def test_a_server_of_another_authority_is_not_trusted(secured: Cluster, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    mixed = query(authority).replace(authority.path("ca.crt"), other.path("ca.crt"))
    for wrong in (mixed, "?tls=yes"):
        with pytest.raises(errors.EngineRefused, match=r"(?i)certificate"):
            use(secured.url("tls", query=wrong))


def test_a_server_under_another_name_is_not_trusted(secured: Cluster, authority: Authority) -> None:
    url = secured.url("tls", query=query(authority)).replace("127.0.0.1", "localhost")
    with pytest.raises(errors.EngineRefused, match=r"(?i)certificate"):
        use(url)


@pytest.mark.more  # it takes as long as an election may
def test_a_server_with_tls_that_is_asked_without_is_told_of(secured: Cluster) -> None:
    with pytest.raises(errors.EngineUnreachable, match="tls=yes"):
        use(secured.url("tls"))


# Passwords and roles.


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """A member where `accord` may touch what lies below team/ and nothing else."""
    cluster = Cluster(1)
    cluster.start()
    for words in (
        "user add root:rootpass", "user grant-role root root", "user add accord:pass:word", "role add accord",
        "role grant-permission accord readwrite team/ --prefix=true", "user grant-role accord accord", "auth enable",
    ):  # fmt: skip
        cluster.ctl(*words.split())
    cluster.ctl_options = ["--user=root:rootpass"]
    yield cluster
    cluster.remove()


LOGIN = "accord:pass%3Aword@"


def test_a_role_for_the_prefix_is_enough(guarded: Cluster) -> None:
    with closing(open_store(guarded.url("team", login=LOGIN))) as store, store.watch(["c"], 0) as watch:
        for n in range(3):
            append(store, "c")
            put(store, "d", "a", b"%d" % n)
        assert len(take(watch, 3)) == 3
        assert contents(store).revision == 6
        store.commit([], [])
        assert getattr(store, "server")  # noqa: B009 - not every store has one
    with closing(open_store(guarded.url("team/loaded", login=LOGIN))) as store:
        store.load([("c", 3, [])])
        assert append(store, "c").numbers == (4,)


@pytest.mark.parametrize(
    ("prefix", "login", "reason"),
    [
        ("team", "accord:wrong@", "invalid user ID or password"),
        ("team", "nobody:x@", "invalid user ID or password"),
        ("team", "", "user name is empty"),
        ("other", LOGIN, "permission denied"),
    ],
)
def test_whoever_may_not_is_refused(guarded: Cluster, prefix: str, login: str, reason: str) -> None:
    with pytest.raises(errors.EngineRefused, match=reason) as refused:
        use(guarded.url(prefix, login=login))
    assert "wrong" not in str(refused.value)
    with (
        closing(open_store(guarded.url(prefix, login=login))) as store,
        pytest.raises(errors.EngineRefused, match=reason),
    ):
        store.watch(["c"], 0)


def test_a_token_that_is_over_is_renewed(guarded: Cluster) -> None:
    """etcd forgets tokens after a while; so it does when it starts anew, while a member before it was away."""
    member = guarded.members[0]
    with Between(member.address) as between:
        url = guarded.url("team/renewed", login=LOGIN).replace(member.address, between.address)
        with closing(open_store(url)) as store:
            append(store, "c")
            over = (401, "etcdserver: invalid auth token")
            for before in ([over], [(503, "etcdserver: no leader"), over]):
                between.before = before
                append(store, "c")
            between.before = [over] * 2
            with pytest.raises(errors.EngineRefused, match="auth token"):
                append(store, "c")
            assert len(values_of(store, "c")) == 3


def test_a_token_is_renewed_when_the_member_was_started_again(guarded: Cluster) -> None:
    member = guarded.members[0]
    with closing(open_store(guarded.url("team/again", login=LOGIN))) as store, store.watch(["c"], 0) as watch:
        append(store, "c")
        assert len(take(watch, 1)) == 1
        member.kill()
        guarded.start_one(member)
        guarded.wait_for(member)
        append(store, "c")
        assert len(take(watch, 1)) == 1


@pytest.mark.more  # who listens looks around every five seconds
def test_a_right_that_is_taken_away_ends_a_watch(guarded: Cluster) -> None:
    url = guarded.url("team/revoked", login="leaver:pass@")
    guarded.ctl("user", "add", "leaver:pass")
    guarded.ctl("user", "grant-role", "leaver", "accord")
    with closing(open_store(url)) as store, store.watch(["c"], 0) as watch:
        append(store, "c")
        assert len(take(watch, 1)) == 1
        guarded.ctl("user", "revoke-role", "leaver", "accord")
        with pytest.raises(errors.EngineRefused, match="permission denied"):
            append(store, "c")
        with pytest.raises(errors.EngineRefused, match="permission denied"):
            watch.next(20)
