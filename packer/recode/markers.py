"""The markers of a JPEG that can be rewritten, read strictly (ITU-T T.81, annex B).

What libjpeg would warn of, guess or mend is refused here: a file that comes through has one
meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from readers.errors import NotRecodableError
from readers.header import Encoded

SOI, EOI, SOS, DQT, DHT, DRI, DNL = 0xD8, 0xD9, 0xDA, 0xDB, 0xC4, 0xDD, 0xDC
SOF_BASELINE, SOF_EXTENDED, SOF_PROGRESSIVE = 0xC0, 0xC1, 0xC2
FRAMES = frozenset({SOF_BASELINE, SOF_EXTENDED, SOF_PROGRESSIVE})
_APP_FIRST, _APP_LAST, _COM = 0xE0, 0xEF, 0xFE
_RST_FIRST, _RST_LAST, _TEM = 0xD0, 0xD7, 0x01
_PREFIX = 0xFF
_REFUSED = {
    0xC3: "lossless",
    0xC5: "hierarchical",
    0xC6: "hierarchical",
    0xC7: "hierarchical",
    0xC8: "a frame of an unknown kind",
    0xC9: "arithmetic coding",
    0xCA: "arithmetic coding",
    0xCB: "arithmetic coding",
    0xCC: "arithmetic coding",
    0xCD: "arithmetic coding",
    0xCE: "arithmetic coding",
    0xCF: "arithmetic coding",
    DNL: "height told after the coded pixels (DNL)",
    0xDE: "hierarchical",
    0xDF: "hierarchical",
}

_MOST_MARKERS = 10_000
_TABLES = 4
_HUFFMAN_HEAD = 17
_FRAME_HEAD, _FRAME_COMPONENT = 6, 3
_LARGEST_SAMPLING = 4
_MOST_BLOCKS = 10
"""Blocks that an MCU may have (T.81, B.2.3)."""
_COMPONENT_NAMES = {2: "2 components", 4: "CMYK"}


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a frame."""

    id: int
    horizontal: int
    """Blocks of an MCU horizontally."""
    vertical: int
    quantisation: int
    """Number of its quantisation table."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame header."""

    kind: int
    """Its marker: `SOF_BASELINE`, `SOF_EXTENDED` or `SOF_PROGRESSIVE`."""
    height: int
    width: int
    components: tuple[Component, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan header."""

    components: tuple[int, ...]
    """Positions in the frame's components."""
    dc_tables: tuple[int, ...]
    """Number of each component's table."""
    ac_tables: tuple[int, ...]
    first: int
    """First and last coefficient that it tells of."""
    last: int
    high: int
    """Bit from which on they are known already; 0 where they aren't."""
    low: int
    """Bit down to which it tells them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A marker segment that is kept."""

    marker: int
    content: bytes


@dataclass(slots=True)
class Markers:
    """What the markers said so far; `next_scan` goes on to the coded pixels of the next scan."""

    data: Encoded
    position: int = 2
    kept: list[Segment] = field(default_factory=list)
    """Application data, comments and quantisation tables before the first scan, in order, with the
    frame header where it stood."""
    frame: Frame | None = None
    scan: Scan | None = None
    """The first scan, until there is another."""
    interval: int = 0
    """MCUs of a restart segment; 0 without restart markers."""
    dc: list[bytes | None] = field(default_factory=lambda: [None] * _TABLES)
    """Huffman tables by number: how many codes of each length, and the symbols."""
    ac: list[bytes | None] = field(default_factory=lambda: [None] * _TABLES)
    quantised: dict[int, int] = field(default_factory=dict)
    """Bytes of an entry of each quantisation table."""
    _markers: int = 0

    def next_scan(self) -> Scan | None:
        """Reads markers up to the coded pixels of the next scan, where `position` then is.

        Returns:
            None at the end of the image.

        Raises:
            NotRecodableError: The file can't be rewritten.
        """
        while True:
            marker = self._next_marker()
            if marker == EOI:
                return None
            if marker == _TEM or _RST_FIRST <= marker <= _RST_LAST:
                continue
            content = self._content(marker)
            if marker == SOS:
                self.scan = self._read_scan(content)
                return self.scan
            self._take(marker, content)

    def _next_marker(self) -> int:
        data, position = self.data, self.position
        size = len(data)
        self._markers += 1
        if self._markers > _MOST_MARKERS:
            raise NotRecodableError(f"more than {_MOST_MARKERS} markers")
        if position < size and data[position] != _PREFIX:
            raise damaged(f"bytes that belong to nothing at byte {position}")
        while position < size and data[position] == _PREFIX:
            position += 1
        if position >= size:
            raise damaged("no end marker")
        marker = data[position]
        if not marker:
            raise damaged(f"bytes that belong to nothing at byte {position - 1}")
        self.position = position + 1
        return marker

    def _content(self, marker: int) -> bytes:
        data, position = self.data, self.position
        length = int.from_bytes(data[position : position + 2], "big")
        if length < 2 or position + length > len(data):  # noqa: PLR2004 - counts its own two bytes
            raise damaged(f"segment FF{marker:02X} at byte {position - 2} has the length {length}")
        self.position = position + length
        return bytes(data[position + 2 : position + length])

    def _take(self, marker: int, content: bytes) -> None:
        if marker == DHT:
            self._read_huffman(content)
        elif marker == DRI:
            if len(content) != 2:  # noqa: PLR2004 - a 16-bit number
                raise damaged("restart interval of another length")
            self.interval = int.from_bytes(content, "big")
        elif marker in _REFUSED:
            raise NotRecodableError(_REFUSED[marker])
        else:
            self._keep(marker, content)

    def _keep(self, marker: int, content: bytes) -> None:
        if self.scan is not None:
            raise NotRecodableError(f"segment FF{marker:02X} between scans")
        if marker in FRAMES:
            if self.frame is not None:
                raise NotRecodableError("more than one frame")
            self.frame = _read_frame(marker, content)
        elif marker == DQT:
            self._check_quantisation(content)
        elif not (_APP_FIRST <= marker <= _APP_LAST or marker == _COM):
            raise NotRecodableError(f"segment FF{marker:02X} of an unknown kind")
        self.kept.append(Segment(marker, content))

    def _check_quantisation(self, content: bytes) -> None:
        while content:
            precision, number = content[0] >> 4, content[0] & 15
            size = 1 + 64 * (precision + 1)
            if precision > 1 or number >= _TABLES or len(content) < size:
                raise damaged("an impossible quantisation table")
            self.quantised[number] = precision + 1
            content = content[size:]

    def _read_huffman(self, content: bytes) -> None:
        while content:
            kind, number = content[0] >> 4, content[0] & 15
            symbols = sum(content[1:_HUFFMAN_HEAD])
            end = _HUFFMAN_HEAD + symbols
            if kind > 1 or number >= _TABLES or symbols > 256 or len(content) < end:  # noqa: PLR2004
                raise damaged("an impossible Huffman table")
            (self.ac if kind else self.dc)[number] = content[1:end]
            content = content[end:]

    def _read_scan(self, content: bytes) -> Scan:
        if self.frame is None:
            raise damaged("a scan before the frame header")
        number = content[0] if content else 0
        if not 1 <= number <= _TABLES or len(content) != 4 + 2 * number:
            raise damaged("an impossible scan header")
        positions = {one.id: at for at, one in enumerate(self.frame.components)}
        pairs = [(content[1 + 2 * at], content[2 + 2 * at]) for at in range(number)]
        chosen = tuple(positions.get(identity, -1) for identity, _ in pairs)
        if min(chosen) < 0 or list(chosen) != sorted(set(chosen)):
            raise damaged("a scan of components that the frame doesn't have in that order")
        dc, ac = tuple(ids >> 4 for _, ids in pairs), tuple(ids & 15 for _, ids in pairs)
        if max(*dc, *ac) >= _TABLES:
            raise damaged("an impossible scan header")
        first, last, bits = content[-3:]
        return Scan(chosen, dc, ac, first, last, bits >> 4, bits & 15)


def damaged(what: str) -> NotRecodableError:
    """Makes the refusal of a damaged file."""
    return NotRecodableError(f"damaged: {what}")


def _read_frame(marker: int, content: bytes) -> Frame:
    number = content[5] if len(content) >= _FRAME_HEAD else 0
    if not number or len(content) != _FRAME_HEAD + _FRAME_COMPONENT * number:
        raise damaged("an impossible frame header")
    if content[0] != 8:  # noqa: PLR2004 - bits
        raise NotRecodableError(f"{content[0]} bit")
    height, width = int.from_bytes(content[1:3], "big"), int.from_bytes(content[3:5], "big")
    if not height:
        raise NotRecodableError("height told after the coded pixels (DNL)")
    if not width:
        raise damaged("a width of 0 pixels")
    if number not in (1, 3):
        raise NotRecodableError(_COMPONENT_NAMES.get(number, f"{number} components"))
    components = tuple(
        Component(content[at], content[at + 1] >> 4, content[at + 1] & 15, content[at + 2])
        for at in range(_FRAME_HEAD, len(content), _FRAME_COMPONENT)
    )
    if len({one.id for one in components}) < number:
        raise NotRecodableError("components of one name")
    _check_sampling(components)
    return Frame(marker, height, width, components)


def _check_sampling(components: tuple[Component, ...]) -> None:
    for one in components:
        if not (
            1 <= one.horizontal <= _LARGEST_SAMPLING and 1 <= one.vertical <= _LARGEST_SAMPLING
        ):
            raise damaged("impossible sampling factors")
        if one.quantisation >= _TABLES:
            raise damaged("an impossible quantisation table")
    wide = max(one.horizontal for one in components)
    high = max(one.vertical for one in components)
    blocks = sum(one.horizontal * one.vertical for one in components)
    whole = all(wide % one.horizontal == 0 == high % one.vertical for one in components)
    if not whole or (len(components) > 1 and blocks > _MOST_BLOCKS):
        factors = ", ".join(f"{one.horizontal}x{one.vertical}" for one in components)
        raise NotRecodableError(f"sampling factors {factors}")
