"""Archives that are damaged, or made to do harm."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive; what holds an arrow and a path is a link."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (2026, 3, 1, 10, 20, 30))
            if data.startswith(b"-> "):
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, data.removeprefix(b"-> "), zipfile.ZIP_DEFLATED)
    return made.getvalue()


def encrypted(data: bytes) -> bytes:
    """Set the flag of encryption in every header of an archive."""
    made = bytearray(data)
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = made.find(signature)
        while place >= 0:
            made[place + offset] |= 1
            place = made.find(signature, place + 4)
    return bytes(made)


def overlapping(data: bytes) -> bytes:
    """Return an archive in which a hundred names share the bytes of one file."""
    start = data.index(b"PK\x01\x02")
    central = data[start : data.index(b"PK\x05\x06")] * 100
    return data[:start] + central + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 100, 100, len(central), start, 0)


def many(count: int) -> bytes:
    """Return an archive of many empty files, made without the patience that zipfile takes."""
    head = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"x"
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"x"
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(entry) * count, len(head), 0)
    return head + entry * count + tail


def torn(data: bytes) -> bytes:
    """Return an archive in which a byte of what it holds has changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.ipynb", data)
    return made.getvalue().replace(data[:40], data[:39] + b"?")


ARCHIVES: dict[str, Callable[[bytes], bytes]] = {
    "broken off": lambda one: zipped({"a.ipynb": one})[:-30],
    "no file": lambda one: zipped({}),
    "nothing": lambda one: b"",
    "RAR": lambda one: b"Rar!\x1a\x07",
    "encrypted": lambda one: encrypted(zipped({"a.ipynb": one})),
    "overlapping": lambda one: overlapping(zipped({"a.ipynb": one})),
    "archives": lambda one: zipped({f"{i}.zip": zipped({"a.ipynb": one}) for i in range(20)}),
    "zeros": lambda one: zipped({"a.ipynb": b" " * 50_000_000}),
    "a million names": lambda one: many(1_000_000),
    "five thousand names": lambda one: zipped({f"{i}.ipynb": b"" for i in range(5_000)}),
    "noise": lambda one: b"PK\x03\x04" + bytes((i * i) % 251 for i in range(5_000)),
    "torn": torn,
    "wrong size": lambda one: zipped({"a.ipynb": one}).replace(len(one).to_bytes(4, "little"), b"\x0a\0\0\0"),
}
