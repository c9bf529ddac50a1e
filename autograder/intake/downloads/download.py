"""Read a download once: its files, the owners of a chapter's submissions, and files without an owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from autograder.course.folder import Course
from autograder.course.known_names import known_assignments
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.intake.downloads.archive import Entry, RefusedError, escape_unprintable, is_notebook, list_entries
from autograder.intake.downloads.platform_names import find_login
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.downloads.uploads import Layout, UnownedFile, Upload
from autograder.intake.notebook.intake import identify_chapter
from autograder.intake.notebook.manifest import Manifest, released_manifest
from autograder.intake.notebook.notebook_reader import UnreadableError, read_notebook
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import Student, fold_name, known_students, read_roster, safe_id

# So many names show that a layout is unknown; fewer may be strangers, one by one.
_FEW = 3
_METADATA = "submission_metadata.yml"


@dataclass(frozen=True)
class Download:
    """The files of a download as one chapter's submissions; contents are read on demand."""

    source: Path  # the folder or archive
    manifest: Manifest  # the chapter's cells
    entries: Sequence[Entry]  # all files
    uploads: Sequence[Upload]  # the chapter's notebooks
    files: Sequence[Upload]  # other files of students who have no notebook here
    companions: Sequence[Upload]  # other files of students who have one
    unowned: Sequence[UnownedFile]  # files of which it cannot be told whose they are
    elsewhere: Sequence[tuple[Entry, str]]  # notebooks of another chapter by their names, and that chapter
    problems: Sequence[Problem]  # what was refused or is left out

    def refuse_other_work(self, course: Course) -> None:
        """Refuse a download in which no submission belongs to the chapter, before it replaces existing ones.

        One notebook of another chapter among many is its student's mistake, and gets its verdict; nothing but such notebooks is the
        lecturer's.

        Raises:
            CourseError: if it holds no notebook, or only notebooks without an owner or of other chapters, or its layout is unknown.
        """
        if not any(map(is_notebook, self.entries)):
            message = f"there is no notebook (.ipynb) among its {len(self.entries)} files"
            do = "Name the folder or zip that your platform hands out, or one with a notebook per student."
            raise CourseError(message, where=self.source, do=do)
        unowned = [file for file in self.unowned if is_notebook(file.entry)]
        if unowned and not self.uploads:
            message = f"it cannot be told whose {'notebook this is' if len(unowned) == 1 else 'notebooks these are'}"
            raise CourseError(message, where=self.source, do=unowned[0].do)
        if not self.uploads:
            self._refuse_other_chapters(course, len(self.elsewhere), {chapter for _, chapter in self.elsewhere})
        self._refuse_unknown_layout(course)
        others: set[str] = set()
        for upload in self.uploads:
            chapter = _read_chapter(upload, self.manifest)
            if chapter in (self.manifest.chapter, None):
                return
            others.add(str(chapter))
        self._refuse_other_chapters(course, len(self.uploads), others)

    def _refuse_other_chapters(self, course: Course, count: int, others: set[str]) -> None:
        chapter, other = self.manifest.chapter, min(others)
        message = (
            f"the one notebook in it is not of {chapter} but of {other}"
            if count == 1
            else f"none of the {count} notebooks in it is of {chapter}; they are of {' and '.join(sorted(others))}"
        )
        do = f"Name the submissions of {chapter}, or grade the other chapter: {shell_command(course, 'autograde', other)}"
        raise CourseError(message, where=self.source, do=do)

    def _refuse_unknown_layout(self, course: Course) -> None:
        """Refuse a download without any name of the class list, because its layout was misread."""
        roster, uploads = read_roster(course), self.uploads
        listed = {student.id for student in roster.values() if student.enrolled}
        if not listed or len(uploads) < _FEW or any(upload.platform in ("canvas", "moodle") for upload in uploads):
            return
        owned, _ = assign_students(uploads, roster, self.manifest.chapter)
        if len(owned) < _FEW or owned.keys() & listed:
            return
        examples = ", ".join(repr(escape_unprintable(upload.owner)) for upload in uploads[:_FEW])
        raise CourseError(
            f"the layout of this download is not known: nobody of {examples} … is on the class list",
            where=self.source,
            do="Known are the downloads of Canvas, Moodle, Blackboard, Brightspace, Gradescope, ILIAS and Sakai, nbgrader's folders, and a "
            "folder or file for each student that is called by id, name, number, login or email address. Nothing was brought in.",
        )


def read_download(course: Course, chapter: str, source: Path) -> Download:
    """Read a download as one chapter's submissions, as :func:`read_downloads` does."""
    return read_downloads(course, [chapter], source)[0]


def read_downloads(course: Course, chapters: Sequence[str], source: Path) -> list[Download]:
    """Read a download as the submissions of several chapters, in their order.

    Args:
        source: a zip archive or a folder: nbgrader's layout, a platform's download, one folder per student, or a flat folder of notebooks.

    Raises:
        CourseError: if a chapter is not released, or the source is missing or unreadable.
    """
    manifests = [released_manifest(course, chapter) for chapter in chapters]
    entries, problems = list_entries(source)
    entries = rename_to_submitters(entries, read_roster(course))
    return [_build_download(course, manifest, source, entries, problems) for manifest in manifests]


def _build_download(
    course: Course, manifest: Manifest, source: Path, entries: Sequence[Entry], refused: Sequence[Problem]
) -> Download:
    """Assign an owner to every file; only notebooks determine the layout."""
    chapter, students = manifest.chapter, known_students(course)
    # A notebook or folder that is called like another chapter is no student's, also where that is not released yet.
    others = other_chapters(course, manifest)
    layout = Layout.from_entries([entry for entry in entries if is_notebook(entry)], chapter, others, students)
    file_layout = layout
    if layout.level is None and layout.platform is None:
        # One student's notebooks alone do not show at which level students are named.
        below = [entry for entry in entries if len(entry.path.parts) > 1]
        file_layout = replace(Layout.from_entries(below, chapter, others, students), doubtful=frozenset())
    listed = (student for student in read_roster(course).values() if student.enrolled)
    logins = {student.login.casefold(): student.login for student in listed if student.login}
    uploads: list[Upload] = []
    files: list[Upload] = []
    unowned: list[UnownedFile] = []
    elsewhere: list[tuple[Entry, str]] = []
    for entry in entries:
        notebook = is_notebook(entry)
        file = (layout if notebook else file_layout).find_owner(entry)
        if isinstance(file, UnownedFile):
            unowned.append(file)
        elif not (file and file.platform) and (other := layout.find_other_chapter(entry)):
            elsewhere += [(entry, other)] * notebook
        elif file is None:
            unowned += [UnownedFile(entry)] * notebook
        elif notebook or not entry.path.name.startswith("."):
            if login := find_login(file.owner, logins) if file.platform in ("", "nbgrader") else "":
                file = replace(file, owner=login)
            (uploads if notebook else files).append(file)
    plain, nbgraders = (sum(upload.platform == name for upload in uploads) for name in ("", "nbgrader"))
    if plain > nbgraders:
        # The layout is not nbgrader's: who has made a folder of the chapter's name for it has written the time into it as well.
        uploads = [replace(one, platform="", folder=None) if one.platform == "nbgrader" else one for one in uploads]
    owners = set(map(_person_key, uploads))
    strays = [(entry, other, layout.find_owner(entry, other)) for entry, other in elsewhere]
    absent = [
        Problem(
            "other chapter",
            f"By its name it is of {other}, and there is nothing of {file.owner} for {chapter}.",
            str(entry.path),
            f"Rename it if it is of {chapter} after all.",
        )
        for entry, other, file in strays
        if isinstance(file, Upload) and _person_key(file) not in owners
    ]
    ownerless = [Problem("unknown owner", file.why, str(file.entry.path), file.do) for file in unowned]
    with_notebook = owners | {_person_key(file) for _, _, file in strays if isinstance(file, Upload)}
    return Download(
        source,
        manifest,
        entries,
        uploads,
        [file for file in files if _person_key(file) not in with_notebook],
        [file for file in files if _person_key(file) in with_notebook],
        unowned,
        elsewhere,
        [*refused, *absent, *ownerless],
    )


def _person_key(upload: Upload) -> tuple[str, str]:
    """Return the key that one student's files share: in blind marking all students have the same name."""
    return safe_id(upload.owner), upload.upload if upload.platform in ("moodle", "brightspace") else upload.user


def other_chapters(course: Course, manifest: Manifest) -> frozenset[str]:
    """Return the names of the course's other chapters, released or not."""
    return frozenset([*manifest.elsewhere, *known_assignments(course.root)]) - {manifest.chapter}


def _read_chapter(upload: Upload, manifest: Manifest) -> str | None:
    """Return the chapter that a notebook's contents belong to; None if that is unclear or it is unreadable."""
    try:
        notebook, _ = read_notebook(upload.entry.open())
    except (RefusedError, UnreadableError):
        return None
    return identify_chapter(notebook, manifest)


def rename_to_submitters(entries: Sequence[Entry], roster: Mapping[str, Student]) -> list[Entry]:
    """Return a download's files with Gradescope's folders ``submission_NUMBER`` renamed to their submitters.

    ``submission_metadata.yml`` names them. A folder of a group is given to each member: Gradescope has one submission for all of them. Only
    the outermost metadata file is read, and only for the folders beside it, because a student may hand in another one.

    Raises:
        CourseError: if the metadata cannot be read: without it, no file has an owner.
    """
    named = (entry for entry in entries if entry.path.name == _METADATA)
    metadata = min(named, key=lambda entry: len(entry.path.parts), default=None)
    if metadata is None or len(metadata.path.parts) > 2:
        return list(entries)
    described = _read_submitters(metadata)
    people = roster.values()
    keys = {text.casefold() for one in people for text in (one.id, one.number, one.login, one.email) if text}
    keys |= {fold_name(one.name) for one in people if one.name}
    root = metadata.path.parent
    return [new for entry in entries if entry is not metadata for new in _rename_entry(entry, root, described, keys)]


def _read_submitters(metadata: Entry) -> Mapping[str, Any]:
    # PyYAML takes a tenth of a second, which other downloads need not wait for.
    import yaml

    try:
        described = yaml.load(metadata.open(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (RefusedError, yaml.YAMLError, UnicodeDecodeError) as error:
        message = f"Gradescope's list of submitters cannot be read ({str(error).splitlines()[0]})"
        raise CourseError(message, where=str(metadata.path), do="Export the submissions once more.") from error
    return described if isinstance(described, dict) else {}


def _rename_entry(entry: Entry, root: PurePosixPath, described: Mapping[str, Any], keys: set[str]) -> Iterator[Entry]:
    inside = entry.path.relative_to(root) if root.parts and entry.path.is_relative_to(root) else entry.path
    description = described.get(inside.parts[0]) if len(inside.parts) > 1 else None
    if not isinstance(description, dict):
        yield entry
        return
    time = description.get(":created_at", "")
    submitted = time.isoformat() if isinstance(time, datetime | date) else str(time)
    for submitter in description.get(":submitters") or ():
        if owner := _submitter_folder(submitter, keys):
            yield replace(entry, path=PurePosixPath(owner, *inside.parts[1:]), submitted=submitted)


def _submitter_folder(submitter: Any, keys: set[str]) -> str:
    """Return a folder name for a submitter: the class-list id, otherwise the number, email address or name."""
    if not isinstance(submitter, dict):
        return ""
    texts = [str(submitter.get(field) or "").strip() for field in (":sid", ":email", ":name")]
    texts = [text.replace("/", "-") for text in texts if text]
    return next((text for text in texts if {text.casefold(), fold_name(text)} & keys), texts[0] if texts else "")
