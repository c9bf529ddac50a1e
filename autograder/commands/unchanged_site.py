"""Recognise an up-to-date site: its inputs and its pages are unchanged.

The stamp is in the site's cache and can be deleted at any time; then the site is built again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.content_hash import environment_hash, hash_files, hash_tree, project_files
from autograder.site.build import SiteReport

_STAMP = Path(".cache", "site", "published.json")


def site_key(root: Path, output: Path, options: Sequence[str]) -> str:
    """Hash all inputs of the site.

    Args:
        output: the folder of the site, which may be in the project and is no input.
        options: the options of the command.
    """
    inputs = (path for path in project_files(root) if not path.is_relative_to(output))
    return "\n".join([hash_files(root, inputs), environment_hash(), *options])


def unchanged_site(root: Path, output: Path, key: str) -> SiteReport | None:
    """Return the report of the site in a folder if it was built with this key and is unchanged since."""
    try:
        stamp = json.loads((root / _STAMP).read_text(encoding="utf-8"))
        if stamp["key"] != key or stamp["output"] != str(output) or stamp["tree"] != hash_tree(output):
            return None
        report = stamp["report"]
        return SiteReport(output, tuple(report["pages"]), report["seconds"], report["runtimes"], report["words"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember_site(root: Path, report: SiteReport, key: str) -> None:
    """Store the key of a site, after every check of it has passed."""
    contents = {name: value for name, value in asdict(report).items() if name != "output"}
    stamp = {"key": key, "output": str(report.output), "tree": hash_tree(report.output), "report": contents}
    (root / _STAMP).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(root / _STAMP, json.dumps(stamp).encode())
