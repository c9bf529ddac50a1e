"""Read Gradescope's export: folders ``submission_NUMBER``, and their owners in ``submission_metadata.yml``.

Each folder is renamed to the submitter, as the class list has them: by number, then by email address, then by name. A group's folder is
given to each of its members, because Gradescope has one submission for all of them.

Protects against:

- a metadata file that a student hands in: only the outermost one of the download is read, and only for the folders beside it;
- YAML that builds objects: only plain data is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any

from autograder.errors import CourseError
from autograder.intake.downloads.archive import Entry, RefusedError
from autograder.intake.roster import Student, folded_name

METADATA = "submission_metadata.yml"


def with_submitters(entries: Sequence[Entry], roster: Mapping[str, Student]) -> list[Entry]:
    """Return the files of a download with Gradescope's numbered folders renamed to their submitters; other downloads as they are.

    Raises:
        CourseError: if the metadata cannot be read: without it, no file has an owner.
    """
    metadata = min(
        (entry for entry in entries if entry.path.name == METADATA),
        key=lambda entry: len(entry.path.parts),
        default=None,
    )
    if metadata is None or len(metadata.path.parts) > 2:
        return list(entries)
    described = _read(metadata)
    keys = {key for student in roster.values() for key in _searchable_identifiers(student)}
    root = metadata.path.parent
    return [new for entry in entries if entry is not metadata for new in _renamed(entry, root, described, keys)]


def _read(metadata: Entry) -> Mapping[str, Any]:
    # PyYAML takes a tenth of a second, which other downloads need not wait for.
    import yaml

    try:
        described = yaml.load(metadata.open(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (RefusedError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise CourseError(
            f"Gradescope's list of submitters cannot be read ({str(error).splitlines()[0]})",
            where=str(metadata.path),
            do="Export the submissions once more.",
        ) from error
    return described if isinstance(described, dict) else {}


def _renamed(entry: Entry, root: PurePosixPath, described: Mapping[str, Any], keys: set[str]) -> Iterator[Entry]:
    inside = entry.path.relative_to(root) if root.parts and entry.path.is_relative_to(root) else entry.path
    description = described.get(inside.parts[0]) if len(inside.parts) > 1 else None
    if not isinstance(description, dict):
        yield entry
        return
    time = description.get(":created_at", "")
    submitted = time.isoformat() if isinstance(time, datetime | date) else str(time)
    for submitter in description.get(":submitters") or ():
        if owner := _owner(submitter, keys):
            yield replace(entry, path=PurePosixPath(owner, *inside.parts[1:]), submitted=submitted)


def _owner(submitter: Any, keys: set[str]) -> str:
    """Return a submitter's id on the class list, otherwise the number, email address or name, as a folder name without slashes."""
    if not isinstance(submitter, dict):
        return ""
    texts = [str(submitter.get(field) or "").strip() for field in (":sid", ":email", ":name")]
    texts = [text.replace("/", "-") for text in texts if text]
    return next((text for text in texts if {text.casefold(), folded_name(text)} & keys), texts[0] if texts else "")


def _searchable_identifiers(student: Student) -> Iterator[str]:
    yield from (text.casefold() for text in (student.id, student.number, student.login, student.email) if text)
    if student.name:
        yield folded_name(student.name)
