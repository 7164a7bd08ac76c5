"""Passwords in the URLs of stores: taken out, put in, and never shown."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord import errors
from accord.store.open import open_store
from accord.store.remote.login import join, place_of, shown, split
from accord.store.remote.place import Place

pytestmark = pytest.mark.covers("S10")


@pytest.mark.parametrize(
    ("url", "without", "password"),
    [
        ("redis://host", "redis://host", None),
        ("redis://host:6379/0?prefix=a", "redis://host:6379/0?prefix=a", None),
        ("redis://:secret@host:6379/0", "redis://host:6379/0", "secret"),
        ("redis://ann:secret@host", "redis://ann@host", "secret"),
        ("redis://ann@host", "redis://ann@host", None),
        ("redis://ann:@host", "redis://ann@host", None),
        ("redis://:p@ss@host/0", "redis://host/0", "p@ss"),
        ("redis://:a:b@host/0", "redis://host/0", "a:b"),
        ("redis:ann:secret@host", "redis:ann@host", "secret"),
        ("redis:///run/a@b.sock", "redis:///run/a@b.sock", None),
        ("redis://host:6379/0?prefix=a@b", "redis://host:6379/0?prefix=a@b", None),
        ("redis://[::1]:6379/a@b", "redis://[::1]:6379/a@b", None),
        ("etcd://ann:secret@one:2379,two:2379/x", "etcd://ann@one:2379,two:2379/x", "secret"),
        ("reddis://ann:secret@host", "reddis://ann@host", "secret"),
        ("sqlite:/a/b:c@d/store", "sqlite:/a/b:c@d/store", None),
        ("files:a:b@c?lock=mkdir", "files:a:b@c?lock=mkdir", None),
        ("memory:a:b@c", "memory:a:b@c", None),
        ("nonsense", "nonsense", None),
        ("", "", None),
    ],
)
def test_a_password_is_taken_out(url: str, without: str, password: str | None) -> None:
    assert split(url) == (without, password)
    assert shown(url) == without


@pytest.mark.parametrize(
    "url",
    [
        "redis://:sec/ret@host/0",
        "redis://ann:sec?ret@host/0",
        "redis://host?password=secret",
        "redis://host/0?prefix=x&PASSWORD=secret",
        "firebase://project?auth=secret",
    ],
)
def test_what_cannot_be_told_apart_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(errors.InvalidConfig) as refused:
        split(url)
    assert "sec" not in str(refused.value)
    assert "sec" not in shown(url)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from(["", "ann"]))
def test_any_password_goes_in_as_it_comes_out(password: str, user: str) -> None:
    url = f"redis://{user}{'@' * bool(user)}host:6379/3?prefix=a"
    whole = join(url, password)
    found = split(whole)
    assert (found[0], unquote(found[1] or "")) == (url, password)
    place = Place("redis", whole.partition(":")[2], {"prefix": ""})
    assert (place.user, place.password, place.hosts, place.path) == (user, password, ["host:6379"], "3")


def test_no_password_changes_nothing() -> None:
    for url in ("redis://host/0", "sqlite:/a/store.db", "memory:"):
        assert join(url, "") == url
    assert join("sqlite:/a/store.db", "secret") == "sqlite:/a/store.db"


def test_all_who_share_a_store_have_one_name_for_it() -> None:
    for url in ("redis://ann:x@host/0", "redis://ann@host/0", "redis://:x@host/0?ca=/a/b", "redis://host/0?key=k"):
        assert place_of(url) == "redis://host/0"
    assert place_of("redis://ann@host/0?prefix=p&ca=/a/b") == "redis://host/0?prefix=p"
    assert place_of("files:/a@b?lock=mkdir") == "files:/a@b?lock=mkdir"


@pytest.mark.parametrize("url", ["reddis://ann:secret@host/0", "redis-://:secret@host", "_://:secret@x"])
def test_an_unknown_engine_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(errors.UnknownEngine) as refused:
        open_store(url)
    assert "secret" not in str(refused.value)
    assert "secret" not in str(refused.value.details)
