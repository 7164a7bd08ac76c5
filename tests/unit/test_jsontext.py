"""JSON as accord reads it: what json reads, minus what others would read otherwise or could not store."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord import errors, jsontext
from accord.store import contract
from tests.often import often

pytestmark = pytest.mark.covers("S1")

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)
PIECES = ["{", "}", "[", "]", ",", ":", '"', "\\", "\\u", "d800", "1", "-", ".", "e9", "999", "NaN", "Infinity", "true",
          "null", " ", "\n", "\x0b", "\0", "\ufeff", "é", "\ud800", '"a":', "/*", "0x1"]  # fmt: skip


@st.composite
def nearly_json(draw: st.DrawFn) -> str:
    """A JSON text with a few pieces put in, or taken out."""
    text = json.dumps(draw(VALUES), ensure_ascii=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from([*PIECES, ""])) + text[at + draw(st.integers(0, 2)) :]
    return text


def same(one: object, other: object) -> bool:
    """Equal, and of the same types: 1, 1.0 and True are three things."""
    return repr(one) == repr(other)


@given(VALUES, st.booleans())
@settings(max_examples=often(400), derandomize=True)
def test_both_read_what_either_wrote(value: object, ascii: bool) -> None:
    text = jsontext.dumps(value)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert same(jsontext.loads(text), value)
    assert same(jsontext.loads(text.encode()), value)
    assert same(jsontext.loads(json.dumps(value, ensure_ascii=ascii, indent=1)), value)


@given(nearly_json())
@example('{"a":1,"a":1}')
@example('"\\ud800\\u0041"')
@settings(max_examples=often(1000), derandomize=True)
def test_what_is_read_is_what_json_reads(text: str) -> None:
    try:
        value = jsontext.loads(text)
    except errors.InvalidJson:
        assert not_json(text) or is_refused_on_purpose(text)
    else:
        assert same(value, json.loads(text))
        assert not is_refused_on_purpose(text)
        jsontext.dumps(value).encode()


@given(st.binary(max_size=40))
@settings(max_examples=often(500), derandomize=True)
def test_bytes_are_refused_or_read_as_text(text: bytes) -> None:
    try:
        value = jsontext.loads(text)
    except errors.InvalidJson:
        return
    assert same(value, json.loads(text.decode()))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "NaN", "Infinity", "-Infinity", "[1, NaN]", "1e999", "-1e999", '{"a": 1e400}', "+1", "01", ".5", "0x1",
        "'a'", "True", "None", "1 2", "[1,]", "[,1]", '{"a":1,}', "{1: 2}", "[1", '{"a"', '"a', "]", "-", "\\", "nul",
        '{"a":1,"a":2}', '[{"a":{"b":1,"c":2,"b":1}}]', '{"a":1,"\\u0061":2}',
        '"\\ud800"', '"\\udc00\\ud800"', '{"\\ud800": 1}', '["x", {"a": "\\udfff"}]', '"\ud800"', '["\udc80"]',
        '"a\nb"', '"\t"', '"\0"', "\ufeff1", "\x0b1", "1\u00a0", "// 1", "1" * 5000,
        "[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "[" * 100_000, '[{"a":' * 50_000,
        "[" + "1," * 700_000 + "1]",
        b"\xff", b'"\xc3"', b'"\xed\xa0\x80"', b'"\xc0\x80"', "é".encode("utf-16"), b"\xef\xbb\xbf1",
    ],
    ids=lambda text: f"{ascii(text)[:30]}{len(text)}",
)  # fmt: skip
def test_refused(text: str | bytes) -> None:
    with pytest.raises(errors.InvalidJson):
        jsontext.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        " \t\r\n1 \t\r\n", "-0", "-0.0", "1E+2", "1e-400", "123456789012345678901234567890", '"\\ud83d\\ude42"',
        '"\\/"', '"\x7f\u2028"', "[" * 64 + "]" * 64, "[" + '"[[[",' * 100 + "1]", '["\\"[", "' + "[" * 100 + '"]',
        "[" + "[]," * 100 + "{}]", '{"":{"":""}}',
    ],
    ids=lambda text: f"{ascii(text)[:30]}{len(text)}",
)  # fmt: skip
def test_read(text: str) -> None:
    assert same(jsontext.loads(text), json.loads(text))


def test_size_is_looked_at_before_anything_else() -> None:
    fits = '"' + "x" * (jsontext.MAX_BYTES - 2) + '"'
    assert jsontext.loads(fits) == fits[1:-1]
    for too_long in (fits + " ", fits.encode() + b"\xff", '"' + "é" * (jsontext.MAX_BYTES // 2) + '"'):
        with pytest.raises(errors.InvalidJson, match="more than"):
            jsontext.loads(too_long)


def circular() -> object:
    ring: list[object] = []
    ring.append(ring)
    return ring


def deep() -> object:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [[float("nan")], [float("inf")], {"a": -float("inf")}, [b"bytes"], [{1, 2}], [object()], {(1, 2): 3}, circular(),
     ["\ud800"], {"\udfff": 1}, [10**5000]],
)  # fmt: skip
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(errors.InvalidJson):
        jsontext.dumps(value)


def test_what_is_nested_too_deep_to_write_is_refused() -> None:
    with pytest.raises(errors.InvalidJson):
        jsontext.dumps(deep())


def test_reading_and_writing_load_no_json_package() -> None:
    run("import sys; jsontext.loads(jsontext.dumps({'a': [1, 2.5, None]})); assert 'json' not in sys.modules")


@pytest.mark.parametrize("text", ["[1", '{"a" 1}', '"a', "[1,]", '"\\x"'])
def test_the_first_text_of_a_process_may_be_wrong(text: str) -> None:
    """The scanner then looks for an exception that is not loaded yet."""
    run(f"\ntry: jsontext.loads({text!r})\nexcept errors.InvalidJson: pass\nelse: raise AssertionError")


def run(program: str) -> None:
    command = [sys.executable, "-I", "-c", f"from accord import errors, jsontext; {program}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def not_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def is_refused_on_purpose(text: str) -> bool:
    """Whether it holds what json reads and accord refuses."""
    found: list[str] = []

    def note_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            found.append("a key twice")
        return dict(pairs)

    def note_infinite(digits: str) -> float:
        if float(digits) in (float("inf"), -float("inf")):
            found.append("infinite")
        return float(digits)

    value = json.loads(
        text, object_pairs_hook=note_doubles, parse_float=note_infinite, parse_constant=lambda word: found.append(word)
    )
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        found.append("half a character")
    return bool(found)


def test_what_a_commit_may_hold_can_be_read() -> None:
    assert jsontext.MAX_BYTES == contract.MAX_BYTES
