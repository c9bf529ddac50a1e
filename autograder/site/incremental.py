"""Write only the pages of the site that have changed.

Sphinx reads and writes a changed page again. It does not detect that other pages show parts of it: titles in every sidebar, headings quoted
by exercises, equation numbers and citation labels. So all of these are hashed, and if the hash changes, every page is written again.

Files of an earlier build are kept only if the site has the same pages, settings and tools; otherwise the build empties the folder
(:func:`skeleton_key`). At the end it removes images that no page shows any more.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pybtex import plugin
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from autograder.content_hash import environment_hash, hash_files, project_files

_HASH = "tfcourse_shared_hash"
# What every page of the site is made with, whatever it says.
_MACHINERY = ("autograder", "book/_static", "_config.yml", "book/_toc.yml", "book/references.bib")
_PICTURES = "_images"


def skeleton_key(root: Path, downloads: Iterable[str], chapters: Iterable[str] = ()) -> str:
    """Return a key that changes when pages are added or removed, or when settings or tools change."""
    files = {path.relative_to(root).as_posix(): path for path in project_files(root)}
    machinery = [path for name, path in files.items() if name.startswith(_MACHINERY)]
    pages = sorted(name for name in files if name.startswith(("book/", "chapters/")))
    return "\n".join([hash_files(root, machinery), environment_hash(), *pages, *sorted(downloads), *chapters])


def pages_to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return the pages to write in addition to changed ones: all pages if shared content has changed."""
    now = _shared_hash(env)
    before, env.__dict__[_HASH] = getattr(env, _HASH, None), now
    return [] if before == now else sorted(env.found_docs)


def remove_unused_images(html: Path) -> None:
    """Delete the images that no page of a built site shows."""
    pages = "\n".join(path.read_text(encoding="utf-8") for path in html.rglob("*.html"))
    for picture in (html / _PICTURES).glob("*"):
        if picture.name not in pages:
            picture.unlink()


def cache_plugin_lookup() -> None:
    """Cache pybtex's plugin lookup, which otherwise searches all installed packages for every citation.

    It goes through every installed package for every citation; without this a third of the writing is spent there.
    """
    if not hasattr(plugin._load_entry_point, "cache_info"):
        plugin._load_entry_point = functools.cache(plugin._load_entry_point)


def _shared_hash(env: BuildEnvironment) -> str:
    data = env.domaindata
    cited: Any = data.get("cite", {}).get("citations", [])
    shared = [
        sorted((name, title.astext()) for name, title in env.titles.items()),
        sorted((name, list(pages)) for name, pages in env.toctree_includes.items()),
        sorted(map(repr, data["std"]["labels"].items())),
        sorted(map(repr, data["math"]["objects"].items())),
        sorted(map(repr, data["py"]["objects"].items())),
        sorted(str(citation.key) for citation in cited),
        sorted(map(repr, env.toc_fignumbers.items())),
        sorted(map(repr, env.toc_secnumbers.items())),
    ]
    return hashlib.sha256(repr(shared).encode()).hexdigest()
