"""Recognise an up-to-date site, whose inputs and pages are unchanged.

Its report is in the cache under the hash of both; if it is not there, the site is built again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from autograder.content_hash import environment_hash, hash_files, hash_tree, project_files
from autograder.course.artifact_cache import read_artifact, write_artifact
from autograder.site.build import SiteReport

_NAME = "site"


def site_key(root: Path, output: Path, options: Sequence[str]) -> list[str]:
    """Return the key of a site: the hashes of its inputs, and its options.

    Args:
        output: the folder of the site, which may be in the project and is no input.
        options: the options of the command.
    """
    inputs = (path for path in project_files(root) if not path.is_relative_to(output))
    return [hash_files(root, inputs), environment_hash(), str(output), *options]


def read_report(root: Path, output: Path, key: Sequence[str]) -> SiteReport | None:
    """Return the stored report of a site if its inputs and pages are unchanged, or None."""
    stored = read_artifact(root, _NAME, [*key, hash_tree(output)])
    with suppress(ValueError, TypeError):  # a damaged file
        return None if stored is None else SiteReport(**{**json.loads(stored), "output": output})
    return None


def store_report(root: Path, report: SiteReport, key: Sequence[str]) -> None:
    """Store the report of a site under its key and the hash of its pages."""
    contents = json.dumps({**asdict(report), "output": str(report.output)})
    write_artifact(root, _NAME, [*key, hash_tree(report.output)], contents.encode())
