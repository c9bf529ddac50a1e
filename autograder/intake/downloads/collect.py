"""Bringing submissions into the course folder, as ``submitted/STUDENT/CHAPTER/CHAPTER.ipynb``."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.course.folder import Course
from autograder.course.known_names import known_assignments
from autograder.course.paths import shell_command
from autograder.intake.downloads.archive import Entry, RefusedError, entries_of, notebooks
from autograder.intake.downloads.candidates import Candidate, examine, pick_candidate
from autograder.intake.downloads.choices import (
    MAX_NOTEBOOKS,
    Preference,
    Uncounted,
    apply_choice,
    keep_uncounted,
    other_notebooks,
    read_preference,
)
from autograder.intake.downloads.collection import Collection
from autograder.intake.downloads.course_folder.companion_files import files_beside
from autograder.intake.downloads.course_folder.late_notes import note_late
from autograder.intake.downloads.course_folder.unowned_files import note_unowned
from autograder.intake.downloads.gradescope import with_submitters
from autograder.intake.downloads.in_place import collect_in_place
from autograder.intake.downloads.left_out import draft_problem, other_chapter_problems
from autograder.intake.downloads.pending import KIND as NOT_BROUGHT_IN
from autograder.intake.downloads.pending import (
    PendingSubmission,
    clear_if_done,
    hash_of,
    planned_changes,
    record_pending,
)
from autograder.intake.downloads.pending import problems as problems_of_missing
from autograder.intake.downloads.store import (
    Chosen,
    remove_drafts,
    store_submission,
    submitted_notebook,
    time_stamp,
    what_to_do,
    write,
)
from autograder.intake.downloads.student_ids import by_student
from autograder.intake.downloads.teams import entries_of_teams, keep_roster, refuse_teams, teams_in
from autograder.intake.downloads.uploads import Upload, other_files, uploads_of
from autograder.intake.notebook.manifest import Manifest, released_manifest
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.timestamp import KIND as NO_TIME
from autograder.intake.roster import (
    Student,
    known_students,
    merged,
    read_roster,
)

NOT_COUNTED = "not counted"

# Who handed in no notebook may have handed in a whole project.
_COPIED = 20


def collect(
    course: Course,
    chapter: str,
    submissions: Path | None = None,
    *,
    trust_dates: bool = False,
) -> Collection:
    """Collect submissions into the course folder.

    Args:
        course: the course, with the chapter released.
        submissions: a zip archive or a folder: nbgrader's layout, a download of Canvas or of Moodle, one folder per student, or a flat
            folder of notebooks. By default the course's own ``submitted`` folder, in which only missing names are added.
        trust_dates: use the files' dates as submission times. In most platforms' downloads they are the date of the download.

    Returns:
        The collected students and the problems. A bad file never prevents the collection of another file.

    Raises:
        CourseError: if the chapter is not released, the source is missing or unreadable, or the list of pending submissions cannot be
            written. Nothing is collected then.
    """
    manifest = released_manifest(course, chapter)
    # A notebook or folder that is called like another chapter is no student's, also where that is not released yet.
    others = frozenset([*manifest.elsewhere, *known_assignments(course.root)]) - {chapter}
    remove_drafts(course, chapter)
    if submissions is None or submissions.resolve() == course.folder("submitted"):
        return collect_in_place(course, manifest, others)
    entries, problems = entries_of(submissions)
    roster = read_roster(course)
    entries = with_submitters(entries, roster)
    collection = Collection(chapter, problems=problems)
    uploads, unknown, elsewhere = uploads_of(list(notebooks(entries)), chapter, others, known_students(course))
    collection.problems += other_chapter_problems(elsewhere, uploads, chapter, others)
    files, with_notebook, unclear = other_files(entries, chapter, others, known_students(course))
    collection.problems += [
        Problem("unknown owner", file.why, str(file.entry.path), file.do) for file in (*unknown, *unclear)
    ]
    everybody, same_names = by_student([*uploads, *files], roster, chapter)
    # A file beside a notebook is its author's, and decides nothing about who that is.
    owners = {_owner_key(upload): student for student, all_uploads in everybody.items() for upload in all_uploads}
    companions: dict[str, list[Upload]] = defaultdict(list)
    for upload in with_notebook:
        if student := owners.get(_owner_key(upload)):
            companions[student].append(upload)
    meant = {id(upload) for upload in uploads}
    owned = {
        student: [upload for upload in student_uploads if id(upload) in meant]
        for student, student_uploads in everybody.items()
    }
    collection.problems += same_names
    teams = teams_in([*uploads, *files], roster, chapter)
    refuse_teams(course, chapter, teams)
    drafts = [student for student in everybody if student in roster and chapter in roster[student].drafts]
    collection.problems += [draft_problem(chapter, student, everybody.pop(student)[0]) for student in drafts]
    owned = {student: student_uploads for student, student_uploads in owned.items() if student in everybody}
    with_files = {student: everybody[student] for student, student_uploads in owned.items() if not student_uploads}
    students = _bring_files(course, chapter, with_files, collection)
    chosen = _chosen(course, owned, manifest, collection, entries, trust_dates)
    chosen = [replace(item, companions=files_beside(item.upload, companions[item.student])) for item in chosen]
    record_pending(course, chapter, [_awaited(course, chapter, submissions, item) for item in chosen])
    failed = set()
    for item in chosen:
        try:
            store_submission(course, chapter, item, collection)
            apply_choice(course, chapter, item.student)
            _keep(course, chapter, item, entries, trust_dates)
        except (OSError, RefusedError) as error:
            failed.add(item.student)
            collection.problems.append(_not_brought_in(course, chapter, item, error))
            continue
        students.append(_student_of(item.student, item.upload, chapter))
    students = [student for student in students if student.id not in teams]
    students += entries_of_teams(roster, chapter, teams)
    try:
        note_late(course, chapter, collection.late, collection.students)
        note_unowned(course, chapter, submissions, collection.problems)
    except OSError as error:
        message = f"Report and export will not name these problems: they could not be written down ({error.strerror or error})."
        do = what_to_do(error, "See to it that the course folder can be written, then collect again.")
        collection.problems.append(Problem("list not written", message, "journal", do))
    collection.missing = clear_if_done(course, chapter)
    collection.problems += problems_of_missing(
        course, chapter, [item for item in collection.missing if item.student not in failed]
    )
    collection.problems += keep_roster(course, chapter, merged(roster, students))
    return collection


def _owner_key(upload: Upload) -> tuple[str, str, str]:
    """Return what a student's uploads have in common; Canvas numbers each file, Moodle and Brightspace each student."""
    number = upload.upload if upload.platform in ("moodle", "brightspace") else upload.user
    return ("" if upload.platform == "nbgrader" else upload.platform, upload.owner, number)


def _chosen(
    course: Course,
    owned: Mapping[str, Sequence[Upload]],
    manifest: Manifest,
    collection: Collection,
    entries: Sequence[Entry],
    trust_dates: bool,
) -> list[Chosen]:
    """Return what is to be brought in of everybody; nothing is written yet."""
    chosen = []
    for student, student_uploads in sorted(owned.items()):
        first = len(collection.problems)
        reads, uncounted = _choose(
            student_uploads, manifest, collection, read_preference(course, manifest.chapter, student)
        )
        others = _named_apart(uncounted, manifest.chapter, alone=False)
        collection.problems[first:] = [
            _with_choice(one, course, student, others) for one in collection.problems[first:]
        ]
        if reads:
            upload = reads[-1].upload
            names = _named_apart(reads, manifest.chapter)
            try:
                stamp = time_stamp(upload, entries, trust_dates)
            except RefusedError as error:
                # The course keeps this text in the place of the time, so that every later run names it.
                stamp = f"damaged in the download ({error})".encode()
                message = f"The time cannot be read, so nothing is taken off for being late. {error}"
                do = f"Write it into {submitted_notebook(course, manifest.chapter, student).parent / 'timestamp.txt'}."
                collection.problems.append(Problem(NO_TIME, message, f"{upload.folder}/timestamp.txt", do))
            uploads = {name: read.upload for name, read in names.items()}
            digests = {name: hash_of(read.notebook.data) for name, read in names.items()}
            unused = {name: read.upload for name, read in others.items()}
            chosen.append(Chosen(student, uploads, digests, stamp, unused))
    return chosen


def _keep(course: Course, chapter: str, item: Chosen, entries: Sequence[Entry], trust_dates: bool) -> None:
    """Keep the notebooks that do not count, with their times, for a person who takes one of them."""
    uncounted = {
        name: Uncounted(upload.entry.open(), time_stamp(upload, entries, trust_dates))
        for name, upload in item.uncounted.items()
    }
    if uncounted or read_preference(course, chapter, item.student) is not None:
        keep_uncounted(course, chapter, item.student, uncounted)


def _with_choice(problem: Problem, course: Course, student: str, others: Mapping[str, _Read]) -> Problem:
    """Return a problem with the command that takes the notebook that does not count."""
    match = next(((name, read) for name, read in others.items() if read.where == problem.where), None)
    if problem.kind != NOT_COUNTED or match is None:
        return problem
    name, read = match
    return replace(
        problem, do=f"If this one should count: {shell_command(course, 'choose', student, read.chapter, name)}"
    )


def _awaited(course: Course, chapter: str, submissions: Path, item: Chosen) -> PendingSubmission:
    notebook_path = submitted_notebook(course, chapter, item.student)
    new = {**item.digests} | ({"timestamp.txt": hash_of(item.stamp)} if item.stamp is not None else {})
    files = planned_changes(notebook_path.parent, new)
    return PendingSubmission(item.student, str(submissions.resolve()), str(item.upload.entry.path), files)


def _not_brought_in(course: Course, chapter: str, item: Chosen, error: OSError | RefusedError) -> Problem:
    reason = getattr(error, "strerror", None) or error
    message = f"{item.student}: it could not be brought in ({reason})."
    if os.path.lexists(submitted_notebook(course, chapter, item.student)):
        message = f"{message[:-1]}; what was handed in before is still there."
    otherwise = f"Look at submitted/{item.student}/{chapter}."
    do = what_to_do(error, otherwise) if isinstance(error, OSError) else otherwise
    return Problem(NOT_BROUGHT_IN, message, str(item.upload.entry.path), do)


def _bring_files(
    course: Course, chapter: str, owned: Mapping[str, Sequence[Upload]], collection: Collection
) -> list[Student]:
    """Collect the files of students without a notebook, report these students, and return their ids.

    Grading then finds their folder without a notebook, so the students are "not gradable", not absent.
    """
    students = []
    for student, uploads in sorted(owned.items()):
        message, do = (
            f"{uploads[0].owner} handed in {len(uploads)} file(s), and no notebook.",
            "Ask for the .ipynb file.",
        )
        if any(upload.entry.path.suffix.lower() == ".zip" for upload in uploads):
            message += " An archive within an archive is not looked into."
            do = f"Unpack it yourself and collect again. Or: {do}"
        path = submitted_notebook(course, chapter, student)
        alone = not (os.path.lexists(path) or other_notebooks(path.parent, chapter))
        if not alone:
            message += " The notebook that was handed in before still counts."
        else:
            message += _copied(path.parent, uploads)
            students.append(_student_of(student, uploads[-1], chapter))
        collection.problems.append(Problem("no notebook", message, str(uploads[0].entry.path), do, fatal=alone))
    return students


def _copied(folder: Path, uploads: Sequence[Upload]) -> str:
    """Copy files into a student's folder, as many as there is a use for; return what kept some of them out, as a sentence."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for upload in uploads[:_COPIED]:
            name = upload.entry.path.name
            # Archives stay where they are: the notebook may be in one, and is to be unpacked by a person.
            if name != "timestamp.txt" and upload.entry.path.suffix.lower() != ".zip":
                write(folder / name, upload.entry.open())
    except RefusedError as error:
        return f" {error}"
    except OSError as error:
        return f" They could not be brought in ({error.strerror or error})."
    return ""


@dataclass(frozen=True)
class _Read:
    """An upload, and the notebook that it holds."""

    upload: Upload
    notebook: Candidate
    chapter: str

    @property
    def where(self) -> str:
        return str(self.upload.entry.path)


def _choose(
    uploads: Sequence[Upload], manifest: Manifest, collection: Collection, preference: Preference | None
) -> tuple[list[_Read], list[_Read]]:
    """Return the uploads of a student that count, and the other gradable uploads.

    One upload counts, several if the lecturer has to choose, and none if no upload can be read. An earlier choice by the lecturer has
    priority.
    """
    series: dict[tuple[str, ...], list[_Read]] = defaultdict(list)
    ordered = sorted(uploads, key=lambda upload: upload.order)
    if len(ordered) > MAX_NOTEBOOKS:
        message = f"{len(ordered)} notebooks of one student; only the last {MAX_NOTEBOOKS} are looked at."
        collection.problems.append(Problem("too many notebooks", message, str(ordered[0].entry.path), "Ask for one."))
    for upload in ordered[-MAX_NOTEBOOKS:]:
        try:
            data = upload.entry.open()
        except RefusedError as error:
            do = "Download it again, or ask for the notebook once more."
            collection.problems.append(Problem("file refused", str(error), str(upload.entry.path), do))
            continue
        exact = upload.is_named_after(manifest.chapter)
        series[upload.series].append(_Read(upload, examine(data, manifest, exact=exact), manifest.chapter))
    everything = [read for reads in series.values() for read in reads]
    if preference is not None and preference.applies([read.notebook.digest for read in everything]):
        taken = next(read for read in everything if read.notebook.digest == preference.digest)
        _report_uncounted(taken, everything, "you chose it", collection)
        return [taken], _gradable_others(everything, taken)
    # Of one file that was handed in several times the last counts, the last that holds work if there is one.
    last = [
        max(enumerate(attempts), key=lambda item: (item[1].notebook.worth, item[0]))[1] for attempts in series.values()
    ]
    for attempts, best in zip(series.values(), last, strict=True):
        _report_uncounted(best, attempts, "it has the higher number", collection)
    if not last:
        return [], []
    number, why = pick_candidate([read.notebook for read in last])
    if number is None:
        return last, []
    _report_uncounted(last[number], last, why, collection)
    if (fatal := last[number].notebook.fatal) is not None:
        collection.problems.append(replace(fatal, where=last[number].where))
    return [last[number]], _gradable_others(everything, last[number])


def _gradable_others(reads: Iterable[_Read], best: _Read) -> list[_Read]:
    return [read for read in reads if read is not best and read.notebook.fatal is None]


def _report_uncounted(best: _Read, reads: Iterable[_Read], why: str, collection: Collection) -> None:
    """Say of all uploads but one that they do not count, and why."""
    for read in reads:
        if read is best:
            continue
        reason = why
        if best.notebook.fatal is None and read.notebook.fatal is not None:
            reason = f"the other cannot be graded: {read.notebook.fatal.kind}"
        elif best.notebook.solved and not read.notebook.solved:
            reason = "nothing is solved in the other"
        message = f"{best.where} of the same student counts, for {reason}."
        collection.problems.append(Problem(NOT_COUNTED, message, read.where))


def _named_apart(reads: Sequence[_Read], chapter: str, *, alone: bool = True) -> dict[str, _Read]:
    """Name the notebooks: a single one like the chapter; several by their own names, none of them like the chapter.

    Args:
        reads: the notebooks.
        alone: whether a single notebook is the submission.
    """
    if alone and len(reads) == 1:
        return {f"{chapter}.ipynb": reads[0]}
    files: dict[str, _Read] = {}
    taken = {chapter.casefold()}
    for read in sorted(reads, key=lambda read: read.where):
        *folders, title = read.upload.series
        names = [title, f"{folders[-1]}_{title}" if folders else title]
        names += [f"{title}_{number}" for number in range(1, len(reads) + 2)]
        name = next(name[:100] for name in names if name[:100].casefold() not in taken)
        taken.add(name.casefold())
        files[f"{name}.ipynb"] = read
    return files


def _student_of(student: str, upload: Upload, chapter: str) -> Student:
    platform = upload.platform if upload.platform in ("canvas", "moodle") else ""
    name = upload.owner if upload.owner != student else ""
    return Student(student, name, platform, upload.user, {chapter: upload.upload} if platform and upload.upload else {})
