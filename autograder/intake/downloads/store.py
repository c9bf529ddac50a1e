"""Store submissions in the course folder, and keep earlier versions."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from autograder.atomic_files import staged_file
from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.intake.downloads.archive import Entry, RefusedError
from autograder.intake.downloads.choices import other_notebooks
from autograder.intake.downloads.journal import (
    Choice,
    IntakeJournal,
    PendingSubmission,
    hash_content,
    late_problem,
    read_content,
)
from autograder.intake.downloads.uploads import Upload
from autograder.intake.notebook.attached_files import (
    KIND,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_FILES,
    is_skipped,
    list_companion_paths,
)
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import Student, hand_in_groups, read_roster, roster_path, write_roster

# Canvas counts a file that was handed in again: helpers-1.py.
_AGAIN = re.compile(r"-(\d{1,3})(?=\.[^.]+$)")


@dataclass
class Collection:
    """The result of collecting a chapter's submissions."""

    chapter: str
    new: list[str] = field(default_factory=list)  # students whose submission was not there before
    replaced: list[str] = field(default_factory=list)  # students whose submission was there and is now another
    unchanged: list[str] = field(default_factory=list)  # students whose submission was there already
    # what went otherwise than it should, or should be known; ``where`` names the file
    problems: list[Problem] = field(default_factory=list)
    # what this collection or an earlier one was to bring, and what has not come yet
    missing: list[PendingSubmission] = field(default_factory=list)

    @property
    def students(self) -> list[str]:
        """All students with a submission in this collection."""
        return sorted({*self.new, *self.replaced, *self.unchanged})


@dataclass(frozen=True)
class ChosenUploads:
    """The uploads to store for one student."""

    student: str
    # the upload that counts, or all uploads from which the lecturer has to choose, keyed by the new file name. Contents are read again when
    # needed, because a whole class could fill the memory.
    uploads: Mapping[str, Upload]
    digests: Mapping[str, str]  # hashes of the notebooks, keyed by the same names
    stamp: bytes | None  # the submission time, or None if it is unknown
    # gradable uploads that do not count, keyed by the new file name
    uncounted: Mapping[str, Upload] = field(default_factory=dict)
    # accompanying files, keyed by their path relative to the notebook
    companions: Mapping[str, Upload] = field(default_factory=dict)

    @property
    def upload(self) -> Upload:
        """The upload that counts; the last of several."""
        return list(self.uploads.values())[-1]


def disk_error_advice(error: OSError, otherwise: str) -> str:
    """Return the advice for a file-system error: free disk space, or the given remedy."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "Make room on the disk, then collect again." if full else otherwise


def submitted_notebook(course: Course, chapter: str, student: str) -> Path:
    """Return the path of a student's notebook of a chapter in the course folder."""
    return course.folder("submitted", student, chapter) / f"{chapter}.ipynb"


def remove_drafts(course: Course, chapter: str) -> None:
    """Remove partial files that a killed collection left."""
    for folder in course.folder("submitted").glob("*/"):
        if not folder.is_symlink():
            for draft in folder.glob(f"{glob.escape(chapter)}.*.part"):
                with suppress(OSError):
                    draft.unlink()


def store_submission(
    course: Course, chapter: str, item: ChosenUploads, collection: Collection, journal: IntakeJournal
) -> None:
    """Store a student's submission: the counted notebook, or all notebooks among which the lecturer chooses."""
    student, where = item.student, str(item.upload.entry.path)
    path = submitted_notebook(course, chapter, student)
    if path.parent.resolve() != course.folder("submitted").resolve() / student / chapter:
        raise OSError(f"submitted/{student}/{chapter} is a link that leads elsewhere")
    if path.is_dir() and not path.is_symlink():
        raise OSError(f"submitted/{student}/{chapter}/{path.name} is a folder")
    files = {name: upload.entry.open() for name, upload in item.uploads.items()}
    companions, problems = _read_files(item.companions, where)
    collection.problems += problems
    same = (
        read_content(path) == files[path.name] if path.name in files else other_notebooks(path.parent, chapter) == files
    )
    same = same and all(read_content(path.parent / name) == data for name, data in companions.items())
    when = path.with_name("timestamp.txt")
    late = item.stamp is None and any(upload.late for upload in item.uploads.values())
    if late := late and not (same and when.exists()):
        collection.problems.append(replace(late_problem(path.parent), where=where))
    if same:
        if item.stamp is not None:
            write_file(when, item.stamp)
        collection.unchanged.append(student)
    elif archived := write_submission(
        course, chapter, student, files, item.stamp, companions, journal.choices.get(student)
    ):
        collection.replaced.append(student)
        collection.problems.append(
            Problem("replaced", f"It replaces an earlier submission, which is kept in {archived}.", where)
        )
    else:
        collection.new.append(student)
    journal.late.pop(student, None)
    if late:
        journal.late[student] = [*item.digests.values()]


def write_submission(
    course: Course,
    chapter: str,
    student: str,
    files: Mapping[str, bytes],
    stamp: bytes | None,
    companions: Mapping[str, bytes] = MappingProxyType({}),
    choice: Choice | None = None,
) -> str:
    """Write a submission; return the path of the archived earlier submission, or an empty string.

    Args:
        stamp: the submission time, if it is known.
        companions: files that are stored with the notebook, and archived with the earlier one.
        choice: what a person has chosen among the notebooks that are there.

    If this is interrupted, the course folder contains either the earlier or the new submission, and collecting again gives the same final
    state. The order ensures this. All new files are on the disk before anything is changed, and old files are archived before they are
    removed. The time stamp is written first, so that no new notebook has an old time.
    """
    path, archived = submitted_notebook(course, chapter, student), ""
    when = path.with_name("timestamp.txt")
    with ExitStack() as drafts:
        # The notebooks come last: a submission that is cut short has no new notebook.
        contents = {**companions, **files}
        new = {name: drafts.enter_context(_staged_file(path.parent, name, data)) for name, data in contents.items()}
        time = None if stamp is None else drafts.enter_context(_staged_file(path.parent, when.name, stamp))
        archive = course.root / "replaced" / chapter / student
        if os.path.lexists(path):
            target = archive / hash_content(read_content(path) or b"")[:12]
            # A collection that was cut short may have kept the notebook, and put the new time beside it.
            if not (os.path.lexists(target / path.name) and read_content(when) == stamp):
                _archive_files(path.parent, target, (when.name, *_companion_names(path.parent), path.name))
            archived = target.relative_to(course.root).as_posix()
        old = _leftover_files(path, choice)
        if old:
            target = (
                archive / hash_content("".join(hash_content(read_content(file) or b"") for file in old).encode())[:12]
            )
            _archive_files(path.parent, target, (file.name for file in old))
            archived = target.relative_to(course.root).as_posix()
        path.parent.mkdir(exist_ok=True)
        if time is not None:
            time.replace(when)
        elif archived:
            when.unlink(missing_ok=True)
        if archived:
            _remove_companions(path.parent)
        for name, draft in new.items():
            _move_into(path.parent, name, draft)
        for file in [*old, path]:
            if file.name not in files:
                file.unlink(missing_ok=True)
    return archived


def _leftover_files(path: Path, choice: Choice | None) -> list[Path]:
    """Return the files of an earlier submission without a counted notebook, which are not part of the next one."""
    if not path.parent.is_dir() or (os.path.lexists(path) and choice is None):
        return []
    reserved = {path.name, "timestamp.txt"}
    return [file for file in sorted(path.parent.iterdir()) if file.name not in reserved and not file.is_dir()]


def time_stamp(upload: Upload, entries: Sequence[Entry]) -> bytes | None:
    """Return a submission's time: from nbgrader's ``timestamp.txt``, or from the platform.

    nbgrader writes into the submission's own folder. A stamp further down, or in an archive, is somebody else's.
    """
    for entry in entries:
        if upload.folder is not None and entry.path == upload.folder / "timestamp.txt":
            return entry.open()[:200].decode("utf-8", "replace").strip().encode() or None
    return (upload.submitted or upload.entry.submitted).encode() or None


def _archive_files(folder: Path, target: Path, names: Iterable[str]) -> None:
    """Archive files of an earlier submission before it is replaced."""
    for name in names:
        if os.path.lexists(folder / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            _link_or_copy(folder / name, target / name)


def _companion_names(folder: Path) -> list[str]:
    """Return the paths of a notebook's companion files, as grading finds them."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [name for name in list_companion_paths(folder, is_skipped)[0] if read_content(folder / name) is not None]


def _remove_companions(folder: Path) -> None:
    """Remove the companion files of a replaced notebook: the next one must not import its modules."""
    for name in _companion_names(folder):
        (folder / name).unlink(missing_ok=True)
        for parent in PurePosixPath(name).parents:
            with suppress(OSError):  # it holds other files
                if parent.name:
                    (folder / parent).rmdir()


def _move_into(folder: Path, name: str, draft: Path) -> None:
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.parent.resolve() != folder.resolve() / PurePosixPath(name).parent:
        raise OSError(f"{name} lies behind a link")
    draft.replace(target)


def _staged_file(folder: Path, name: str, data: bytes) -> AbstractContextManager[Path]:
    # Not in the folder: all that lies beside a notebook is handed in with it, also what a killed collection has left.
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return staged_file(folder / name, data, at=folder.with_name(f"{folder.name}.{digest}.part"))


def _link_or_copy(old: Path, target: Path) -> None:
    """Create a hard link to a file or, if that fails, a copy."""
    target.unlink(missing_ok=True)
    try:
        os.link(old, target, follow_symlinks=False)
    except OSError:
        data = read_content(old)
        if data is None:
            raise
        write_file(target, data)


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically: to a draft first, which is then moved."""
    with _staged_file(path.parent, path.name, data) as draft:
        draft.replace(path)


def update_roster(course: Course, chapter: str, roster: Mapping[str, Student]) -> list[Problem]:
    """Write the roster and the chapter's groups if they have changed; return problems if that failed.

    In a chapter in which groups hand in, students keep the group that they have at the first collection.
    """
    groups = hand_in_groups(roster, chapter) if read_course_file(course.root).chapter(chapter).groups else {}
    with_groups = {
        name: replace(student, teams={**student.teams, chapter: groups[name]})
        if student.enrolled and groups.get(name) and chapter not in student.teams
        else student
        for name, student in roster.items()
    }
    try:
        if with_groups != read_roster(course):
            write_roster(course, with_groups)
    except OSError as error:
        message = f"Names, numbers and groups are not kept: the list of students could not be written ({error.strerror or error})."
        do = disk_error_advice(error, "Make sure that the course folder is writable, then collect again.")
        return [Problem("list not written", message, roster_path(course).name, do)]
    return []


def select_companions(notebook: Upload, files: Sequence[Upload]) -> dict[str, Upload]:
    """Select the student's files that accompany the counted notebook, by their path relative to it."""
    companions: dict[str, Upload] = {}
    for file in sorted(files, key=lambda upload: upload.order):
        name = _companion_path(notebook, file)
        if name and not any(_is_excluded(part) for part in PurePosixPath(name).parts):
            companions[name] = file
    return companions


def _read_files(companions: Mapping[str, Upload], where: str) -> tuple[dict[str, bytes], list[Problem]]:
    """Read files within the limits on number, depth and size; return their contents and problems for files left out."""
    contents: dict[str, bytes] = {}
    why: list[str] = []
    remaining = MAX_BYTES
    for name, file in companions.items():
        if len(contents) == MAX_FILES:
            why.append(f"More than {MAX_FILES} files lie beside the notebook; the first {MAX_FILES} came along.")
            break
        if len(PurePosixPath(name).parts) > MAX_DEPTH:
            why.append(f"{name} lies in more than {MAX_DEPTH} folders within each other.")
            continue
        try:
            data = file.entry.open()
        except RefusedError as error:
            why.append(f"{name}: {error}")
            continue
        if len(data) > remaining:
            why.append(f"{name} is left out: the files beside the notebook have more than {MAX_BYTES // 1024**2} MB.")
            continue
        remaining -= len(data)
        contents[name] = data
    return contents, [Problem(KIND, reason, where, "Ask for it, and put it beside the notebook.") for reason in why]


def _companion_path(notebook: Upload, file: Upload) -> str:
    """Return a file's path relative to the notebook's folder; empty if it is elsewhere."""
    folder, path = notebook.entry.path.parent, file.entry.path
    level, called = file.named or (-1, "")
    if level == len(path.parts) - 1:
        # All files of a class lie in one folder, under names that the platform has made.
        return _AGAIN.sub("", called) if path.parent == folder else ""
    if not path.is_relative_to(folder) or (notebook.named and notebook.named[0] == len(notebook.entry.path.parts) - 1):
        return ""
    return path.relative_to(folder).as_posix()


def _is_excluded(part: str) -> bool:
    return is_skipped(part) or part.startswith(".") or part.lower().endswith((".zip", ".ipynb.json", ".ipynb.txt"))
