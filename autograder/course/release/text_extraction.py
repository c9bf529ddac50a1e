"""Extract all text of a file: open archives, unpack notebooks and recordings, strip markup."""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

# Images and fonts contain no text, and searching their megabytes wastes time.
NOT_TEXT = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".woff", ".woff2", ".ttf", ".otf", ".eot", ".mp4", ".webm"}
)
_TAG = re.compile(r"<[^>]*>")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "r": "\r"}


class FileContent(NamedTuple):
    """A file, or a member of an archive."""

    label: str  # the path; for a member of an archive ``path!member``
    digest: str  # a hash of its kind and bytes
    data: bytes  # its bytes


def extract_contents(path: Path, read: set[str]) -> Iterator[FileContent]:
    """Yield a file, or the members of an archive, without images and fonts.

    Args:
        read: digests of contents to skip; the contents read now are added.
    """
    yield from _extract_contents(str(path), path.read_bytes(), read)


def _extract_contents(label: str, data: bytes, read: set[str]) -> Iterator[FileContent]:
    suffix = Path(label).suffix.casefold()
    digest = hashlib.sha256(suffix.encode() + b"\0" + data).hexdigest()
    if suffix in NOT_TEXT or digest in read:
        return
    read.add(digest)
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in sorted(archive.namelist()):
                yield from _extract_contents(f"{label}!{name}", archive.read(name), read)
        return
    yield FileContent(label, digest, data)


def text_forms(content: FileContent) -> list[str]:
    """Return a file's text in every form that may hold a secret: unchanged, without markup, unescaped."""
    is_recording = Path(content.label).suffix.casefold() == ".safetensors"
    text = (_read_header(content.data) if is_recording else content.data).decode("utf-8", errors="ignore")
    forms = [text]
    if "<" in text:
        forms.append(html.unescape(_TAG.sub("", text)))
    if "\\" in text:
        # Text in scripts and search indexes has escapes.
        forms.append(_ESCAPE.sub(lambda match: _unescape(match[1]), text))
    return [*forms, "\n".join(_json_strings(text))]


def _read_header(content: bytes) -> bytes:
    """Return the JSON header of a safetensors file, which holds its metadata."""
    (length,) = struct.unpack("<Q", content[:8].ljust(8, b"\0"))
    return content[8 : 8 + length]


def _unescape(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _MEANING.get(escape, escape)


def _json_strings(text: str) -> Iterator[str]:
    """Yield every string in JSON, and in JSON nested in these strings."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        data: Any = json.loads(text)
    except ValueError:
        return
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += list(reversed(list(value.values())))
        elif isinstance(value, list):
            # A notebook stores a cell as a list of lines with their line ends.
            yield "".join(item for item in value if isinstance(item, str))
            waiting += [item for item in reversed(value) if not isinstance(item, str)]
        elif isinstance(value, str):
            yield value
            yield from _json_strings(value)
