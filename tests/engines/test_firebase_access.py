"""Firebase: who may come in, by which way, and what the place in a URL says."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from accord import errors
from accord.store import open as stores
from accord.store.contract import number_id
from accord.store.engines.firebase import clock, keys
from accord.store.engines.firebase.rules import rules
from accord.store.open import open_store
from accord.testing.conformance.tools import append, contents, put, take, value_of, values_of
from tests.servers.firebase import FirebaseServer

pytestmark = pytest.mark.covers("S2", "S15")

ADDRESS = "accord@demo.iam.gserviceaccount.com"
PARTS = st.text("abcz019_-", min_size=1, max_size=100)
COLLECTIONS = st.lists(PARTS, min_size=1, max_size=8).map("/".join)


@pytest.fixture(scope="module")
def shared() -> Iterator[FirebaseServer]:
    with FirebaseServer() as server:
        yield server


@pytest.fixture
def server(shared: FirebaseServer) -> Iterator[FirebaseServer]:
    shared.write("", None)
    yield shared
    shared.say("clear")
    shared.set(rules=None, redirect_to="", token_lives_s=3600.0, keys={})


@pytest.fixture(scope="module")
def private() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def key(server: FirebaseServer, private: rsa.RSAPrivateKey, tmp_path: Path) -> Path:
    """The file of a service account that the server knows."""
    public = private.public_key().public_numbers()
    server.set(keys={ADDRESS: [str(public.n), str(public.e)]})
    path = tmp_path / "key.json"
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    facts = {"client_email": ADDRESS, "private_key": text, "token_uri": f"{server.address}/token"}
    path.write_text(json.dumps(facts))
    path.chmod(0o600)
    return path


LOCKED = {"rules": {".read": False, ".write": False}}


def use(url: str) -> list[bytes]:
    with closing(open_store(url)) as store:
        append(store, "c", b"1")
        return values_of(store, "c")


# Service accounts.


def test_a_service_account_gets_in_with_one_token(server: FirebaseServer, key: Path) -> None:
    server.set(rules=LOCKED)
    with pytest.raises(errors.EngineRefused, match="Permission denied"):
        use(server.url())
    url = server.url(key=str(key))
    assert use(url) == [b"1"]
    server.set(token_lives_s=1.0)  # a new one is wanted after half of that
    with closing(open_store(url)) as store, store.watch(["c"], 1) as watch:
        for _ in range(40):
            append(store, "c")
        assert len(take(watch, 40)) == 40


def test_a_token_that_is_refused_is_renewed_once(server: FirebaseServer, key: Path) -> None:
    server.set(rules=LOCKED)
    url = server.url(key=str(key))
    with closing(open_store(url)) as store, store.watch(["c"], 0) as watch:
        append(store, "c")
        assert len(take(watch, 1)) == 1
        for _ in range(3):
            server.say("streams", kind="auth_revoked", revoke=True)
            append(store, "c")
            assert len(take(watch, 1)) == 1
        server.set(keys={})
        server.say("streams", kind="auth_revoked", revoke=True)
        with pytest.raises(errors.EngineRefused, match="400"):
            append(store, "c")


def test_a_wrong_key_is_refused(server: FirebaseServer, key: Path) -> None:
    other = rsa.generate_private_key(65537, 2048)
    facts = json.loads(key.read_text())
    facts["private_key"] = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    key.write_text(json.dumps(facts))
    with pytest.raises(errors.EngineRefused) as refused:
        use(server.url(key=str(key)))
    assert "PRIVATE" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"client_email":"a","private_key":"b"}', "[]"])
def test_a_file_that_is_no_key_is_told(server: FirebaseServer, tmp_path: Path, text: str) -> None:
    path = tmp_path / "key.json"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(errors.InvalidConfig, match="service account"):
        open_store(server.url(key=str(path)))


def test_a_key_that_others_may_read_is_refused(server: FirebaseServer, key: Path) -> None:
    key.chmod(0o640)
    with pytest.raises(errors.InvalidConfig, match="chmod 600"):
        open_store(server.url(key=str(key)))
    with pytest.raises(errors.InvalidConfig, match="No such file"):
        open_store(server.url(key=str(key) + ".none"))


def test_a_key_is_not_shown_to_a_token_uri_or_a_database_without_tls(server: FirebaseServer, key: Path) -> None:
    with pytest.raises(errors.InvalidConfig, match="https"):
        open_store(f"firebase://demo?url=http://db.example.org&key={key}")
    facts = json.loads(key.read_text())
    key.write_text(json.dumps({**facts, "token_uri": "http://tokens.example.org/token"}))
    with pytest.raises(errors.InvalidConfig, match="token_uri"):
        open_store(server.url(key=str(key)))


# The emulator.


def test_an_emulator_lets_its_owner_in(server: FirebaseServer) -> None:
    server.set(rules=LOCKED)
    url = f"firebase://demo/place?emulator=127.0.0.1:{server.port}"
    assert use(url) == [b"1"]
    assert server.say("read", namespace="demo-default-rtdb", path="place/head/s/r") == 1


# Rules.


def test_the_rules_admit_the_configured_account_alone(server: FirebaseServer, key: Path) -> None:
    url = server.url("team/store", key=str(key), uid="accord")
    found, path, uid = rules(url.partition(":")[2])
    assert (path, uid) == ("team/store", "accord")
    server.set(rules=found)
    with closing(open_store(url)) as store:
        for number in range(5):
            put(store, "c", "a", b"%d" % number)
            append(store, "long/" + "x" * 100)
        store.commit([], [])
        assert contents(store).revision == 10
        assert store.now().seconds > 0
    for other in (
        server.url("team/store"),
        server.url("team/store", key=str(key), uid="somebody"),
        server.url("team/other", key=str(key), uid="accord"),
        server.url("team", key=str(key), uid="accord"),
    ):
        with pytest.raises(errors.EngineRefused, match="Permission denied"):
            use(other)
    assert use(server.url("team/other", key=str(key))) == [b"1"]  # an administrator


def test_the_rules_know_what_a_head_looks_like(server: FirebaseServer) -> None:
    found, _, _ = rules("//demo/place", "me")
    server.set(rules=found)
    good = {"s": {"r": 0, "e": "e", "d": "d", "i": "i", "f": 0}}
    me = f"ns=demo&auth_variable_override={json.dumps({'uid': 'me'})}"

    def put_head(head: Any) -> int:
        import http.client
        from urllib.parse import quote

        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        with closing(connection):
            target = f"/place/head.json?{quote(me, safe='=&')}"
            connection.request("PUT", target, json.dumps(head), {"Authorization": "Bearer owner"})
            return connection.getresponse().status

    state = good["s"]
    wrong: list[Any] = [
        1, {"x": 1}, {"s": {**state, "r": "0"}}, {"s": {**state, "e": 5}}, {"s": {**state, "new": 1}},
        {**good, "new": 1},        {"s": {"r": 0}}, {**good, "w": {"k00": 5}},
    ]  # fmt: skip
    assert [put_head(head) for head in wrong] == [401] * len(wrong)
    assert put_head(good) == 200
    assert put_head(None) == 401
    for revision, status in ((0, 401), (2, 401), (1, 200), (1, 401), (2, 200)):
        head = {"s": {**state, "r": revision, "k": "c:a"}, "w": {"k00": "tvalue"}}
        assert put_head(head) == status, revision


def test_a_load_is_within_the_rules(server: FirebaseServer, key: Path) -> None:
    url = server.url("place", key=str(key), uid="accord")
    server.set(rules=rules(url.partition(":")[2])[0])
    with closing(open_store(url)) as store:
        store.load([("c", 3, [])])
        assert append(store, "c").numbers == (4,)


def test_a_place_beside_a_store_is_within_its_rules(server: FirebaseServer, key: Path) -> None:
    url = server.url("team/a%20store", key=str(key), uid="accord")
    server.set(rules=rules(url.partition(":")[2])[0])
    with closing(open_store(url)) as store:
        append(store, "c")
    before = server.read("team")
    other = stores.beside(url, "bench-1")
    assert use(other) == [b"1"]
    stores.remove(other)
    assert server.read("team") == before


# Places.


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("firebase:demo", "ENGINE://HOST"),
        ("firebase://", "PROJECT/PATH"),
        ("firebase://a,b/x", "PROJECT/PATH"),
        ("firebase://demo/a.b", "no part of a path"),
        ("firebase://demo/a//b", "no part of a path"),
        ("firebase://demo/$x", "no part of a path"),
        ("firebase://demo?url=ftp://x", "https://HOST"),
        ("firebase://demo?url=https://x/y", "https://HOST"),
        ("firebase://demo?nonsense=1", "none of its options"),
        ("firebase://demo?emulator=x:y", "no port"),
        ("firebase://demo?emulator=x:1&key=/k", "no key"),
    ],
)
def test_places_that_cannot_be_are_told(url: str, reason: str) -> None:
    with pytest.raises(errors.InvalidConfig, match=reason):
        open_store(url)


def test_a_path_may_have_any_letters(server: FirebaseServer) -> None:
    for path in ("a b", "日本/ü", "x%y"):
        assert use(server.url(path)) == [b"1"]
        assert server.read(f"{path}/head/s/r") == 1


# Redirections.


def test_it_goes_where_it_is_sent_and_comes_back(server: FirebaseServer) -> None:
    with FirebaseServer() as other:
        url = server.url()
        with closing(open_store(url)) as store:
            server.set(redirect_to=other.address)
            append(store, "c", b"there")
            with store.watch([""], 0) as watch:
                assert len(take(watch, 1)) == 1
            path = url.partition("//demo/")[2].partition("?")[0]
            assert other.read(f"{path}/head/s/r") == 1
            other.kill()
            server.set(redirect_to="")
            assert value_of(store, "c", number_id(1)) is None
        server.set(redirect_to="http://elsewhere.example.org")
        with closing(open_store(url)) as store, pytest.raises(errors.EngineRefused, match="elsewhere"):
            append(store, "c")


# What is written.


@given(st.lists(COLLECTIONS, min_size=1, max_size=6, unique=True))
def test_names_come_back_and_keep_their_order(names: list[str]) -> None:
    tree: dict[str, Any] = {}
    for number, name in enumerate(names):
        path = keys.collection_path(name).split("/")
        assert all(len(part) <= 768 and not set(part) & set(".$#[]") for part in path)
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node["r"] = number
    found = [(name, node["r"]) for name, node in keys.collections_in(tree)]
    assert found == sorted((name, number) for number, name in enumerate(names))


@given(st.binary() | st.text().map(lambda text: text.encode(errors="replace")))
def test_values_come_back(value: bytes) -> None:
    text = keys.encode(value)
    assert keys.decode(text) == value
    assert not {"\0", "\x7f", "\ufffe", "\uffff"} & set(text)


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1709251199),
        ("Fri, 01 Mar 2024 00:00:00 GMT", 1709251200),
        ("Tue, 31 Dec 2030 12:00:00 GMT", 1924948800),
    ],
)
def test_dates_are_understood(date: str, seconds: int) -> None:
    assert clock._seconds_of(date) == seconds
