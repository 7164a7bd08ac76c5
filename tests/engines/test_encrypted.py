"""A store that is encrypted is a store like any other, in which nobody else can read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from accord import errors
from accord.store.contract import Append, Conflict, Item, Moved, Number, Put, number_id
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import transact
from accord.store.wrap.encrypted import Cipher, _name_key, around, encrypted, key_of
from accord.store.wrap.unnamed import unnamed
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


def keyless(url: str) -> Store:
    return unnamed(open_store(url), url)


def checks(engine: Engine) -> list[conformance.Check]:
    """All but one: a value is longer than what it holds, and a first commit has one check more."""
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
@pytest.mark.parametrize("make", [sealed, pytest.param(keyless, marks=[pytest.mark.more])])
def test_it_is_a_store(engine: Engine, check: conformance.Check, make: Callable[[str], Store], tmp_path: Path) -> None:
    check(partial(make, f"{engine.name}:{tmp_path / 'store'}"))


@pytest.fixture(
    params=[
        pytest.param(engine, id=engine.name, marks=[pytest.mark.more] if engine.server else []) for engine in ENGINES
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    engine: Engine = request.param
    return engine.url(tmp_path)


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


def test_the_key_is_named_by_the_first_commit_or_never(url: str) -> None:
    """Also where somebody wrote after it was looked whether the store is empty."""
    open_store(url).commit([], [Put("c", "i", b"plain")])
    assert _name_key(open_store(url), "name") == ""
    assert key_of(open_store(url)) == ""


def test_who_opened_it_empty_and_without_a_key_notices_that_it_got_one(url: str) -> None:
    store = keyless(url)
    with store.snapshot() as before:
        opened(url)
        with pytest.raises((Conflict, Moved)):
            store.commit([], [Put("c", "i", b"plain")], before)
    for work in (lambda tx: tx.get("c", "i"), lambda tx: tx.put("c", "i", b"plain")):
        with pytest.raises(errors.KeyNeeded):
            transact(store, work)
        with pytest.raises(errors.KeyNeeded):
            transact(store, work, rivals=True)


def test_who_opened_it_empty_and_without_a_key_may_write_to_it(url: str) -> None:
    store = keyless(url)
    for rivals in (True, False, True):
        transact(store, lambda tx: tx.append("c", b"plain"), rivals=rivals)
    with pytest.raises(errors.WrongKey, match="not encrypted"):
        opened(url)


def test_what_was_changed_or_moved_is_an_error(url: str) -> None:
    opened(url).commit(
        [], [Append("c", b"secret"), Append("c", (b"other", Number(0))), Put("d", "i", b"x"), Put("d", "j", b"y")]
    )
    plain = open_store(url)
    with plain.snapshot() as snapshot:
        first, other = [item.value for item in snapshot.list("c")]
        named = [item.value for item in snapshot.list("d")]
    damage = {
        ("c", number_id(1)): first[:-1] + bytes([first[-1] ^ 1]),
        ("c", number_id(2)): b"1}" + other[1:],  # no number
        ("d", "i"): named[1],  # from another id
        ("d", "j"): named[1].replace(b":=", b":#", 1),
        ("d", "k"): first,  # from another collection
        ("c", "k"): first,  # what was appended lies under a number
        ("e", "i"): b"plain",
        ("e", "j"): b"",
        ("e", "k"): b"1,2:" + named[0][1:],
    }
    plain.commit([], [Put(*key, value) for key, value in damage.items()])
    with opened(url).snapshot() as snapshot:
        for collection, id in damage:
            item = snapshot.get(collection, id)
            assert item is not None
            with pytest.raises(errors.StoreDamaged, match=f"{collection}/{id}"):
                assert item.value


def test_one_damaged_value_takes_no_other_with_it(url: str) -> None:
    opened(url).commit([], [Put("c", id, id.encode()) for id in "abc"])
    open_store(url).commit([], [Put("c", "b", b"rubbish")])
    with opened(url).snapshot() as snapshot:
        found = snapshot.list("c")
        assert [item.id for item in found] == ["a", "b", "c"]
        assert (found[0].value, found[2].value) == (b"a", b"c")
        with pytest.raises(errors.StoreDamaged, match="c/b"):
            assert found[1].value


def test_what_was_loaded_is_bound_to_its_id(url: str) -> None:
    sealed(url).load([("c", 2, [Item(number_id(1), b"one", 1), Item(number_id(2), b"two", 1)])])
    plain = open_store(url)
    with plain.snapshot() as snapshot:
        first = snapshot.list("c")[0].value
    plain.commit([], [Put("c", number_id(2), first)])
    with sealed(url).snapshot() as snapshot:
        one, two = snapshot.list("c")
    assert one.value == b"one"
    with pytest.raises(errors.StoreDamaged):
        assert two.value


def test_the_same_text_twice_looks_different(url: str) -> None:
    opened(url).commit([], [Append("c", b"secret"), Append("c", b"secret")])
    with open_store(url).snapshot() as snapshot:
        first, second = snapshot.list("c")
    assert first.value != second.value
    assert b"secret" not in first.value
