"""Collect submissions into the course folder, as ``submitted/STUDENT/CHAPTER/CHAPTER.ipynb``."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.intake.downloads.archive import RefusedError
from autograder.intake.downloads.choices import UncountedNotebook, apply_choice, other_notebooks, store_uncounted
from autograder.intake.downloads.download import Download, read_download
from autograder.intake.downloads.in_place import collect_in_place, conflict_problems
from autograder.intake.downloads.journal import (
    NOT_BROUGHT_IN,
    PendingSubmission,
    hash_content,
    hash_file,
    missing_problems,
    missing_submissions,
    read_journal,
    record_pending,
    write_journal,
)
from autograder.intake.downloads.selection import NOT_COUNTED, assign_file_names, select_notebook
from autograder.intake.downloads.store import (
    ChosenUploads,
    Collection,
    disk_error_advice,
    remove_drafts,
    select_companions,
    store_submission,
    submitted_notebook,
    time_stamp,
    update_roster,
    write_file,
)
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.downloads.uploads import Upload
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.timestamp import KIND as NO_TIME
from autograder.intake.roster import Student, merge_collected, read_roster, team_members

# Who handed in no notebook may have handed in a whole project.
_COPIED = 20
# The kinds of problems because of which a file has no owner.
_UNOWNED = frozenset({"unknown owner", "ambiguous name", "same number"})


def collect(course: Course, chapter: str, source: Path | None = None) -> Collection:
    """Collect a released chapter's submissions from a download or, by default, from the ``submitted`` folder."""
    if source is None or source.resolve() == course.folder("submitted"):
        remove_drafts(course, chapter)
        return collect_in_place(course, chapter)
    return collect_download(course, read_download(course, chapter, source))


def collect_download(course: Course, download: Download) -> Collection:
    """Collect the submissions of a download. A bad file never prevents the collection of another file.

    Raises:
        CourseError: if the list of pending submissions cannot be written, or teams hand in a chapter without
            ``groups = true``. Nothing is collected then.
    """
    return _CollectionRun(course, download).run()


class _CollectionRun:
    """One collection of submissions from a download."""

    def __init__(self, course: Course, download: Download) -> None:
        self.course = course
        self.download = download
        self.chapter = download.manifest.chapter
        self.roster = read_roster(course)
        self.journal = read_journal(course, self.chapter)
        self.collection = Collection(self.chapter, problems=list(download.problems))

    def run(self) -> Collection:
        course, chapter, collection, journal = self.course, self.chapter, self.collection, self.journal
        download, problems = self.download, self.collection.problems
        remove_drafts(course, chapter)
        everybody, refused = assign_students([*download.uploads, *download.files], self.roster, chapter)
        problems += refused
        teams = self._team_uploads()
        for student in [name for name in everybody if name in self.roster and chapter in self.roster[name].drafts]:
            problems.append(_draft_problem(chapter, student, everybody.pop(student)[0]))
        # A file beside a notebook is its author's, and decides nothing about who that is.
        owners = {_owner_key(upload): student for student, uploads in everybody.items() for upload in uploads}
        companions: dict[str, list[Upload]] = defaultdict(list)
        for upload in download.companions:
            companions[owners.get(_owner_key(upload), "")].append(upload)
        notebooks = set(map(id, download.uploads))
        owned = {student: [one for one in all_of if id(one) in notebooks] for student, all_of in everybody.items()}
        collected: list[Student] = []
        for name, uploads in sorted(everybody.items()):
            if not owned[name]:
                collected += self._store_files(name, uploads)
        chosen = [
            item for name, uploads in sorted(owned.items()) if uploads and (item := self._choose_uploads(name, uploads))
        ]
        chosen = [replace(item, companions=select_companions(item.upload, companions[item.student])) for item in chosen]
        record_pending(course, chapter, journal, [self._pending_submission(item) for item in chosen])
        failed = set()
        for item in chosen:
            try:
                store_submission(course, chapter, item, collection, journal)
                apply_choice(course, chapter, item.student, journal.choices.get(item.student))
                self._keep_uncounted(item)
            except (OSError, RefusedError) as error:
                failed.add(item.student)
                problems.append(self._failure_problem(item, error))
                continue
            collected.append(_roster_entry(item.student, item.upload, chapter))
        collected = [student for student in collected if student.id not in teams]
        for holder, upload in teams.items():
            collected += _team_entries(self.roster, chapter, holder, upload)
        problems += conflict_problems(course, chapter)
        self._save_journal()
        absent = [item for item in collection.missing if item.student not in failed]
        problems += missing_problems(course, chapter, absent)
        problems += update_roster(course, chapter, merge_collected(self.roster, collected))
        return collection

    def _save_journal(self) -> None:
        """Write the journal, with this download's unowned files and the missing submissions."""
        source = str(self.download.source.resolve())
        self.journal.unowned.pop(source, None)
        if files := sorted({problem.where for problem in self.collection.problems if problem.kind in _UNOWNED}):
            self.journal.unowned[source] = files
        self.collection.missing = missing_submissions(self.course, self.chapter, self.journal)
        self.journal.pending = self.collection.missing
        try:
            write_journal(self.course, self.chapter, self.journal)
        except OSError as error:
            message = f"Report and export will not name these problems: they could not be written down ({error.strerror or error})."
            do = disk_error_advice(error, "Make sure that the course folder is writable, then collect again.")
            self.collection.problems.append(Problem("list not written", message, "journal", do))

    def _team_uploads(self) -> dict[str, Upload]:
        """Return an upload per team in a Moodle download, by the id of the member who stores the team's submission.

        Moodle packs an assignment of teams by team: ``Team 5_7_assignsubmission_file``, with the name and the number of the team, which are
        no participant's. The others get the grade because the chapter has ``groups = true`` in ``course.toml``.

        Raises:
            CourseError: if everybody hands in this chapter alone: the work would be one member's.
        """
        teams = {}
        for upload in (*self.download.uploads, *self.download.files):
            if upload.platform == "moodle" and (members := team_members(self.roster, upload.owner, self.chapter)):
                teams[members[0]] = upload
        if teams and not read_course_file(self.course.root).chapter(self.chapter).groups:
            name = min(upload.owner for upload in teams.values())
            raise CourseError(
                f"in this download teams have handed in {self.chapter}, such as {name!r}; nothing was brought in",
                where=course_file_path(self.course.root),
                do=f"Write groups = true into [chapters.{self.chapter}], and collect again.",
            )
        return teams

    def _store_files(self, student: str, uploads: Sequence[Upload]) -> list[Student]:
        """Store the files of a student without a notebook, and report them.

        Grading then finds the folder without a notebook, so that the student is "not gradable", not absent. Return the
        student, unless an earlier notebook counts.

        Grading then finds their folder without a notebook, so the students are "not gradable", not absent.
        """
        collected = []
        message = f"{uploads[0].owner} handed in {len(uploads)} file(s), and no notebook."
        do = "Ask for the .ipynb file."
        if any(upload.entry.path.suffix.lower() == ".zip" for upload in uploads):
            message += " An archive within an archive is not looked into."
            do = f"Unpack it yourself and collect again. Or: {do}"
        path = submitted_notebook(self.course, self.chapter, student)
        alone = not (os.path.lexists(path) or other_notebooks(path.parent, self.chapter))
        if not alone:
            message += " The notebook that was handed in before still counts."
        else:
            message += _copy_files(path.parent, uploads)
            collected.append(_roster_entry(student, uploads[-1], self.chapter))
        self.collection.problems.append(Problem("no notebook", message, str(uploads[0].entry.path), do, fatal=alone))
        return collected

    def _choose_uploads(self, student: str, all_uploads: Sequence[Upload]) -> ChosenUploads | None:
        """Return the uploads to store for a student; nothing is written yet."""
        selection = select_notebook(all_uploads, self.download.manifest, self.journal.preferences.get(student))
        others = assign_file_names(selection.uncounted, self.chapter)
        commands = {
            one.where: shell_command(self.course, "choose", student, self.chapter, name) for name, one in others.items()
        }
        self.collection.problems += [
            replace(problem, do=f"If this one should count: {commands[problem.where]}")
            if problem.kind == NOT_COUNTED and problem.where in commands
            else problem
            for problem in selection.problems
        ]
        if not selection.counting:
            return None
        names = {f"{self.chapter}.ipynb": selection.counting[0]}
        if len(selection.counting) > 1:
            names = assign_file_names(selection.counting, self.chapter)
        uploads, uncounted = ({name: one.upload for name, one in some.items()} for some in (names, others))
        digests = {name: one.notebook.digest for name, one in names.items()}
        stamp = self._read_stamp(student, selection.counting[-1].upload)
        return ChosenUploads(student, uploads, digests, stamp, uncounted)

    def _read_stamp(self, student: str, upload: Upload) -> bytes | None:
        try:
            return time_stamp(upload, self.download.entries)
        except RefusedError as error:
            message = f"The time cannot be read, so nothing is taken off for being late. {error}"
            path = submitted_notebook(self.course, self.chapter, student).with_name("timestamp.txt")
            where = f"{upload.folder}/timestamp.txt"
            self.collection.problems.append(Problem(NO_TIME, message, where, f"Write it into {path}."))
            # The course keeps this text in the place of the time, so that every later run names it.
            return f"damaged in the download ({error})".encode()

    def _keep_uncounted(self, item: ChosenUploads) -> None:
        """Store the uncounted notebooks with their times, so that a person can choose one of them."""
        notebooks = {
            name: UncountedNotebook(upload.entry.open(), time_stamp(upload, self.download.entries))
            for name, upload in item.uncounted.items()
        }
        if notebooks or item.student in self.journal.preferences:
            store_uncounted(self.course, self.chapter, item.student, notebooks, self.journal)

    def _pending_submission(self, item: ChosenUploads) -> PendingSubmission:
        folder = submitted_notebook(self.course, self.chapter, item.student).parent
        new = {**item.digests} | ({"timestamp.txt": hash_content(item.stamp)} if item.stamp is not None else {})
        changes = {name: (hash_file(folder / name), digest) for name, digest in new.items()}
        source = str(self.download.source.resolve())
        return PendingSubmission(item.student, source, str(item.upload.entry.path), changes)

    def _failure_problem(self, item: ChosenUploads, error: OSError | RefusedError) -> Problem:
        message = f"{item.student}: it could not be brought in ({getattr(error, 'strerror', None) or error})."
        if os.path.lexists(submitted_notebook(self.course, self.chapter, item.student)):
            message = f"{message[:-1]}; what was handed in before is still there."
        otherwise = f"Look at submitted/{item.student}/{self.chapter}."
        do = disk_error_advice(error, otherwise) if isinstance(error, OSError) else otherwise
        return Problem(NOT_BROUGHT_IN, message, str(item.upload.entry.path), do)


def _owner_key(upload: Upload) -> tuple[str, str, str]:
    """Return the key that a student's uploads share; Canvas numbers each file, Moodle and Brightspace each student."""
    number = upload.upload if upload.platform in ("moodle", "brightspace") else upload.user
    return ("" if upload.platform == "nbgrader" else upload.platform, upload.owner, number)


def _draft_problem(chapter: str, student: str, upload: Upload) -> Problem:
    """Describe a student's draft on Moodle as a problem."""
    message = f"Moodle has this as a draft that {upload.owner} did not hand in, so it was not brought in."
    do = "When it is handed in, read the grading worksheet and collect again. "
    do += f"If it counts as it is, put it into submitted/{student}/{chapter}/{chapter}.ipynb."
    return Problem("draft", message, str(upload.entry.path), do)


def _copy_files(folder: Path, uploads: Sequence[Upload]) -> str:
    """Copy files into a student's folder, up to a limit; return the error as a sentence, or an empty string."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for upload in uploads[:_COPIED]:
            name = upload.entry.path.name
            # Archives stay where they are: the notebook may be in one, and is to be unpacked by a person.
            if name != "timestamp.txt" and upload.entry.path.suffix.lower() != ".zip":
                write_file(folder / name, upload.entry.open())
    except RefusedError as error:
        return f" {error}"
    except OSError as error:
        return f" They could not be brought in ({error.strerror or error})."
    return ""


def _roster_entry(student: str, upload: Upload, chapter: str) -> Student:
    platform = upload.platform if upload.platform in ("canvas", "moodle") else ""
    name = upload.owner if upload.owner != student else ""
    return Student(student, name, platform, upload.user, {chapter: upload.upload} if platform and upload.upload else {})


def _team_entries(roster: Mapping[str, Student], chapter: str, holder: str, upload: Upload) -> Iterable[Student]:
    """Yield roster entries for a team: the member who stores its submission, and the team of each member."""
    prefix = f"{upload.owner}_{upload.upload}" if upload.upload else upload.owner
    yield Student(holder, platform="moodle", uploads={chapter: prefix})
    for member in team_members(roster, upload.owner, chapter):
        yield Student(member, teams={chapter: roster[member].teams.get(chapter) or upload.owner})
