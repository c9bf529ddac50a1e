"""Pictures that students paste into their texts: which of them go any further."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

# PNG and JPEG hold pixels and nothing that a browser would run or fetch; an SVG may hold both.
_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_LONGEST_NAME = 200


def safe_images(attachments: Any) -> dict[str, dict[str, str]]:
    """Return the PNG and JPEG pictures among a cell's attachments, by name and kind, as clean base64, and nothing else."""
    images: dict[str, dict[str, str]] = {}
    for name, forms in attachments.items() if isinstance(attachments, Mapping) else ():
        if not isinstance(name, str) or len(name) > _LONGEST_NAME or not isinstance(forms, Mapping):
            continue
        for kind in _SIGNATURES:
            data = image_base64(kind, forms.get(kind))
            if data:
                images[name] = {kind: data}
                break
    return images


def image_base64(kind: str, data: Any) -> str:
    """Return a picture's base64 without white space, if it is a picture of that kind; otherwise an empty text."""
    if isinstance(data, (list, tuple)):
        data = "".join(part for part in data if isinstance(part, str))
    if not isinstance(data, str) or kind not in _SIGNATURES:
        return ""
    clean = "".join(data.split())
    if not _BASE64.fullmatch(clean):
        return ""
    try:
        begin = base64.b64decode(clean[:16], validate=True)
    except (binascii.Error, ValueError):
        return ""
    return clean if begin.startswith(_SIGNATURES[kind]) else ""
