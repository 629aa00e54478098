r"""The bytes of a WebDataset shard, and a strict reader of anybody's tar.

A shard is a tar archive as POSIX.1-1988 (`ustar`) has it, with the extended headers of
POSIX.1-2001 (`pax`) where those are needed; see
https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html. A member is a header block of
512 bytes, its data, and zeros up to the next multiple of 512; two blocks of zeros end the archive.

What we write:

==========  ============================================================================
name        ASCII up to 100 bytes in `name`; longer ASCII cut at a `/` into `prefix` (155)
            and `name`; everything else (longer, or not ASCII) as pax record `path`, while
            `name` holds the last 100 characters with `?` for what isn't ASCII
size        11 octal digits; 8 GiB and more as pax record `size`, while the field holds 0
the rest    mode 0644; uid, gid, mtime and device 0; no user, group or link name
==========  ============================================================================

so the bytes depend on names and contents alone.

A sample is a run of adjacent members that share the text before the first dot, the stem:
`STEM.jpg` (the suffix follows the content), `STEM.cls` (label as ASCII decimal) in a dataset with
labels, `STEM.json` (an object) in a dataset with extra fields. The stem is the key, escaped so
that readers which split at the first dot of the path (Hugging Face `datasets`), at the first of
the base name (`webdataset`, DALI) or at the last one find the same stem, and none merges, skips
or leaves its folder:

* `.`, `%`, `\`, control characters and lone surrogates become `%XX` for each byte of their UTF-8;
* the first `_` of a folder or base name that starts with `__` becomes `%5F`, because `webdataset`
  and `datasets` take such names for their own;
* an empty part becomes a lone `%`, so neither a leading nor a doubled `/` is left.

Every `%` of a stem is one of these, so different keys have different stems.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

from readers.errors import CorruptDatasetError, FormatError

BLOCK = 512
"""Bytes of a block."""
END = bytes(2 * BLOCK)
"""What ends an archive."""

_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s32s32s8s8s155s12x")
_ZERO = bytes(BLOCK)
_CHECKSUM_AT = slice(148, 156)
_MAX_OCTAL = 8**11
_MAX_NAME = 100
_MAX_PREFIX = 155
_MAX_EXTENSION = 1 << 20
_MAX_PADDING = 64 << 20
"""How many bytes after the end of an archive are looked at."""
_PAX_NAME = b"././@PaxHeader"

_ESCAPED = re.compile(r"[.%\\\x00-\x1f\x7f-\x9f\ud800-\udfff]|(?<![^/])_(?=_)")
_EMPTY_PART = re.compile(r"(?<![^/])(?![^/])")


def member_stem(key: str) -> str:
    """Escapes a key to the part of a member's name before its dot (rules above)."""
    return _EMPTY_PART.sub("%", _ESCAPED.sub(_percent, key))


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def member_header(name: str, size: int) -> bytes:
    """Builds all header blocks of a member.

    Args:
        name: Name of the member, without NUL.
        size: Bytes of its data.

    Returns:
        One block, or three and more with a pax header.

    Raises:
        ValueError: The name is empty, holds NUL, or can't be encoded.
    """
    if not name or "\0" in name:
        raise ValueError(f"not a name of a tar member: {name!r}")
    records = b""
    octal_size = size
    if size >= _MAX_OCTAL:
        records += _pax_record("size", str(size))
        octal_size = 0
    prefix, base = _split(name)
    if not base:
        records += _pax_record("path", name)
        base = name.encode("ascii", "replace")[-_MAX_NAME:]
    header = _ustar(base, octal_size, b"0", prefix)
    if not records:
        return header
    pax = _ustar(_PAX_NAME, len(records), b"x", b"")
    return pax + records + padding(len(records)) + header


def padding(size: int) -> bytes:
    """Gives the zeros that follow `size` bytes of data."""
    return bytes(-size % BLOCK)


def _split(name: str) -> tuple[bytes, bytes]:
    """Cuts a name into prefix and name fields; both are empty where it doesn't fit them."""
    if not name.isascii():
        return b"", b""
    raw = name.encode()
    if len(raw) <= _MAX_NAME:
        return b"", raw
    slash = raw.rfind(b"/", 0, _MAX_PREFIX + 1)
    if slash <= 0 or not 0 < len(raw) - slash - 1 <= _MAX_NAME:
        return b"", b""
    return raw[:slash], raw[slash + 1 :]


def _ustar(name: bytes, size: int, kind: bytes, prefix: bytes) -> bytes:
    octal = b"%011o\0" % size
    checksum = _FIXED_SUM + sum(name) + sum(octal) + sum(kind) + sum(prefix)
    return _pack_ustar(name, octal, b"%06o\0 " % checksum, kind, prefix)


def _pack_ustar(name: bytes, size: bytes, checksum: bytes, kind: bytes, prefix: bytes) -> bytes:
    zero = b"0000000\0"
    return _HEADER.pack(
        name,
        b"0000644\0",
        zero,
        zero,
        size,
        b"00000000000\0",
        checksum,
        kind,
        b"",
        b"ustar\x0000",
        b"",
        b"",
        zero,
        zero,
        prefix,
    )


_FIXED_SUM = sum(_pack_ustar(b"", b"", b" " * 8, b"\0", b""))
"""What every header's checksum holds of the fields that are always the same."""


def _pax_record(keyword: str, value: str) -> bytes:
    """Builds a record: length, blank, keyword=value, newline; the length counts itself."""
    tail = f" {keyword}={value}\n".encode()
    length = len(tail)
    while length != len(tail) + len(str(length)):
        length = len(tail) + len(str(length))
    return str(length).encode() + tail


class Member(NamedTuple):
    """A regular file of an archive."""

    name: str
    """Path within the archive, without `.` and empty parts; bytes that are no UTF-8 as lone
    surrogates (see `os.fsdecode`)."""
    offset: int
    """Where its data starts."""
    size: int
    """Bytes of its data."""
    header: int
    """Where its first header block starts."""


class TarScan:
    """Walks through the members of an archive; made by `scan_tar`.

    Attributes:
        ended: Whether the blocks that end an archive were there; False until the walk is over.
        links: How many links and devices were passed over so far.
        broken: Name of the member in which the archive breaks off, where that could be read.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self.ended = False
        self.links = 0
        self.broken: str | None = None
        self._read = read
        self._size = size

    def __iter__(self) -> Iterator[Member]:
        self.ended = False
        self.links = 0
        self.broken = None
        offset = 0
        start = 0
        defaults: dict[str, bytes] = {}
        records: dict[str, bytes] = {}
        while offset < self._size:
            block = self._piece(offset, BLOCK, "a header")
            if block == _ZERO:
                self._check_end(offset, dangling=offset != start)
                return
            header = _Header.parse(block, offset)
            offset += BLOCK
            if header.kind in _EXTENSIONS:
                self._extend(defaults if header.kind == b"g" else records, header, offset)
                offset += _padded(header.size)
                continue
            member = _member(header, {**defaults, **records}, offset, start)
            if header.holds_data:
                self._check_data(member)
                offset += _padded(member.size)
            if header.is_file:
                yield member
            self.links += header.is_link
            records = {}
            start = offset
        if offset != start:
            _damaged("the archive breaks off after an extended header", start)

    def _extend(self, records: dict[str, bytes], header: _Header, offset: int) -> None:
        if header.size > _MAX_EXTENSION:
            _damaged(f"an extended header claims {header.size} bytes", offset - BLOCK)
        data = self._piece(offset, header.size, "an extended header")
        if header.kind == _LONG_NAME:
            records.setdefault("path", data.rstrip(b"\0"))
        elif header.kind != _LONG_LINK:
            for keyword, value in _pax_records(data, offset):
                if keyword.startswith(_SPARSE):
                    records[_SPARSE] = b""
                elif keyword in _USED_KEYWORDS:
                    records[keyword] = value

    def _piece(self, offset: int, size: int, what: str) -> bytes:
        data = self._read(offset, size) if offset + size <= self._size else b""
        if len(data) != size:
            _damaged(f"the archive breaks off within {what}", offset)
        return data

    def _check_data(self, member: Member) -> None:
        missing = member.offset + member.size - self._size
        if missing > 0:
            self.broken = member.name
            _damaged(
                f"the archive breaks off within the member {member.name!r}, which lacks "
                f"{missing} of its {member.size} bytes",
                member.offset,
            )

    def _check_end(self, offset: int, *, dangling: bool) -> None:
        if dangling:
            _damaged("an extended header belongs to no member", offset)
        last = min(self._size, offset + _MAX_PADDING)
        while offset < last:
            piece = self._read(offset, min(last - offset, _MAX_EXTENSION))
            if not piece:
                _damaged("the archive breaks off within its last blocks", offset)
            if piece.count(0) != len(piece):
                at = offset + len(piece) - len(piece.lstrip(b"\0"))
                _damaged("more bytes follow the end of the archive (was one appended?)", at)
            offset += len(piece)
        self.ended = True


def scan_tar(read: Callable[[int, int], bytes], size: int) -> TarScan:
    """Finds the regular files of a tar archive, reading headers only.

    Understands v7, ustar, pax (also global headers) and GNU archives. Folders, links and devices
    are passed over. Lengths are checked against the archive before anything is read.

    Args:
        read: Returns the bytes at (offset, size); fewer where the archive ends.
        size: Bytes of the archive.

    Returns:
        What iterates over the members in order. Iterating raises `CorruptDatasetError` where the
        archive is cut or damaged, and `FormatError` for sparse members, for those continued from
        another volume, and for names that leave their folder; all give the offset.
    """
    return TarScan(read, size)


class _Header(NamedTuple):
    """What a header block says."""

    name: bytes
    size: int
    kind: bytes

    @classmethod
    def parse(cls, block: bytes, offset: int) -> _Header:
        fields = _HEADER.unpack(block)
        if not _is_checksum(_number(fields[6], offset, "checksum"), block):
            _damaged("not a tar header (its checksum is wrong)", offset)
        kind = fields[7]
        name = fields[0].partition(b"\0")[0]
        prefix = fields[14].partition(b"\0")[0]
        if prefix and fields[9].startswith(b"ustar\0"):
            name = prefix + b"/" + name
        return cls(name, _number(fields[4], offset, "size"), kind)

    @property
    def is_file(self) -> bool:
        return self.kind in {b"0", b"\0", b"7"} and not self.is_old_folder

    @property
    def is_old_folder(self) -> bool:
        return self.kind == b"\0" and self.name.endswith(b"/")

    @property
    def is_link(self) -> bool:
        return self.kind in {b"1", b"2", b"3", b"4", b"6"}

    @property
    def holds_data(self) -> bool:
        return self.kind not in {b"1", b"2", b"3", b"4", b"5", b"6"} and not self.is_old_folder


_LONG_NAME = b"L"
_LONG_LINK = b"K"
_EXTENSIONS = frozenset((b"x", b"X", b"g", _LONG_NAME, _LONG_LINK))
_SPARSE = "GNU.sparse"
_USED_KEYWORDS = frozenset(("path", "size"))


def _member(header: _Header, records: dict[str, bytes], offset: int, start: int) -> Member:
    if header.kind in {b"S", b"M"} or _SPARSE in records:
        raise FormatError(
            f"the member at offset {start} is sparse or continued from another volume, which "
            "can't be read in place; write the archive again without these",
            offset=start,
        )
    size = header.size
    if "size" in records:
        size = _decimal(records["size"], start)
    name = records.get("path", header.name)
    if b"\0" in name:
        _damaged("the name of a member holds NUL", start)
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        text = name.decode("utf-8", "surrogateescape")
        raise FormatError(
            f"the member {text!r} at offset {start} leaves its folder; refused", offset=start
        )
    text = b"/".join(parts).decode("utf-8", "surrogateescape")
    return Member(text, offset, size, start)


def _pax_records(data: bytes, offset: int) -> Iterator[tuple[str, bytes]]:
    """Parses the records of an extended header; `offset` is where it starts."""
    at = 0
    while at < len(data) and data[at]:
        digits = data[at : at + 20].partition(b" ")[0]
        length = _decimal(digits, offset + at)
        record = data[at + len(digits) + 1 : at + length]
        keyword, equals, value = record[:-1].partition(b"=")
        if length > len(data) - at or not equals or not record.endswith(b"\n"):
            _damaged("a record of an extended header is damaged", offset + at)
        if value:
            yield keyword.decode("utf-8", "surrogateescape"), value
        at += length


def _decimal(digits: bytes, offset: int) -> int:
    if not digits.isdigit() or len(digits) > 20:  # noqa: PLR2004 - the digits of 2**64
        _damaged("a number of an extended header is damaged", offset)
    return int(digits)


def _number(field: bytes, offset: int, what: str) -> int:
    """Parses a number field: octal digits, or base 256 where its first bit is set."""
    if field[0] == 0x80:  # noqa: PLR2004 - the mark of a positive number in base 256
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip(b" ")
    try:
        value = int(digits or b"0", 8)
    except ValueError:
        value = -1
    if value < 0 or b"_" in digits:
        _damaged(f"a header's {what} is no number: {field!r}", offset)
    return value


def _is_checksum(number: int, block: bytes) -> bool:
    """Compares a header's checksum: its bytes' sum with blanks for the checksum itself."""
    total = sum(block) - sum(block[_CHECKSUM_AT]) + 8 * ord(" ")
    if number == total:
        return True
    # Some old writers took bytes for signed.
    return number == total - 256 * sum(byte > 127 for byte in block)  # noqa: PLR2004 - a sign bit


def _padded(size: int) -> int:
    return size + -size % BLOCK


def _damaged(what: str, offset: int) -> NoReturn:
    raise CorruptDatasetError(f"{what} (offset {offset})", offset=offset)
