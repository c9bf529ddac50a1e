"""Attach the images of written answers to their cells: from data URIs, companion files and ``<img>`` tags.

Marking and feedback pages show attached PNG and JPEG pictures and no other content of a cell. Students also paste pictures as data URIs,
hand in the file, or write HTML; these are turned into attachments here. A tag becomes Markdown's notation for a picture, so that nothing
else of it reaches a page.

Protects against:

- content that a browser runs: only PNG and JPEG, by their first bytes, are attached (:mod:`autograder.intake.notebook.images`);
- files outside of the submission: links are not followed, and a path must be one of the files that lie beside the notebook;
- large pictures: all pictures of a notebook share the limit of attached ones.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from autograder.intake.notebook.attached_files import list_companion_paths
from autograder.intake.notebook.images import image_base64
from autograder.intake.notebook.notebook_reader import MAX_PICTURES, UnreadableError, read_file

_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
_CODE = re.compile(r"(^ {0,3}```.*?^ {0,3}```[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"<img\s[^<>]*>", re.IGNORECASE)
_PICTURE = re.compile(r"!\[([^\]\n]{0,500})\]\(\s*<?([^()\s<>]+)>?(?:\s+\"[^\"\n]{0,500}\")?\s*\)")
_DATA = re.compile(r"data:(image/(?:png|jpeg));base64,(.*)", re.DOTALL | re.IGNORECASE)


def attach_pictures(cells: Iterable[Any], folder: Path) -> None:
    """Attach the images that answers embed in other ways to their text cells, in place.

    Args:
        folder: the submission's folder.
    """
    album = _ImageAttacher(folder)
    for cell in cells:
        if "![" in cell["source"] or "<img" in cell["source"].casefold():
            album.attach(cell)


class _ImageAttacher:
    """Attaches the images of one notebook, within a limit."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._remaining = folder, MAX_PICTURES
        self._names: frozenset[str] | None = None

    def attach(self, cell: Any) -> None:
        """Attach a cell's images, and refer to them in its text."""
        attachments = dict(cell.get("attachments") or {})

        def embed_picture(match: re.Match[str]) -> str:
            picture = self._load_image(match[2], len(attachments) + 1)
            if picture is None:
                return match[0]
            name, kind, data = picture
            while attachments.get(name, {kind: data}) != {kind: data}:
                name = f"other-{name}"
            attachments[name] = {kind: data}
            return f"![{match[1]}](attachment:{name})"

        parts = _CODE.split(cell["source"])
        # What stands between the bounds of code is at the odd positions.
        parts[::2] = [_PICTURE.sub(embed_picture, _TAG.sub(_tag_to_markdown, part)) for part in parts[::2]]
        cell["source"] = "".join(parts)
        if attachments:
            cell["attachments"] = attachments

    def _load_image(self, address: str, number: int) -> tuple[str, str, str] | None:
        """Return an image's name, media type and base64 text; None for any other address."""
        if data := _DATA.fullmatch(address):
            kind, name = data[1].lower(), f"picture-{number}.{data[1].lower().partition('/')[2]}"
            text = image_base64(kind, data[2])
        else:
            path = PurePosixPath(unquote(address).removeprefix("./"))
            kind, name = _TYPES.get(path.suffix.lower(), ""), re.sub(r"[^\w.-]", "-", str(path), flags=re.ASCII)
            text = self._read_image_file(str(path), kind) if kind else ""
        if not text or len(text) > self._remaining:
            return None
        self._remaining -= len(text)
        return name, kind, text

    def _read_image_file(self, name: str, kind: str) -> str:
        if self._names is None:
            is_link = self._folder.is_symlink() or self._folder.parent.is_symlink()
            self._names = frozenset() if is_link else frozenset(list_companion_paths(self._folder)[0])
        if name not in self._names:
            return ""
        try:
            return image_base64(kind, base64.b64encode(read_file(self._folder / name)).decode("ascii"))
        except UnreadableError:
            return ""


class _ImageTag(HTMLParser):
    """Parses the attributes of one HTML tag."""

    def __init__(self, tag: str) -> None:
        super().__init__()
        self.attributes: dict[str, str] = {}
        self.feed(tag)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes = {name: value or "" for name, value in reversed(attrs)}


def _tag_to_markdown(match: re.Match[str]) -> str:
    """Convert an image tag to Markdown; tags with other addresses stay unchanged."""
    attributes = _ImageTag(match[0]).attributes
    address = attributes.get("src", "")
    if _DATA.match(address):
        address = "".join(address.split())
    described = re.sub(r"[\[\]\n]", " ", attributes.get("alt", ""))[:500]
    if not address or re.search(r"[()\s<>]", address):
        return match[0]
    return f"![{described}]({address})"
