"""LMDB: one environment file a shard, a named database a field.

Source: `lmdb.h` and `mdb.c` of LMDB 0.9 (data version 1, https://www.symas.com/lmdb), 64-bit, pages
of 4096 bytes. All integers are unsigned and little-endian.

::

    page 0, 1     meta pages; the one with the higher transaction number counts
    page 2 ...    overflow pages: one run of pages an image, in the order of the samples
    then          the databases' leaf and branch pages, children before their parents

    page header   number u64, pad u16, flags u16 (1 branch, 2 leaf, 4 overflow, 8 meta), then
                  lower u16 and upper u16 of the free space; or in an overflow page pages u32
    leaf node     size low u16, size high u16, flags u16 (1 value on overflow pages: the node holds
                  its page number u64; 2 value is a database record), key size u16, key, value
    branch node   page number's bits 0-15, 16-31, 32-47 u16 each, key size u16, key; the first
                  key of a page is left empty
    database      pad u32, flags u16, depth u16, branch, leaf and overflow pages u64 each, entries
                  u64, root page u64

The named databases are `image`, `label` (ASCII decimal; datasets with labels only) and `extra`
(a JSON object; datasets with extra fields only). The key is the sample's key in UTF-8; one longer
than 511 bytes, LMDB's limit, is cut to 478 bytes, `~` and the 32 hex digits of its XXH3-128. An
value that fits into half a page lies in its leaf, as LMDB's own writer does it; any other starts
16 bytes into its first overflow page and is contiguous from there. There are no free pages: the
file is as long as its content.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from readers.checksum import digest

SUFFIX = ".mdb"
PAGE = 4096
FIRST_PAGE = 2
PAGE_HEADER = 16
MAX_KEY = 511
IMAGE, LABEL, EXTRA = "image", "label", "extra"

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_NODE_BIG, _NODE_DATABASE = 1, 2
_NODE_HEADER = 8
_NODE_MAX = ((PAGE - PAGE_HEADER) // 2 & -2) - 2
_NO_PAGE = 0xFFFF_FFFF_FFFF_FFFF
_INTEGER_KEY = 8

_page_header = struct.Struct("<QHHHH")
_overflow_header = struct.Struct("<QHHI")
_node_header = struct.Struct("<HHHH")
_database = struct.Struct("<IHHQQQQQ")
_meta = struct.Struct("<IIQQ48s48sQQ")


class Database(NamedTuple):
    """A finished tree of pages."""

    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int

    def pack(self) -> bytes:
        """Renders the record that the main database keeps of it; 48 bytes."""
        return _database.pack(0, 0, *self)


class Node(NamedTuple):
    """A leaf node: a key with its value, or with the page on which the value starts."""

    key: bytes
    value: bytes
    size: int
    flags: int = 0


def inline_node(key: bytes, value: bytes) -> Node:
    """Makes the node of a value that lies in its leaf."""
    return Node(key, value, len(value))


def overflow_node(key: bytes, page: int, size: int) -> Node:
    """Makes the node of a value of `size` bytes that starts on overflow page `page`."""
    return Node(key, page.to_bytes(8, "little"), size, _NODE_BIG)


def database_node(name: str, database: Database) -> Node:
    """Makes the main database's node for a named database."""
    record = database.pack()
    return Node(name.encode(), record, len(record), _NODE_DATABASE)


def environment_key(key: str) -> bytes:
    """Gives the key under which a sample lies in the databases."""
    name = key.encode()
    if len(name) <= MAX_KEY:
        return name
    return name[: MAX_KEY - 33] + b"~" + digest(name).hex().encode()


def is_inline(key: bytes, size: int) -> bool:
    """Tells whether a value of `size` bytes lies in its leaf rather than on overflow pages."""
    return _NODE_HEADER + len(key) + size <= _NODE_MAX


def overflow_pages(size: int) -> int:
    """Counts the overflow pages that a value of `size` bytes takes."""
    return (PAGE_HEADER - 1 + size) // PAGE + 1


def overflow_header(page: int, pages: int) -> bytes:
    """Renders the header of the first of a run of overflow pages; 16 bytes."""
    return _overflow_header.pack(page, 0, _OVERFLOW, pages)


def meta_pages(main: Database, last_page: int) -> bytes:
    """Renders both meta pages; 8192 bytes."""
    free = _database.pack(PAGE, _INTEGER_KEY, 0, 0, 0, 0, 0, _NO_PAGE)
    pages = bytearray()
    for number in range(FIRST_PAGE):
        body = _meta.pack(
            _MAGIC, _VERSION, 0, (last_page + 1) * PAGE, free, main.pack(), last_page, number
        )
        header = _page_header.pack(number, 0, _META, 0, 0)
        pages += (header + body).ljust(PAGE, b"\0")
    return bytes(pages)


class TreeBuilder:
    """Renders one database from nodes in key order, as consecutive pages.

    Attributes:
        placed: For each node, where its value lies in the file in bytes; -1 on overflow pages.
        database: The finished database, once the pages have been drawn to the end.
    """

    def __init__(self, first_page: int, overflow_pages: int = 0) -> None:
        self._next_page = first_page
        self._overflow_pages = overflow_pages
        self.placed = array("q")
        self.database = Database(0, 0, 0, 0, 0, _NO_PAGE)

    def pages(self, nodes: Iterable[Node]) -> Iterator[bytes]:
        """Renders the leaf pages, then the branch pages level by level up to the root."""
        children: list[tuple[bytes, int]] = []
        page = _NodePage(_LEAF, self._next_page)
        for node in nodes:
            data = _leaf_node(node)
            start = page.add(data)
            if start < 0:
                yield page.render()
                self._next_page += 1
                page = _NodePage(_LEAF, self._next_page)
                start = page.add(data)
            if start + len(data) == PAGE:
                children.append((node.key, self._next_page))
            start += self._next_page * PAGE + _NODE_HEADER + len(node.key)
            self.placed.append(-1 if node.flags & _NODE_BIG else start)
        if not children:
            return
        yield page.render()
        self._next_page += 1
        leaves, branches, depth = len(children), 0, 1
        while len(children) > 1:
            parents: list[tuple[bytes, int]] = []
            for group in _branch_groups(children):
                page = _NodePage(_BRANCH, self._next_page)
                for position, (key, child) in enumerate(group):
                    page.add(_branch_node(key if position else b"", child))
                parents.append((group[0][0], self._next_page))
                yield page.render()
                self._next_page += 1
            children = parents
            branches += len(parents)
            depth += 1
        self.database = Database(
            depth, branches, leaves, self._overflow_pages, len(self.placed), children[0][1]
        )


class _NodePage:
    """A leaf or branch page that fills up from both ends."""

    def __init__(self, kind: int, number: int) -> None:
        self._kind = kind
        self._number = number
        self._body = bytearray(PAGE)
        self._starts: list[int] = []
        self._upper = PAGE

    def add(self, node: bytes) -> int:
        """Gives where on the page the node came to lie; -1 if it doesn't fit any more."""
        start = self._upper - len(node)
        if start < PAGE_HEADER + 2 * (len(self._starts) + 1):
            return -1
        self._body[start : self._upper] = node
        self._upper = start
        self._starts.append(start)
        return start

    def render(self) -> bytes:
        count = len(self._starts)
        lower = PAGE_HEADER + 2 * count
        _page_header.pack_into(self._body, 0, self._number, 0, self._kind, lower, self._upper)
        struct.pack_into(f"<{count}H", self._body, PAGE_HEADER, *self._starts)
        return bytes(self._body)


def _leaf_node(node: Node) -> bytes:
    low, high = node.size & 0xFFFF, node.size >> 16
    data = _node_header.pack(low, high, node.flags, len(node.key)) + node.key + node.value
    return data + b"\0" * (len(data) & 1)


def _branch_node(key: bytes, page: int) -> bytes:
    header = _node_header.pack(page & 0xFFFF, page >> 16 & 0xFFFF, page >> 32, len(key))
    return header + key + b"\0" * (len(key) & 1)


def _branch_groups(children: list[tuple[bytes, int]]) -> Iterator[list[tuple[bytes, int]]]:
    """Cuts children into branch pages; LMDB wants two or more on each."""
    groups: list[list[tuple[bytes, int]]] = [[]]
    room = PAGE - PAGE_HEADER
    for child in children:
        needed = len(_branch_node(child[0], 0)) + 2
        if needed > room:
            groups.append([])
            room = PAGE - PAGE_HEADER
        groups[-1].append(child)
        room -= needed
    if len(groups) > 1 and len(groups[-1]) == 1:
        groups[-1].insert(0, groups[-2].pop())
    yield from groups
