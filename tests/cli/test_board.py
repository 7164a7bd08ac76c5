"""The task board at a terminal: it fits, and nothing that others wrote is a command to it."""

from unicodedata import east_asian_width

import pytest

from accord.cli.columns import fit, side_by_side
from tests.cli.test_hostile import OWN, raw
from tests.cli.users import User

pytestmark = pytest.mark.covers("S8")

EVIL = "\x1b[31mred \x9b2J \u202eturned\u202c \x07 \r overwritten"
TITLES = ("plain", "日本語のタイトルです" * 15, "e\u0301" * 100, "--help", "x" * 200, "🐝 " * 60)
WIDTHS = (1, 10, 40, 80, 132, 300)


def size(text: str) -> int:
    return sum(0 if letter == "\u0301" else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


@pytest.fixture
def filled(user: User) -> User:
    for n, title in enumerate(TITLES):
        user.json("task", "add", f"--id=n{n}", f"--title={title}")
    user.json("task", "claim", "n0", "--agent=ann")
    user.json("task", "start", "n0", "--agent=ann")
    user.json("task", "claim", "n1", "--agent", "b" * 128)
    user.json("task", "progress", "n1", f"--note={EVIL}", "--agent", "b" * 128)
    user.json("task", "block", "n2", f"--reason={EVIL}")
    user.json("task", "depend", "n3", "n4", "n5")
    user.json("task", "done", "n5")
    return user


def test_it_fits_and_is_harmless(filled: User) -> None:
    for width in WIDTHS:
        code, screen = filled.at_terminal("task", "board", width=width)
        assert code == 0
        text = OWN.sub(b"", screen).replace(b"\r\n", b"\n").decode()
        assert raw(text) == set(), text
        assert [line for line in text.splitlines() if size(line) > width] == []
        if width >= 40:
            for word in ("READY", "WAITING", "IN WORK", "BLOCKED", "DONE", "plain", "ann, 29m left"):
                assert word in text, text


def test_the_other_views_are_harmless(filled: User) -> None:
    for words in (
        ["task", "show", "n1"],
        ["task", "show", "n2"],
        ["task", "list"],
        ["task", "claim", "n2", "--agent=x"],
    ):
        for asked in (words, [*words, "--json"]):
            screen = filled.at_terminal(*asked, width=80)[1]
            assert raw(OWN.sub(b"", screen).replace(b"\r\n", b"\n").decode()) == set()


def test_as_json_it_is_the_lists(filled: User) -> None:
    board = filled.json("task", "board")
    assert [task["id"] for task in board["started"] + board["claimed"]] == ["n0", "n1"]
    assert [task["reason"] for task in board["blocked"]] == [EVIL]
    assert [task["title"] for task in board["waiting"]] == ["--help"]


def test_a_long_column_says_that_there_is_more(user: User) -> None:
    for n in range(3):
        user.json("task", "add", f"task {n}")
    out = user.run("task", "board", "--limit", "2").out
    assert out == "READY\nt1 task 0\nt2 task 1\nand more\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "    "),
        ("ab", "ab  "),
        ("abcd", "abcd"),
        ("abcde", "abc…"),
        ("日本", "日本"),
        ("日本語", "日… "),
        ("a日本", "a日…"),
    ],
)
def test_a_text_is_made_as_wide_as_its_column(text: str, shown: str) -> None:
    assert fit(text, 4) == shown
    assert size(shown) == 4


def test_columns_stand_below_each_other_where_it_is_narrow() -> None:
    columns = [("ONE", ["a", "b"]), ("TWO", ["c"])]
    assert side_by_side(columns, 38) == f"{'ONE':18}  TWO\n{'a':18}  c\nb\n"
    assert side_by_side(columns, 37) == "ONE\n a\n b\n\nTWO\n c\n"
