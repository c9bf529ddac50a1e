"""Filter the images in students' texts and outputs."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

# A browser runs and fetches nothing from PNG and JPEG; an SVG may contain scripts and links.
_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_LONGEST_NAME = 200
# A browser needs four bytes per pixel of every frame, however small the file is.
MAX_PIXELS, MAX_FRAMES = 20_000_000, 100
# Markers of JPEG without a length, and those that begin a frame; other tables have numbers among the latter.
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_END = frozenset({0xD9, 0xDA})


class PixelLimit:
    """Counts the pixels of a notebook's images against a limit."""

    def __init__(self) -> None:
        self._left = MAX_PIXELS
        self.refused = 0  # how many images had too many

    def allows(self, kind: str, data: bytes) -> bool:
        """Count an image against the limit, and return whether it may be kept; an unreadable header is refused."""
        count = count_pixels(kind, data)
        if count is None:
            return False
        if count > self._left:
            self.refused += 1
            return False
        self._left -= count
        return True


def safe_images(attachments: Any, limit: PixelLimit | None = None) -> dict[str, dict[str, str]]:
    """Return the PNG and JPEG images among a cell's attachments, by name and media type, as clean base64.

    Their pixels count towards the limit of the notebook; without it, to a new limit.
    """
    limit = limit or PixelLimit()
    images: dict[str, dict[str, str]] = {}
    for name, forms in attachments.items() if isinstance(attachments, Mapping) else ():
        if not isinstance(name, str) or len(name) > _LONGEST_NAME or not isinstance(forms, Mapping):
            continue
        for kind in _SIGNATURES:
            data = image_base64(kind, forms.get(kind), limit)
            if data:
                images[name] = {kind: data}
                break
    return images


def image_base64(kind: str, data: Any, limit: PixelLimit | None = None) -> str:
    """Return an image's base64 without white space; empty if its bytes do not match the type or exceed the limit."""
    if isinstance(data, (list, tuple)):
        data = "".join(part for part in data if isinstance(part, str))
    if not isinstance(data, str) or kind not in _SIGNATURES:
        return ""
    clean = "".join(data.split())
    if not _BASE64.fullmatch(clean):
        return ""
    try:
        image = base64.b64decode(clean, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return clean if (limit or PixelLimit()).allows(kind, image) else ""


def count_pixels(kind: str, data: bytes) -> int | None:
    """Return the number of pixels in all frames of an image by its header; None if unknown or too many frames."""
    if kind not in _SIGNATURES or not data.startswith(_SIGNATURES[kind]):
        return None
    frames = _png_frames(data) if kind == "image/png" else _jpeg_frames(data)
    sizes = list(islice(frames, MAX_FRAMES + 1))
    return sum(sizes) if 0 < len(sizes) <= MAX_FRAMES and min(sizes) > 0 else None


def _png_frames(data: bytes) -> Iterator[int]:
    """Yield the pixel count of each frame of a PNG."""
    position = 8
    while position + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        inside = data[position + 8 : position + 8 + min(length, 32)]
        if position == 8 and (name != b"IHDR" or len(inside) < 8):
            return
        if name == b"IHDR":
            yield _pixel_area(">II", inside)
        elif name == b"fcTL" and len(inside) >= 12:
            yield _pixel_area(">II", inside[4:])
        position += length + 12


def _jpeg_frames(data: bytes) -> Iterator[int]:
    """Yield the pixel count of each frame that a JPEG's headers declare."""
    position = 2
    while (position := data.find(b"\xff", position)) >= 0:
        marker = data[position + 1] if position + 1 < len(data) else 0
        position += 1
        if marker in _END:
            return
        if marker in _BARE or marker in (0x00, 0xFF):
            continue
        if position + 3 > len(data):
            return
        (length,) = struct.unpack_from(">H", data, position + 1)
        if marker in _FRAMES and position + 8 <= len(data):
            yield _pixel_area(">HH", data[position + 4 : position + 8])
        position += max(2, length) + 1


def _pixel_area(form: str, data: bytes) -> int:
    height, width = struct.unpack_from(form, data)
    return int(height * width)
