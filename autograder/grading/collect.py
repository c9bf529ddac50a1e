"""Bringing submissions into the course folder, as ``submitted/STUDENT/CHAPTER/CHAPTER.ipynb``."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.course import Course
from autograder.grading.entries import Entry, RefusedError, entries_of, notebooks
from autograder.grading.intake import take_in
from autograder.grading.manifest import Manifest, released_manifest
from autograder.grading.problem import Problem
from autograder.grading.reading import UnreadableError, read_file
from autograder.grading.roster import Student, is_safe, merged, read_roster, safe_id, write_roster
from autograder.grading.uploads import Upload, owners_elsewhere, uploads_of, without_notebook


@dataclass
class Collection:
    """What was brought in.

    Attributes:
        chapter: the chapter.
        new: students whose submission was not there before.
        replaced: students whose submission was there and is now another.
        unchanged: students whose submission was there already.
        problems: what went otherwise than it should, or should be known; ``where`` names the file.
    """

    chapter: str
    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def students(self) -> list[str]:
        """Everybody who has a submission in this collection."""
        return sorted({*self.new, *self.replaced, *self.unchanged})


def collect(
    course: Course,
    chapter: str,
    submissions: Path | None = None,
    *,
    trust_dates: bool = False,
    chapters: Iterable[str] = (),
) -> Collection:
    """Bring submissions in.

    Args:
        course: the course, with the chapter released.
        chapter: the chapter.
        submissions: a zip archive or a folder: nbgrader's layout, a download of Canvas or of Moodle, one folder per student, or a flat
            folder of notebooks. By default the course's own ``submitted`` folder, in which nothing but a missing name is added.
        trust_dates: let the files' dates decide who is late. A platform's download usually carries the date of the download.
        chapters: names of chapters that the gradebook need not know: a notebook or folder that is called like one is no student.

    Returns:
        Who was brought in, and the problems; one bad file never keeps another out.

    Raises:
        CourseError: if the chapter is not released, or the source is not there or cannot be read at all.
    """
    manifest = released_manifest(course, chapter)
    if submissions is None or submissions.resolve() == course.folder("submitted"):
        return _in_place(course, manifest)
    entries, problems = entries_of(submissions)
    found = Collection(chapter, problems=problems)
    others = frozenset([*manifest.elsewhere, *chapters]) - {chapter}
    uploads, unknown, elsewhere = uploads_of(list(notebooks(entries)), chapter, others)
    found.problems += [
        Problem(
            "unknown owner",
            "It cannot be told whose notebook this is.",
            str(entry.path),
            "Name the file after the student.",
        )
        for entry in unknown
    ]
    found.problems += _without_notebook(entries, chapter)
    found.problems += _of_other_chapters(elsewhere, uploads, chapter, others)
    roster = read_roster(course)
    owned, same_names = _by_student(uploads, roster, chapter)
    found.problems += same_names
    students = []
    for student_id, mine in sorted(owned.items()):
        if chosen := _choose(mine, manifest, found):
            upload, data = chosen
            try:
                _place(course, manifest, student_id, upload, data, found, trust_dates, entries)
            except OSError as error:
                what = f"It could not be brought in ({error.strerror or error})."
                do = f"Look at submitted/{student_id}/{chapter}."
                found.problems.append(Problem("not brought in", what, str(upload.entry.path), do))
                continue
            students.append(_about(student_id, upload, chapter))
    write_roster(course, merged(roster, students))
    return found


def _in_place(course: Course, manifest: Manifest) -> Collection:
    chapter = manifest.chapter
    found = Collection(chapter)
    for folder in sorted(course.folder("submitted").glob(f"*/{chapter}")):
        student = folder.parent.name
        where = f"submitted/{student}/{chapter}"
        if not is_safe(student):
            do = "Use letters, digits, dots, hyphens and underscores."
            found.problems.append(Problem("unsafe name", "nbgrader cannot use this student id.", where, do))
        elif problem := _named(folder, chapter, where):
            found.problems.append(problem)
            if not problem.fatal:
                found.unchanged.append(student)
        else:
            found.unchanged.append(student)
    return found


def _named(folder: Path, chapter: str, where: str) -> Problem | None:
    """See to it that a student's folder holds a notebook of the chapter's name; say what is wrong if that cannot be."""
    path = folder / f"{chapter}.ipynb"
    try:
        if folder.is_symlink() or folder.parent.is_symlink():
            read_file(path, above=2)
        if os.path.lexists(path):
            read_file(path, above=2)
            return None
        candidates = sorted(other for other in folder.iterdir() if other.name.lower().endswith(".ipynb"))
        if not candidates:
            return Problem("no notebook", "No notebook is here.", where, "Ask for the .ipynb file.", fatal=True)
        if len(candidates) != 1:
            what = f"{len(candidates)} notebooks are here, and none is called {chapter}.ipynb."
            return Problem("no notebook", what, where, "Rename the one that counts.", fatal=True)
        _write(path, read_file(candidates[0], above=2))
    except UnreadableError as error:
        do = "Ask for the notebook once more, and put it there as a file."
        return replace(error.problem, where=where, do=do)
    except OSError as error:
        return Problem("file refused", f"The folder cannot be used ({error.strerror}).", where, fatal=True)
    return Problem("renamed", f"{candidates[0].name} was copied to {chapter}.ipynb.", where)


def _without_notebook(entries: Sequence[Entry], chapter: str) -> list[Problem]:
    """Name the students of a download who handed in something, but no notebook."""
    return [
        Problem(
            "no notebook",
            f"{owner} handed in {len(files)} file(s), and no notebook.",
            str(files[0].path),
            "Ask for the .ipynb file.",
        )
        for owner, files in sorted(without_notebook(entries, chapter).items())
    ]


def _of_other_chapters(
    elsewhere: Iterable[Entry], uploads: Iterable[Upload], mine: str, others: frozenset[str]
) -> list[Problem]:
    """Name the notebooks of students who have nothing here but another chapter's, going by the names of their files."""
    have = {safe_id(upload.owner) for upload in uploads}
    return [
        Problem(
            "other chapter",
            f"By its name it is of {chapter}, and there is nothing of {owner} for {mine}.",
            str(entry.path),
            f"Rename it if it is of {mine} after all.",
        )
        for entry, owner, chapter in owners_elsewhere(elsewhere, others)
        if safe_id(owner) not in have
    ]


def _by_student(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[dict[str, list[Upload]], list[Problem]]:
    """Give every upload a student id: the same name gets the same id in every chapter, as far as the platform allows it."""
    problems = []
    canvas = {student.user: student.id for student in roster.values() if student.platform == "canvas" and student.user}
    namesakes: dict[str, set[str]] = defaultdict(set)
    for upload in uploads:
        if upload.platform == "moodle":
            namesakes[safe_id(upload.owner)].add(upload.upload)
    spelled = _spelled(uploads, roster)
    owned: dict[str, list[Upload]] = defaultdict(list)
    for upload in uploads:
        student = safe_id(upload.owner)
        if upload.platform == "canvas" and upload.user:
            student = canvas.get(upload.user) or f"{student or 'student'}-{upload.user}"
        elif upload.platform == "moodle":
            known = roster[student].uploads.get(chapter) if student in roster else None
            if len(namesakes[student]) > 1 or (known and known != upload.upload):
                what = f"More than one student is called {upload.owner}; Moodle's number tells them apart in this chapter only."
                problems.append(
                    Problem("same name", what, str(upload.entry.path), "Map the ids by hand in students.json.")
                )
                student = f"{student}-{upload.upload}"
        elif student:
            plain, student = student, spelled[_spelling(upload)]
            if student not in (plain, upload.owner):
                what = f"{upload.owner!r} would be {plain}, as another name here would; so it became {student}."
                do = "If both are one student's, remove the file that does not count and collect again."
                problems.append(Problem("same name", what, str(upload.entry.path), do))
        if is_safe(student):
            owned[student].append(upload)
        else:
            what = f"No student id can be made of {upload.owner!r}."
            problems.append(Problem("unknown owner", what, str(upload.entry.path), "Name the file after the student."))
    return owned, problems


def _spelling(upload: Upload) -> tuple[str, str]:
    """Return an owner as the files spell them, with the id that this would be by itself."""
    kept = upload.platform == "nbgrader" and is_safe(upload.owner)
    return (upload.owner if kept else safe_id(upload.owner), upload.owner)


def _spelled(uploads: Sequence[Upload], roster: Mapping[str, Student]) -> dict[tuple[str, str], str]:
    """Give every spelling of a name an id of its own.

    Names that differ in case, in accents or in how Unicode writes them may be two students; whoever names a file must not be able to
    replace another's.
    """
    known = {student.name: student.id for student in roster.values() if student.name and not student.platform}
    by_id: dict[str, set[str]] = defaultdict(set)
    for upload in uploads:
        if upload.platform != "moodle" and not upload.user:
            student, owner = _spelling(upload)
            by_id[student].add(owner)
    ids = {}
    for student, owners in by_id.items():
        # The id goes to who has always had it, else to who is spelled like it, else to the first.
        first = min(owners, key=lambda owner: (known.get(owner) != student, owner != student, owner))
        for owner in owners:
            marked = f"{student}-{hashlib.sha256(owner.encode('utf-8', 'replace')).hexdigest()[:6]}"
            ids[student, owner] = known.get(owner) or (student if owner == first else marked)
    return ids


def _choose(uploads: Sequence[Upload], manifest: Manifest, found: Collection) -> tuple[Upload, bytes] | None:
    """Return the last of a student's uploads, the last that can be graded if there is one."""
    readable: list[tuple[bool, Upload, bytes, Problem | None]] = []
    for upload in sorted(uploads, key=lambda upload: upload.order):
        where = str(upload.entry.path)
        try:
            data = upload.entry.open()
        except RefusedError as error:
            found.problems.append(Problem("file refused", str(error), where, "Ask for the notebook once more."))
            continue
        fatal = next((problem for problem in take_in(data, manifest).problems if problem.fatal), None)
        readable.append((fatal is None, upload, data, fatal))
    if not readable:
        return None
    best = max(range(len(readable)), key=lambda i: (readable[i][0], i))
    _, chosen, data, fatal = readable[best]
    if fatal is not None:
        found.problems.append(replace(fatal, where=str(chosen.entry.path)))
    for i, (_, upload, _, problem) in enumerate(readable):
        if i != best:
            why = f" ({problem.kind})" if problem else ""
            found.problems.append(
                Problem(
                    "not counted",
                    f"{chosen.entry.path.name} of the same student counts, this does not{why}.",
                    str(upload.entry.path),
                )
            )
    return chosen, data


def _place(
    course: Course,
    manifest: Manifest,
    student: str,
    upload: Upload,
    data: bytes,
    found: Collection,
    trust_dates: bool,
    entries: Sequence[Entry],
) -> None:
    chapter, where = manifest.chapter, str(upload.entry.path)
    folder = course.folder("submitted", student, chapter)
    if not folder.resolve().is_relative_to(course.folder("submitted").resolve()):
        raise OSError(f"submitted/{student}/{chapter} is a link that leads elsewhere")
    path = folder / f"{chapter}.ipynb"
    stamp = _time_stamp(upload, entries, trust_dates)
    if upload.late and stamp is None:
        what = "Canvas calls it late, but does not say by how much; nbgrader takes nothing off without a time."
        found.problems.append(Problem("late", what, where, f"Write the time into {path.parent / 'timestamp.txt'}."))
    if not os.path.lexists(path):
        found.new.append(student)
    elif _content(path) == data:
        found.unchanged.append(student)
    else:
        kept = _set_aside(course, chapter, student, path)
        found.replaced.append(student)
        found.problems.append(
            Problem("replaced", f"It replaces an earlier submission, which is kept in {kept}.", where)
        )
    _write(path, data)
    if stamp is not None:
        _write(path.with_name("timestamp.txt"), stamp.encode())


def _time_stamp(upload: Upload, entries: Sequence[Entry], trust_dates: bool) -> str | None:
    """Return when it was handed in: nbgrader's own word for it, or the file's date if that is to be trusted.

    nbgrader writes into the submission's own folder. A stamp further down, or in an archive, is somebody else's.
    """
    for entry in entries:
        if upload.folder is not None and entry.path == upload.folder / "timestamp.txt":
            return entry.open()[:200].decode("utf-8", "replace").strip() or None
    if trust_dates and upload.entry.date is not None:
        return upload.entry.date.strftime("%Y-%m-%d %H:%M:%S UTC")
    return None


def _set_aside(course: Course, chapter: str, student: str, path: Path) -> str:
    """Move an earlier submission out of the way, time stamp and all; return where it is now."""
    digest = hashlib.sha256(_content(path)).hexdigest()[:12]
    folder = course.root / "replaced" / chapter / student / digest
    folder.mkdir(parents=True, exist_ok=True)
    for old in (path, path.with_name("timestamp.txt")):
        if os.path.lexists(old):
            old.replace(folder / old.name)
    return folder.relative_to(course.root).as_posix()


def _content(path: Path) -> bytes:
    """Return what a file in the course holds; nothing if it is a link or no file."""
    try:
        return read_file(path)
    except UnreadableError:
        return b""


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    # Made anew: a link of that name would lead the bytes elsewhere.
    draft.unlink(missing_ok=True)
    with draft.open("xb") as file:
        file.write(data)
    draft.replace(path)


def _about(student: str, upload: Upload, chapter: str) -> Student:
    platform = upload.platform if upload.platform in ("canvas", "moodle") else ""
    name = upload.owner if upload.owner != student else ""
    return Student(student, name, platform, upload.user, {chapter: upload.upload} if upload.upload else {})
