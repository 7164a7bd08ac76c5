"""JSON and TOML of any kind: what is put in and taken out leaves the rest as it was."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accord.install import jsonc, tomltext
from accord.install.edits import Hook, Json, Server, Toml, is_own_hook, is_own_server

pytestmark = pytest.mark.covers("I3")

COMMAND = "/x/accord hook stop --brain claude"
EDIT = Json(
    "/settings.json",
    [
        Hook("Stop", "claude", {"type": "command", "command": COMMAND, "timeout": 60}),
        Server(("mcpServers",), {"command": "/x/accord", "args": ["mcp"]}),
    ],
    jsonc.COMMAS,
)
TABLE = Toml("/config.toml", ("mcp_servers", "accord"), {"command": "/x/accord", "args": ["mcp"]})

keys = st.one_of(st.sampled_from(["hooks", "Stop", "mcpServers", "accord", "", "a b"]), st.text(max_size=5))
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=12,
)
groups = st.lists(
    st.one_of(
        values,
        st.fixed_dictionaries(
            {"hooks": st.lists(st.one_of(values, st.fixed_dictionaries({"command": st.text()})), max_size=3)}
        ),
    ),
    max_size=3,
)


def either(found: Any) -> Any:
    """That, or nothing."""
    return st.one_of(st.just({}), found)


def member(name: str, found: Any) -> Any:
    return st.builds(lambda value: {name: value}, found)


def joined(*found: Any) -> Any:
    return st.builds(lambda *parts: {key: value for part in parts for key, value in part.items()}, *found)


settings = joined(
    st.dictionaries(keys, values, max_size=4),
    either(member("hooks", joined(st.dictionaries(keys, groups, max_size=2), either(member("Stop", groups))))),
    either(member("mcpServers", st.dictionaries(keys.filter(lambda key: key != "accord"), values, max_size=2))),
)
surrounded = st.sampled_from(["{}", "\ufeff{}", "\n{}\n", "// a\n{} // b", "/* {{ */ {}\r\n", "{}\n\n\n"])


@st.composite
def texts(draw: Any) -> str:
    """Settings as somebody may have written them."""
    found = draw(settings)
    indent = draw(st.sampled_from([None, 0, 1, 2, 8, "\t"]))
    colon = draw(st.sampled_from([":", ": ", " : "]))
    comma = draw(st.sampled_from([",", ", ", " ,"]))
    text = json.dumps(found, indent=indent, separators=(comma, colon), ensure_ascii=draw(st.booleans()))
    if indent is not None:
        text = _commented(draw, text)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return str(draw(surrounded)).replace("{{", "(").replace("{}", text)


def _commented(draw: Any, text: str) -> str:
    """With remarks at the ends of some lines, and commas behind some last elements."""
    lines = text.split("\n")
    for at in draw(st.lists(st.integers(0, len(lines) - 1), max_size=4, unique=True)):
        following = lines[at + 1].strip()[:1] if at + 1 < len(lines) else ""
        if following in ("}", "]") and not lines[at].endswith(("{", "[")):
            lines[at] += ","
        lines[at] += draw(st.sampled_from([" // remark, with {", " /* one */", "\n// alone", "  "]))
    return "\n".join(lines)


def value(text: str) -> Any:
    return jsonc.value(text.removeprefix("\ufeff"), jsonc.COMMAS)


@given(texts())
def test_json_with_accord_in_it_says_what_it_said_and_that(text: str) -> None:
    before = value(text)
    _assume_can_be_edited(before)
    after = EDIT.put(text)
    found = value(after)
    assert EDIT.put(after) == after
    assert found["mcpServers"].pop("accord") == {"command": "/x/accord", "args": ["mcp"]}
    assert found["hooks"]["Stop"].pop() == {"hooks": [{"type": "command", "command": COMMAND, "timeout": 60}]}
    for key, inner in (("hooks", found["hooks"]), ("mcpServers", found)):
        name = "Stop" if key == "hooks" else key
        if not inner[name] and name not in (before.get("hooks", {}) if key == "hooks" else before):
            del inner[name]
    if not found["hooks"] and "hooks" not in before:
        del found["hooks"]
    assert found == before


@given(texts())
def test_json_without_it_again_says_what_it_said(text: str) -> None:
    before = value(text)
    _assume_can_be_edited(before)
    after = EDIT.drop(EDIT.put(text), text)
    assert after is not None
    assert value(after) == before
    for remark in ("// remark, with {", "/* one */", "// alone", "// a\n", "// b"):
        assert after.count(remark) == text.count(remark)


@given(texts(), texts())
def test_what_is_not_there_is_not_taken_out(text: str, other: str) -> None:
    _assume_can_be_edited(value(text))
    assert EDIT.drop(text, other) == text


@given(st.text())
def test_what_is_no_json_is_refused_and_nothing_else_happens(text: str) -> None:
    try:
        found = jsonc.value(text, jsonc.STRICT)
    except jsonc.NotJson:
        with pytest.raises(ValueError, match=r"."):
            _strictly(text)
    else:
        assert found == _strictly(text)


@given(values, st.sampled_from([None, 2, "\t"]))
def test_every_json_is_read_as_others_read_it(found: Any, indent: Any) -> None:
    assert jsonc.value(json.dumps(found, indent=indent), jsonc.STRICT) == found


LINES = st.lists(
    st.sampled_from(
        [
            "", "# remark", "a = 1", 'b = """\n[mcp_servers.accord]\n"""', "c = [\n [1],\n[2]]", "[t]", "[t.u]",
            "[[l]]", "x = 1", "[mcp_servers.mine] # mine", 'command = "x"', "[mcp_servers.mine.env]", "A = 'b'",
            "'d e'.f = 2", "[ 'mcp_servers' . other ]", '"[" = 1',
        ]
    ),
    max_size=8,
)  # fmt: skip


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n"]), LINES)
def test_toml_says_what_it_said_and_that(lines: list[str], newline: str, end: str, more: list[str]) -> None:
    text = (newline.join(lines) + end).replace("\r\n", "\n").replace("\n", newline)
    before = _toml(text)
    assume(before is not None)
    after = TABLE.put(text)
    found = tomllib.loads(after)
    assert found["mcp_servers"].pop("accord") == {"command": "/x/accord", "args": ["mcp"]}
    assert {key: one for key, one in found.items() if one or key in before} == before
    assert after.startswith(text)
    assert TABLE.put(after) == after
    assert (TABLE.drop(after, text) or "").rstrip("\r\n") == text.rstrip("\r\n")
    later = after + "[later]\n" + "\n".join(more) + "\n"
    assume(_toml(later) is not None)
    left = TABLE.drop(later, text)
    assert left is not None
    assert left.endswith("[later]\n" + "\n".join(more) + "\n")


@pytest.mark.parametrize("command", ['C:\\x\\accord "y"', "/\u00e4/\t/\x7f/accord", "'"])
def test_a_command_of_any_letters_in_toml(command: str) -> None:
    text = tomltext.put("", ("a", "b"), {"command": "x"})
    text = tomltext.put(text, ("a", "b"), {"command": command})
    assert tomllib.loads(text) == {"a": {"b": {"command": command}}}


@pytest.mark.parametrize(
    ("command", "is_own"),
    [
        ("/a/accord hook stop --brain claude", True),
        ("'/a b/accord' hook stop --brain claude", True),
        ("/a/accord hook stop --brain claude --home /x", True),
        ("/a/accord hook stop --brain codex", False),
        ("/a/discord hook stop --brain claude", False),
        ("/a/accord check --brain claude", False),
        ("echo accord hook stop --brain claude", False),
        ("'", False),
        (None, False),
        (["/a/accord"], False),
    ],
)
def test_which_hooks_are_accords_own(command: Any, is_own: bool) -> None:
    assert is_own_hook(command, "claude") is is_own


@pytest.mark.parametrize(
    ("server", "is_own"),
    [
        ({"command": "/a/accord", "args": ["mcp"]}, True),
        ({"command": ["/a/accord", "mcp"]}, True),
        ({"command": "/a/accord", "args": ["serve"]}, False),
        ({"command": "/a/other", "args": ["mcp"]}, False),
        ({"url": "https://example.org"}, False),
        ({"command": 1, "args": "mcp"}, False),
        ("accord mcp", False),
        (None, False),
    ],
)
def test_which_servers_are_accords_own(server: Any, is_own: bool) -> None:
    assert is_own_server(server) is is_own


def _assume_can_be_edited(found: Any) -> None:
    """With objects and lists where they are to be; the last of a key that is there twice is the one that counts."""
    hooks, servers = found.get("hooks", {}), found.get("mcpServers", {})
    assume(isinstance(hooks, dict) and isinstance(hooks.get("Stop", []), list))
    assume(isinstance(servers, dict) and "accord" not in servers)


def _strictly(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
