"""Keys: a path without its image suffix, valid as text and unique among its neighbours.

Where two files would share a key (`1.jpg`, `1.png`), both keep their suffix. A name that is no
UTF-8 is percent-escaped (the bytes that are none as `%XX`, and `%` itself), again and again while
the outcome is another file's name. Everything else stays as it is: case, blanks, accents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from readers.header import IMAGE_SUFFIXES

_SUFFIXES = frozenset(suffix.encode() for suffix in IMAGE_SUFFIXES)
_STRAY_BYTE = re.compile("[\udc80-\udcff]")
_ESCAPED_PERCENT = re.compile("%(25)*")


def text_of(name: bytes) -> str:
    """Decodes a path as UTF-8; other bytes become lone surrogates, whatever the locale."""
    return name.decode("utf-8", "surrogateescape")


def image_suffix_size(name: bytes) -> int:
    """Counts the bytes of a path's image suffix with its dot; 0 where it has none."""
    dot = name.rfind(b".")
    if dot <= name.rfind(b"/") + 1:
        return 0
    suffix = name[dot:]
    return len(suffix) if suffix in _SUFFIXES or suffix.lower() in _SUFFIXES else 0


def key_of(name: bytes, cut: int, escapes: int) -> str:
    """Gives the key of a name.

    Args:
        name: A path, or the last part of one.
        cut: Bytes at its end that the key leaves out.
        escapes: How many times it is percent-escaped; 0 for UTF-8.
    """
    text = text_of(name[: len(name) - cut])
    for _ in range(escapes):
        text = _STRAY_BYTE.sub(_percent, text.replace("%", "%25"))
    return text


def distinct_keys(names: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Settles the keys of names that lie beside each other, by the rule of this module.

    Args:
        names: Different paths, all of the same folder or all of the same source.

    Returns:
        `cut` and `escapes` of `key_of` for each name, one byte each.
    """
    cuts = bytes(map(image_suffix_size, names))
    escapes = _escapes(names)
    if not any(escapes):
        stems = {name[: len(name) - cut] for name, cut in zip(names, cuts, strict=True)}
        if len(stems) == len(names):
            return cuts, escapes
    while True:
        keys = list(map(key_of, names, cuts, escapes))
        uses = Counter(keys)
        if len(uses) == len(names):
            return cuts, escapes
        cuts = bytes(cut if uses[key] == 1 else 0 for key, cut in zip(keys, cuts, strict=True))


def key_group(name: bytes) -> bytes:
    """Gives what all paths that could share a key have in common."""
    while cut := image_suffix_size(name):
        name = name[:-cut]
    text = is_text(name)
    if text and b"%" not in name:
        return name
    return _ESCAPED_PERCENT.sub("%", key_of(name, 0, 0 if text else 1)).encode()


def _escapes(names: Sequence[bytes]) -> bytes:
    """Counts for each name the escapes that make all of them different texts."""
    if is_text(b"/".join(names)):
        return bytes(len(names))
    taken = {text_of(name) for name in names if is_text(name)}
    escapes = bytearray(len(names))
    for at, name in enumerate(names):
        if is_text(name):
            continue
        escapes[at] = 1
        while (text := key_of(name, 0, escapes[at])) in taken:
            escapes[at] += 1
        taken.add(text)
    return bytes(escapes)


def is_text(name: bytes) -> bool:
    """Says whether a name is UTF-8."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _percent(match: re.Match[str]) -> str:
    return f"%{ord(match[0]) - 0xDC00:02X}"
