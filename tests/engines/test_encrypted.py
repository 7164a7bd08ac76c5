"""A store that is encrypted is a store like any other, in which nobody else can read."""

from functools import partial
from pathlib import Path

import pytest

from accord import errors
from accord.store.contract import Append, Number, Put, number_id
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.wrap.encrypted import Cipher, around, encrypted, key_of
from accord.testing import conformance
from tests.conformance.engines import ENGINES, Engine
from tests.conformance.test_engines import checks_for

pytestmark = pytest.mark.covers("S14.2")

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def opened(url: str, key: bytes = KEY) -> Store:
    return encrypted(open_store(url), key, url)


def sealed(url: str) -> Store:
    """Without the commit that names the key, so that revisions are what they are elsewhere."""
    return around(open_store(url), Cipher(KEY, url))


def checks(engine: Engine) -> list[conformance.Check]:
    """All but one: a value is longer than what it holds."""
    return [check for check in checks_for(engine) if check.__name__ != "check_a_commit_may_be_full"]


@pytest.mark.parametrize(
    ("engine", "check"),
    [
        pytest.param(
            engine,
            check,
            id=f"{engine.name}-{check.__name__.removeprefix('check_')}",
            marks=[] if engine.name == "memory" else [pytest.mark.more],
        )
        for engine in ENGINES[:2]
        for check in checks(engine)
    ],
)
def test_it_is_a_store(engine: Engine, check: conformance.Check, tmp_path: Path) -> None:
    check(partial(sealed, f"{engine.name}:{tmp_path / 'store'}"))


@pytest.fixture(params=[engine.name for engine in ENGINES])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:{tmp_path / 'store'}"


def test_values_around_numbers(url: str) -> None:
    store = opened(url)
    store.commit([], [Append("c", b"x"), Append("c", (b"a", Number(0), b"b", Number(0), b"c:\n,")), Put("d", "i", b"")])
    with store.snapshot() as snapshot:
        assert [item.value for item in snapshot.list("c")] == [b"x", b"a1b1c:\n,"]
        found = snapshot.get("d", "i")
    assert found is not None
    assert found.value == b""


def test_the_right_key_and_no_other(url: str) -> None:
    store = opened(url)
    store.commit([], [Put("c", "i", b"secret")])
    assert key_of(open_store(url))
    with pytest.raises(errors.WrongKey):
        opened(url, OTHER)
    with opened(url).snapshot() as snapshot:
        item = snapshot.get("c", "i")
    assert item is not None
    assert item.value == b"secret"


def test_a_store_that_has_something_is_not_made_encrypted(url: str) -> None:
    open_store(url).commit([], [Put("c", "i", b"plain")])
    with pytest.raises(errors.WrongKey, match="not encrypted"):
        opened(url)


def test_what_was_changed_or_moved_is_an_error(url: str) -> None:
    opened(url).commit([], [Append("c", b"secret"), Append("c", b"other")])
    plain = open_store(url)
    with plain.snapshot() as snapshot:
        sealed = [item.value for item in snapshot.list("c")]
    moved = Put("d", "i", sealed[0])
    changed = Put("c", number_id(1), sealed[0][:-1] + bytes([sealed[0][-1] ^ 1]))
    plain.commit([], [moved, changed, Put("e", "i", b"plain")])
    with opened(url).snapshot() as snapshot:
        for collection, id in (("c", number_id(1)), ("d", "i"), ("e", "i")):
            with pytest.raises(errors.WrongKey):
                snapshot.get(collection, id)
        assert snapshot.get("c", number_id(2)) is not None


def test_the_same_text_twice_looks_different(url: str) -> None:
    opened(url).commit([], [Append("c", b"secret"), Append("c", b"secret")])
    with open_store(url).snapshot() as snapshot:
        first, second = snapshot.list("c")
    assert first.value != second.value
    assert b"secret" not in first.value
