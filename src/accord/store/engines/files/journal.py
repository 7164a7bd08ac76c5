"""The redo journal: the truth of a files store. One record per commit, flushed before anything else is changed.

A journal starts with a head, `journal EPOCH BASE FLOOR`: its records are the commits after revision BASE, and
changes up to FLOOR are forgotten. A record is a line `commit REVISION SINCE BYTES CRC`, where everything up to revision
SINCE was flushed before it was written, and a body of lines
`put COLLECTION ID BYTES WAS`, each followed by the value and a newline, `delete COLLECTION ID WAS` and
`last COLLECTION NUMBER`. WAS is the checksum of a plain file that was replaced, `-` where there was none. A record
cut short by a crash ends the journal.
"""

import os
from binascii import crc32

from accord import errors, platform
from accord.store.contract import Change
from accord.store.local import folder

NOTHING = "-"  # the checksum of no file


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


class Journal:
    """The file of this moment; a restart puts another in its place."""

    def __init__(self, path: str) -> None:
        self._fd = folder.open_private(path, os.O_RDWR)
        self.path = path
        head = os.pread(self._fd, 200, 0).partition(b"\n")[0]
        words = head.decode("ascii", "replace").split(" ")
        if len(words) != 4 or words[0] != "journal" or not words[2].isdigit() or not words[3].isdigit():
            raise errors.StoreDamaged(path=path, reason="the journal does not start with its head")
        self.epoch = words[1]
        self.base = int(words[2])
        self.floor = int(words[3])
        self.start = len(head) + 1

    @staticmethod
    def write_new(path: str, epoch: str, base: int, floor: int) -> None:
        """An empty journal, durable, under a name of its own until it is renamed."""
        fd = folder.open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"journal {epoch} {base} {floor}\n".encode(), 0)
            platform.flush(fd)
        finally:
            os.close(fd)

    def is_current(self) -> bool:
        """Whether no other has taken this one's place."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except FileNotFoundError:
            return False

    def append(self, records: list[Record], at: int) -> int:
        """Write `records` at the end, `at`, and flush; where the journal ends now. It is as before if that fails."""
        since = records[0].revision - 1
        data = b"".join([_encode(record, since) for record in records])
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._fd, data[written:], at + written)
            platform.flush(self._fd)
        except OSError as error:
            self.cut(at)
            failure = folder.refusal(error, self.path)
            if isinstance(failure, errors.StorageFull):
                raise failure from None
            raise errors.OutcomeUnknown(path=self.path, reason=error.strerror) from None
        return at + len(data)

    def cut(self, at: int) -> None:
        """Take back what was written from `at` on."""
        try:
            os.ftruncate(self._fd, at)
        except OSError:
            pass  # recovery finds the record half, or whole: the outcome is unknown then anyway

    def read(self, start: int, end: int | None = None) -> "tuple[list[Record], int]":
        """The whole records from `start` on, and where they end."""
        size = self.size() if end is None else end
        data = os.pread(self._fd, max(0, size - start), start)
        records: list[Record] = []
        at = 0
        while at < len(data):
            header = _header(data, at)
            if header is None or not header.is_whole(data):
                self._check_end(data, at, header, records[-1].revision if records else self.base)
                break
            records.append(_decode_body(header.revision, data[header.start : header.end]))
            at = header.end
        return records, start + at

    def _check_end(self, data: bytes, at: int, header: "_Header | None", newest: int) -> None:
        """What a crash cut short was the last; what was flushed before another was written is damaged."""
        while header is None and (at := data.find(b"\ncommit ", at + 1) + 1) > 0:
            header = _header(data, at)
        following = _header(data, header.end) if header is not None and header.revision <= newest + 1 else header
        if following is not None and following.since > newest and following.is_whole(data):
            raise errors.StoreDamaged(path=self.path, reason=f"the record after revision {newest} is not whole")

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def flush(self) -> None:
        platform.flush(self._fd)

    def close(self) -> None:
        os.close(self._fd)


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
