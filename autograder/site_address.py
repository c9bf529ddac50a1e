"""Read the address of the published site from ``html: baseurl:`` in ``_config.yml``.

With an address, references to lesson sections in notebooks and on feedback pages are links; otherwise they are plain text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from autograder.errors import CourseError

PROJECT = Path(__file__).parents[1]
_CONFIG = "_config.yml"
_PLAIN = re.compile(r"[A-Za-z0-9._~:/%\[\]-]+")


def site_address(root: Path | None = None) -> str:
    """Return the address of the course's site with a final slash, or an empty string.

    Args:
        root: the course's root folder; by default the project that this package is installed from, if it is.

    Raises:
        CourseError: if the address is none of a folder on the web (``http://`` or ``https://``, a host, a path).
    """
    config = (root or PROJECT) / _CONFIG
    return _read_address(config, config.stat().st_mtime_ns) if config.is_file() else ""


@lru_cache(maxsize=4)
def _read_address(config: Path, changed: int) -> str:
    """Return the address in a configuration file.

    ``changed``, its modification time, makes the cache notice changes.
    """
    import yaml  # here, because a grader that finds no address to ask for has no use for it

    settings = yaml.safe_load(config.read_text(encoding="utf-8")) or {}
    address = (settings.get("html") or {}).get("baseurl") or ""
    if not address:
        return ""
    if not _is_web_folder(address):
        raise CourseError(
            f"html: baseurl: is {address!r}, which is not the address of a site",
            where=config,
            do="Write the address of the published site's folder, such as https://example.org/course/, or nothing.",
        )
    return str(address).rstrip("/") + "/"


def _is_web_folder(address: object) -> bool:
    """Return whether an address may stand in a student's page: http(s), with a host and only plain characters."""
    if not isinstance(address, str) or not _PLAIN.fullmatch(address):
        return False
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
