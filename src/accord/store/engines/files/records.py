"""The records of a journal, one for each commit.

A record is a line `commit REVISION SINCE BYTES CRC`, where everything up to revision SINCE was flushed before it was
written, and a body of lines `put COLLECTION ID BYTES WAS`, each followed by the value and a newline,
`delete COLLECTION ID WAS` and `last COLLECTION NUMBER`. WAS is the checksum of a plain file that was replaced, `-`
where there was none. A record cut short by a crash ends the journal.
"""

from binascii import crc32

from accord import errors
from accord.store.contract import Change
from accord.store.engines.files.shelves import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.files.journal import Journal


class Row:
    """A put or, with no value, a delete."""

    __slots__ = ("collection", "id", "value", "was")

    def __init__(self, collection: str, id: str, value: bytes | None, was: str = NOTHING) -> None:
        self.collection = collection
        self.id = id
        self.value = value
        self.was = was  # of plain files only


class Record:
    """One commit."""

    __slots__ = ("lasts", "revision", "rows")

    def __init__(self, revision: int, rows: list[Row], lasts: dict[str, int]) -> None:
        self.revision = revision
        self.rows = rows
        self.lasts = lasts  # the last number of each collection that was touched

    def change(self) -> Change:
        return Change(self.revision, tuple(dict.fromkeys([(row.collection, row.id) for row in self.rows])))


def encode(records: list[Record]) -> bytes:
    since = records[0].revision - 1
    return b"".join([_encode(record, since) for record in records])


def read(journal: "Journal", start: int, end: int | None = None) -> tuple[list[Record], int]:
    """The whole records of a journal from `start` on, and where they end."""
    data = journal.read(start, end)
    records: list[Record] = []
    at = 0
    while at < len(data):
        header = _header(data, at)
        if header is None or not header.is_whole(data):
            _check_end(journal.path, data, at, header, records[-1].revision if records else journal.base)
            break
        records.append(_decode_body(header.revision, data[header.start : header.end]))
        at = header.end
    return records, start + at


def _check_end(path: str, data: bytes, at: int, header: "_Header | None", newest: int) -> None:
    """What a crash cut short was the last; what was flushed before another was written is damaged."""
    while header is None and (at := data.find(b"\ncommit ", at + 1) + 1) > 0:
        header = _header(data, at)
    following = _header(data, header.end) if header is not None and header.revision <= newest + 1 else header
    if following is not None and following.since > newest and following.is_whole(data):
        raise errors.StoreDamaged(path=path, reason=f"the record after revision {newest} is not whole")


class _Header:
    """The first line of a record, and where the record's body should be."""

    __slots__ = ("_crc", "end", "revision", "since", "start")

    def __init__(self, revision: int, since: int, start: int, end: int, crc: bytes) -> None:
        self.revision = revision
        self.since = since
        self.start = start
        self.end = end
        self._crc = crc

    def is_whole(self, data: bytes) -> bool:
        return self.end <= len(data) and self._crc == b"%08x" % crc32(data[self.start : self.end])


def _header(data: bytes, at: int) -> _Header | None:
    line, newline, _ = data[at : at + 100].partition(b"\n")
    words = line.split(b" ")
    if not newline or len(words) != 5 or words[0] != b"commit" or not all(word.isdigit() for word in words[1:4]):
        return None
    revision, since, size = (int(word) for word in words[1:4])
    start = at + len(line) + 1
    return _Header(revision, since, start, start + size, words[4])


def _encode(record: Record, since: int) -> bytes:
    pieces = []
    for row in record.rows:
        if row.value is None:
            pieces.append(f"delete {row.collection} {row.id} {row.was}\n".encode())
        else:
            pieces.append(f"put {row.collection} {row.id} {len(row.value)} {row.was}\n".encode())
            pieces.append(row.value)
            pieces.append(b"\n")
    for collection, last in record.lasts.items():
        pieces.append(f"last {collection} {last}\n".encode())
    body = b"".join(pieces)
    return f"commit {record.revision} {since} {len(body)} {crc32(body):08x}\n".encode() + body


def _decode_body(revision: int, body: bytes) -> Record:
    record = Record(revision, [], {})
    at = 0
    while at < len(body):
        end = body.index(b"\n", at)
        words = body[at:end].decode().split(" ")
        at = end + 1
        if words[0] == "put":
            size = int(words[3])
            record.rows.append(Row(words[1], words[2], body[at : at + size], words[4]))
            at += size + 1
        elif words[0] == "delete":
            record.rows.append(Row(words[1], words[2], None, words[3]))
        else:
            record.lasts[words[1]] = int(words[2])
    return record
