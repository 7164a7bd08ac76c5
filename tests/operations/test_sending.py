"""Sending: to whom, what, how much, under which id, and what the sender learns of it."""

import os
import time
from pathlib import Path

import pytest

from accord.model import MAX_MESSAGE_BYTES
from tests.operations.people import refusal, register, send, states, texts, unread
from tests.operations.ways import CommandLine, Python, Refused, Way


@pytest.mark.covers("T3.7")
def test_to_a_name_that_was_never_registered(way: Way) -> None:
    register(way, "ann", "benjamin")
    refused = refusal("RECIPIENT_NEVER_REGISTERED", send, way, "ann", ["benjamim", "zoe"])
    assert "benjamim" in refused.text
    assert "zoe" in refused.text
    assert "did you mean benjamin?" in refused.text
    assert way.do("mail.sent", sender="ann")["messages"] == []


@pytest.mark.covers("T3.7")
def test_to_one_who_is_offline_or_gone(way: Way) -> None:
    register(way, "ann", "ben")
    answer = way.do("mail.send", sender="ann", to=["ben"], message="hello")
    assert answer["to"] == [{"identity": "ben", "state": "queued"}]
    assert answer["durability"] == ("none" if way.engine.startswith("memory") else "power")
    way.do("agent.unregister", identity="ben")
    assert "ben" in refusal("RECIPIENT_GONE", send, way, "ann", "ben").text


@pytest.mark.covers("T5.1")
def test_one_error_names_all_who_cannot_get_it(way: Way) -> None:
    register(way, "ann", "ben", "cal")
    way.do("agent.unregister", identity="cal")
    refused = refusal("RECIPIENT_NEVER_REGISTERED", send, way, "ann", ["ben", "zoe", "A B", "cal", "yan", "-"])
    lists = {name: refused.details[name] for name in ("never", "gone", "invalid")}
    assert lists == {"never": ["zoe", "yan"], "gone": ["cal"], "invalid": ["A B", "-"]}
    assert all(name in refused.text for name in ("zoe", "yan", "cal", "A B", "'-'"))
    only_gone = refusal("RECIPIENT_GONE", send, way, "ann", ["ben", "cal"]).details
    assert (only_gone["names"], only_gone["gone"], only_gone["invalid"]) == ("cal", ["cal"], [])
    for to in (["ben", "A B", "-"], ["A B", "-"]):
        assert refusal("INVALID_IDENTITY", send, way, "ann", to).details["invalid"] == ["A B", "-"]
    assert unread(way, "ben") == []


@pytest.mark.covers("T3.8")
def test_to_oneself(way: Way) -> None:
    register(way, "ann")
    id = send(way, "ann", "ann", "remember")
    assert (unread(way, "ann"), texts(way, "ann")) == ([id], ["remember"])


@pytest.mark.covers("T3.9")
def test_a_blank_message(way: Way) -> None:
    register(way, "ann", "ben")
    for message in ("", " \n\t ", "\u00a0\u2003"):
        refusal("EMPTY_MESSAGE_NOT_ALLOWED", send, way, "ann", "ben", message)
    assert unread(way, "ben") == []


def test_what_was_written_arrives_as_it_was(way: Way) -> None:
    register(way, "ann", "ben")
    written = ["  two\n\nlines \t", "naïve 日本語 🐝", '"\\" \x1b[31m \x7f \u2028 \u202e', "--to=all", "--"]
    for message in written:
        send(way, "ann", "ben", message)
    assert texts(way, "ben") == written


@pytest.mark.covers("T3.10")
def test_the_largest_message_and_one_byte_more(way: Way) -> None:
    register(way, "ann", "ben")
    largest = "é" * (MAX_MESSAGE_BYTES // 2)
    send(way, "ann", "ben", largest)
    refused = refusal("MESSAGE_TOO_LARGE", send, way, "ann", "ben", largest + "x")
    assert refused.details["most"] == MAX_MESSAGE_BYTES
    assert texts(way, "ben") == [largest]


@pytest.mark.covers("T3.10")
@pytest.mark.parametrize("text", ['{"key": "value",\n', "\t", "\x1b[0m"], ids=["json", "tabs", "escapes"])
def test_the_largest_message_whatever_is_in_it(memory: Python, text: str) -> None:
    """The limit is on what the sender wrote, not on how it is stored."""
    register(memory, "ann", "ben")
    largest = ("x" + text * MAX_MESSAGE_BYTES)[:MAX_MESSAGE_BYTES]
    send(memory, "ann", "ben", largest)
    assert texts(memory, "ben") == [largest]


@pytest.mark.covers("T3.10")
def test_a_limit_that_was_set(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_MESSAGE_LIMIT", "10")
    register(way, "ann")
    send(way, "ann", "ann", "x" * 10)
    refusal("MESSAGE_TOO_LARGE", send, way, "ann", "ann", "x" * 11)


@pytest.mark.covers("T3.10")
def test_a_file_of_60_gigabytes_is_refused_at_once(shell: CommandLine, tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        os.truncate(file.fileno(), 60_000_000_000)
    register(shell, "ann")
    started = time.monotonic()
    refused = refusal("MESSAGE_TOO_LARGE", shell.do, "mail.send", sender="ann", to="ann", message_file="huge")
    assert time.monotonic() - started < 2
    assert refused.details["found"] == 60_000_000_000


@pytest.mark.covers("T3.10")
def test_endless_input_is_refused(shell: CommandLine) -> None:
    register(shell, "ann")
    words = ["send", "--from=ann", "--to=ann"]
    with open("/dev/zero", "rb") as endless:
        done = shell.run([*words, "-"], stdin=endless)
    assert b"MESSAGE_TOO_LARGE" in done.stdout
    assert b"MESSAGE_TOO_LARGE" in shell.run([*words, "--message-file=/dev/zero"]).stdout


def test_a_message_from_a_pipe_that_is_slow(shell: CommandLine) -> None:
    """As `--message-file <(command)` gives one."""
    register(shell, "ann")
    words = ["send", "--from=ann", "--to=ann", "--message-file=/dev/fd/0"]
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        sender = shell.start(words, stdin=reading)
        time.sleep(0.2)  # the time that the command takes until it has something to say
        pipe.write(b"at last")
    os.close(reading)
    assert b'"status":"ok"' in sender.communicate(timeout=20)[0]
    assert texts(shell, "ann") == ["at last"]


@pytest.mark.covers("T3.11")
def test_what_is_not_utf8(shell: CommandLine, tmp_path: Path) -> None:
    register(shell, "ann")
    send_it = ["send", "--from=ann", "--to=ann"]
    for data in (b"\xff\xfe", b"fine until \xc3", b"\xed\xa0\x80"):
        (tmp_path / "file").write_bytes(data)
        for done in (
            shell.run([*send_it, "-"], data),
            shell.run([*send_it, "--message-file=file"]),
            shell.run([*send_it, f"--message={data.decode(errors='surrogateescape')}"]),
        ):
            assert b'"error_code":"INVALID_ENCODING"' in done.stdout
            assert done.returncode == 65
    assert unread(shell, "ann") == []


@pytest.mark.covers("T3.11")
def test_a_lone_surrogate(here: Python) -> None:
    register(here, "ann")
    refusal("INVALID_ENCODING", send, here, "ann", "ann", "half a \ud83d pair")


@pytest.mark.covers("T3.5")
def test_a_full_inbox(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_INBOX_LIMIT", "2")
    register(way, "ann", "ben", "cal")
    ids = [send(way, "ann", "ben") for _ in range(2)]
    refused = refusal("INBOX_FULL", send, way, "ann", ["cal", "ben"])
    assert "ben" in refused.text
    assert unread(way, "cal") == []  # all or nothing
    assert send(way, "ann", "ben", id=ids[0]) == ids[0]  # is there already
    way.do("mail.ack", identity="ben", ids=ids[:1])
    send(way, "ann", "ben")
    assert len(unread(way, "ben")) == 2


@pytest.mark.covers("T3.16", "T3.7")
def test_sent_shows_queued_seen_and_answered(way: Way) -> None:
    register(way, "ann", "ben", "cal")
    first = send(way, "ann", ["ben", "cal"])
    second = send(way, "ann", "ben")
    queued = {"ben": "queued", "cal": "queued"}
    assert states(way, "ann") == [{"ben": "queued"}, queued]
    assert unread(way, "ben") == [first, second]  # peeking is not seeing
    assert states(way, "ann") == [{"ben": "queued"}, queued]
    way.do("mail.ack", identity="ben", ids=[first])
    assert states(way, "ann") == [{"ben": "queued"}, {"ben": "seen", "cal": "queued"}]
    send(way, "cal", "ann", reply_to=first)
    assert states(way, "ann") == [{"ben": "queued"}, {"ben": "seen", "cal": "answered"}]
    assert [message["message_id"] for message in way.do("mail.sent", sender="ann", limit=1)["messages"]] == [second]


@pytest.mark.covers("T3.16")
def test_check_on_the_command_line_makes_seen(shell: CommandLine) -> None:
    register(shell, "ann", "ben")
    send(shell, "ann", "ben")
    shell.do("mail.check", identity="ben")
    assert states(shell, "ann") == [{"ben": "seen"}]


@pytest.mark.covers("T3.16")
def test_only_those_who_got_a_message_can_have_answered_it(way: Way) -> None:
    register(way, "ann", "ben", "cal")
    first = send(way, "ann", "ben")
    send(way, "cal", "ann", reply_to=first)
    assert states(way, "ann") == [{"ben": "queued"}]


@pytest.mark.covers("T3.16")
def test_much_that_was_sent_to_many(here: Python) -> None:
    """More reads than the checks of one commit."""
    names = [f"n{n}" for n in range(40)]
    register(here, "ann", *names)
    for _ in range(5):
        send(here, "ann", names)
    assert states(here, "ann") == [dict.fromkeys(names, "queued")] * 5


@pytest.mark.covers("T4.4")
def test_ids_are_uuids_in_the_order_of_time(way: Way) -> None:
    from uuid import UUID

    register(way, "ann")
    ids = [send(way, "ann", "ann")]
    time.sleep(0.002)  # they count milliseconds
    ids.append(send(way, "ann", "ann"))
    assert [UUID(id).version for id in ids] == [7, 7]
    assert ids == sorted(ids) == unread(way, "ann")


@pytest.mark.covers("T4.4")
def test_the_same_id_twice_is_one_message(way: Way) -> None:
    register(way, "ann", "ben")
    for _ in range(2):
        answer = way.do("mail.send", sender="ann", to=["ben"], message="once", id="Mine_1")
        assert answer["message_id"] == "mine_1"
        assert [to["identity"] for to in answer["to"]] == ["ben"]
    assert unread(way, "ben") == ["mine_1"]
    assert len(way.do("mail.sent", sender="ann")["messages"]) == 1
    way.do("mail.ack", identity="ben", ids=["mine_1"])
    send(way, "ann", "ben", "once", id="mine_1")
    assert unread(way, "ben") == []


@pytest.mark.covers("T4.4")
@pytest.mark.parametrize(
    "other",
    [
        {"message": "other"},
        {"sender": "ben"},
        {"to": ["cal"]},
        {"to": ["ben", "cal"]},
        {"type": "query"},
        {"conversation": "other"},
        {"reply_to": "zero"},
    ],
    ids=lambda other: "-".join(["also-" * (len(other.get("to", "")) > 1) + key for key in other]),
)
def test_an_id_used_for_something_else(memory: Python, other: dict[str, object]) -> None:
    register(memory, "ann", "ben", "cal")
    send(memory, "cal", "cal", id="zero")
    first = {"sender": "ann", "to": ["ben"], "message": "once", "id": "mine"}
    memory.do("mail.send", **first)
    refusal("ID_REUSED", memory.do, "mail.send", **{**first, **other})
    assert (unread(memory, "ben"), unread(memory, "cal")) == (["mine"], ["zero"])


@pytest.mark.covers("T4.4")
def test_replies_name_what_they_answer(way: Way) -> None:
    register(way, "ann", "ben")
    first = send(way, "ann", "ben", "question")
    second = send(way, "ben", "ann", "answer", reply_to=first)
    third = send(way, "ann", "ben", "thanks", reply_to=second)
    [answer] = way.do("mail.check", identity="ann", peek=True)["messages"]
    assert (answer["reply_to"], answer["conversation"]) == (first, first)
    for id in (first, second, third):
        thread = way.do("mail.thread", conversation=id)["messages"]
        assert [message["message_id"] for message in thread] == [first, second, third]
    refusal("MESSAGE_NOT_FOUND", send, way, "ann", "ben", reply_to="nothing")


@pytest.mark.covers("T4.4")
def test_what_is_no_id(way: Way) -> None:
    register(way, "ann")
    for id in ("", "a b", "a/b", "x" * 65, "ä"):
        refusal("INVALID_ID", send, way, "ann", "ann", id=id)


@pytest.mark.covers("T5.1")
def test_several_recipients_get_one_message(way: Way) -> None:
    register(way, "ann", "ben", "cal")
    answer = way.do("mail.send", sender="ann", to=["ben", "cal", "BEN"], message="hello")
    assert [to["identity"] for to in answer["to"]] == ["ben", "cal"]
    for name in ("ben", "cal"):
        [message] = way.do("mail.check", identity=name, peek=True)["messages"]
        assert message["message_id"] == answer["message_id"]
        assert message["to"] == ["ben", "cal"]


@pytest.mark.covers("T5.1")
def test_all_are_those_who_are_registered_but_the_sender(way: Way) -> None:
    register(way, "ann", "ben", "cal", "gone")
    way.do("agent.unregister", identity="gone")
    answer = way.do("mail.send", sender="ann", to=["all"], message="hello")
    assert [to["identity"] for to in answer["to"]] == ["ben", "cal"]
    assert unread(way, "ann") == []
    assert unread(way, "ben") == unread(way, "cal") == [answer["message_id"]]


@pytest.mark.covers("T5.1")
def test_all_when_nobody_else_is_there(way: Way) -> None:
    register(way, "ann")
    refusal("NO_RECIPIENTS", send, way, "ann", "all")


@pytest.mark.covers("T5.1")
@pytest.mark.parametrize(
    "bad",
    [["never", "nobody"], ["gone", "left"], ["never", "gone"], ["full", "crammed"], ["no_one", "n o"]],
    ids="-".join,
)
def test_all_or_nothing_and_every_bad_name_is_listed(
    memory: Python, bad: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCORD_INBOX_LIMIT", "1")
    register(memory, "ann", "ben", "gone", "left", "full", "crammed")
    send(memory, "ann", ["full", "crammed"])
    for name in ("gone", "left"):
        memory.do("agent.unregister", identity=name)
    with pytest.raises(Refused) as caught:
        send(memory, "ann", ["ben", *bad])
    assert unread(memory, "ben") == []
    for name in bad:
        assert name in caught.value.text


@pytest.mark.covers("T5.1")
def test_more_recipients_than_a_commit_holds(here: Python) -> None:
    names = [f"n{n}" for n in range(60)]
    register(here, "ann", *names)
    most = refusal("TOO_MANY_RECIPIENTS", send, here, "ann", names).details["most"]
    refusal("TOO_MANY_RECIPIENTS", send, here, "ann", "all")
    assert most >= 40
    # As many as it says, with everything that a message can have.
    first = send(here, "ann", names[:most])
    second = send(here, "ann", names[:most], reply_to=first, conversation="c", type="query")
    assert unread(here, names[most - 1]) == [first, second]
    refusal("TOO_MANY_RECIPIENTS", send, here, "ann", names[: most + 1])


@pytest.mark.covers("T5.2")
def test_channels(way: Way) -> None:
    register(way, "ann", "ben", "cal", "dan")
    for name in ("ann", "ben", "cal", "cal"):
        way.do("channel.join", channel="Talk", identity=name)
    assert way.do("channel.list")["channels"] == [{"channel": "talk", "members": ["ann", "ben", "cal"]}]
    answer = way.do("mail.send", sender="ann", channel="talk", message="hello")
    assert [to["identity"] for to in answer["to"]] == ["ben", "cal"]
    [message] = way.do("mail.check", identity="ben", peek=True)["messages"]
    assert message["channel"] == "talk"
    way.do("channel.leave", channel="talk", identity="ben")
    second = way.do("mail.send", sender="dan", channel="talk", to=["dan"], message="also")["message_id"]
    assert unread(way, "ben") == [answer["message_id"]]
    assert unread(way, "cal") == [answer["message_id"], second]
    assert (unread(way, "ann"), unread(way, "dan")) == ([second], [second])


@pytest.mark.covers("T5.2")
def test_what_is_wrong_with_a_channel(way: Way) -> None:
    register(way, "ann", "ben")
    refused = refusal("CHANNEL_NOT_FOUND", way.do, "mail.send", sender="ann", channel="talk", message="hello")
    assert "talk" in refused.text
    refusal("CHANNEL_NOT_FOUND", way.do, "channel.leave", channel="talk", identity="ann")
    refusal("NOT_REGISTERED", way.do, "channel.join", channel="talk", identity="zoe")
    way.do("channel.join", channel="talk", identity="ann")
    refusal("NO_RECIPIENTS", way.do, "mail.send", sender="ann", channel="talk", message="hello")
    way.do("channel.join", channel="talk", identity="ben")
    way.do("agent.unregister", identity="ben")
    refusal("NO_RECIPIENTS", way.do, "mail.send", sender="ann", channel="talk", message="hello")
