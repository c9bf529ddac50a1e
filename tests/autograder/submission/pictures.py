"""Images that have a header and no pixels."""

from __future__ import annotations

import base64
import struct


def png(width: int, height: int, *, frames: int = 1, data: int = 0) -> str:
    """Return a PNG in base64.

    Args:
        width: its width.
        height: its height.
        frames: how many frames it announces.
        data: how many bytes of data it has.
    """
    size = struct.pack(">II", width, height)
    chunks = [_chunk(b"IHDR", size + b"\x08\x06\0\0\0")]
    chunks += [_chunk(b"fcTL", struct.pack(">I", number) + size + bytes(14)) for number in range(1, frames)]
    chunks += [_chunk(b"IDAT", bytes(data)), _chunk(b"IEND", b"")]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def jpeg(width: int, height: int, *, kind: int = 0xC0) -> str:
    """Return a JPEG in base64.

    Args:
        width: its width.
        height: its height.
        kind: the marker of its frame; 0xC2 for a progressive one.
    """
    table = b"\xff\xc4" + struct.pack(">H", 6) + b"\xff\xc0\0\x01"
    frame = bytes((0xFF, kind)) + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    return base64.b64encode(b"\xff\xd8" + b"\xff\xe0\0\x04JF" + table + b"\xff" + frame + b"\xff\xda").decode()


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content), name) + content + bytes(4)
