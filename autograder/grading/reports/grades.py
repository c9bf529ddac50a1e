"""Read grades from the gradebook, with late penalties and manual points as in nbgrader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from nbgrader.api import Grade as GradeRow
from nbgrader.api import Student as GradebookStudent
from nbgrader.api import SubmittedNotebook
from sqlalchemy import func, select

from autograder.course.course_file import CourseFile, read_course_file
from autograder.course.course_rules import drop_vivas
from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.grading.record.results import Status, read_results
from autograder.grading.reports.counting import apply_counting_rules, cells_with_rules
from autograder.intake.downloads.journal import read_journal
from autograder.intake.people.standing import enrolled_students, group_submitters, has_grade, submitters
from autograder.intake.roster import Student, read_roster, roster_path

WaitsFor = Literal["", "choice", "grading", "hand-in", "download"]


@dataclass(frozen=True)
class Grade:
    """A student's grade in one chapter."""

    student: str  # the student's id in the course folder
    first_name: str  # from the class list, the gradebook or a download, or empty
    last_name: str  # from the same, or empty
    email: str  # from the same, or empty
    # the origin of the student's work in this chapter, ``"canvas"`` or ``"moodle"``, or empty if it is unknown
    platform: str
    canvas_id: str  # the student's number on Canvas, or empty
    moodle_id: str  # the student's participant number in this chapter's assignment on Moodle, or empty
    chapter: str
    submitted: datetime | None  # the submission time, or None without a submission
    # the deadline including the student's extension, or None. Both times are naive UTC times, as in nbgrader.
    due: datetime | None
    raw: float  # points before the penalty for lateness
    penalty: float  # points deducted for lateness
    best: float  # maximum points
    pending: int  # number of answers that wait for manual grading
    handed_in: bool  # whether the student has a submission
    # False if the submission could not be graded and has 0 points until a person decides; None if it has 0 points and the result that would
    # give the reason is missing
    gradable: bool | None = True
    has_result: bool = True  # False if a submission in the gradebook has no readable result of ``tfcourse``
    # why there are no points yet, or empty. ``"choice"``: there are several notebooks, and none has been chosen. ``"grading"``: the work is
    # in ``submitted/`` or in a download, and has not been graded. ``"hand-in"``: Moodle has a draft alone. ``"download"``: a list
    # has the time of the hand-in, and no download has brought the work.
    waits_for: WaitsFor = ""
    decision: str = (
        ""  # why a person gave these points to work without a notebook (``tfcourse decide``); empty if nobody did
    )
    in_place: bool = True  # False if a submission in the gradebook is no longer in ``submitted/``
    handed_in_by: str = ""  # the group member whose submission this is; empty for the student's own submission
    number: str = ""  # the student's number at the institution, from the class list, or empty
    login: str = ""  # the student's login, from the class list, or empty
    section: str = ""  # the student's section, from the class list, or empty
    # whether this is the grade of the conversation about a chapter. Without a conversation it is missing, and does not count as 0.
    viva: bool = False

    @property
    def submitted_utc(self) -> datetime | None:
        """The submission time with its time zone, UTC."""
        return self.submitted and self.submitted.replace(tzinfo=UTC)

    @property
    def decided(self) -> bool:
        """Whether no choice among several notebooks is pending."""
        return self.waits_for != "choice"

    @property
    def not_yet(self) -> bool:
        """Whether points may still come without a decision, because grading, hand-in or download is pending."""
        return self.waits_for in ("grading", "hand-in", "download")

    @property
    def graded(self) -> bool:
        """Whether the student's submission is graded or a person has given points."""
        return self.handed_in and bool(self.gradable) and not self.waits_for

    @property
    def score(self) -> float:
        """The points after the penalty, never below zero."""
        return max(0.0, self.raw - self.penalty)

    @property
    def late_by(self) -> timedelta:
        """The time from the student's deadline to the submission; zero if it was in time or either is unknown."""
        if self.submitted is None or self.due is None:
            return timedelta()
        return max(timedelta(), self.submitted - self.due)

    @property
    def full_name(self) -> str:
        """First and last name, or the id without a name."""
        return f"{self.first_name} {self.last_name}".strip() or self.student


def read_grades(course: Course, chapters: Sequence[str] = (), *, by_rules: bool = True) -> list[Grade]:
    """Return the grades of every student in every chapter, ordered by chapter and student.

    With a class list, each student on it has a grade in every chapter that counts for the student, with or without a submission, and no
    other student has a grade. Without a list, every student in the gradebook has a grade in every chapter. Group members get the grade of
    the member who handed in.

    Args:
        chapters: the chapters to read; by default all released chapters.
        by_rules: whether to apply the rules of ``course.toml`` for single exercises.

    Raises:
        CourseError: if a chapter is not in the gradebook, a rule is for an unknown exercise, or there are no students. Also if the
            gradebook or the class list cannot be read, or two students share a number on a platform.
    """
    roster, submitted, plan = read_roster(course), course.folder("submitted"), read_course_file(course.root)
    with open_gradebook(course) as gradebook:
        released = drop_vivas([assignment.name for assignment in gradebook.assignments])
        for chapter in chapters:
            if chapter not in released:
                raise CourseError(
                    f"chapter {chapter!r} is not in the gradebook; it has: {', '.join(released) or 'none'}",
                    where=course.root,
                    do=f"Release it first: {shell_command(course, 'assign', 'CHAPTER')}",
                )
        enrolled = enrolled_students(roster)
        in_gradebook = {student.id: student for student in gradebook.students}
        present = {chapter: submitters(course, chapter) for chapter in chapters or released}
        everybody = (
            enrolled.keys() | set().union(*present.values()) | {one.id for one in roster.values() if one.decided}
        )
        unseen = {name: GradebookStudent(id=name) for name in everybody - in_gradebook.keys()}
        students = [student for _, student in sorted((in_gradebook | unseen).items())]
        if not students:
            raise CourseError(
                "there is no student in the gradebook yet",
                where=course.root,
                do=f"Grade what was handed in: {shell_command(course, 'autograde', 'CHAPTER')} --submissions FOLDER_OR_ZIP",
            )
        grades = []
        for chapter in sorted(chapters or released):
            assignment = gradebook.find_assignment(chapter)
            submissions = {
                submission.student_id: submission for submission in gradebook.assignment_submissions(chapter)
            }
            waiting = _count_waiting_answers(gradebook)
            results = {result.student: result.status for result in read_results(course, chapter)}
            # The lecturer's own assignments, which only nbgrader grades, have no results.
            rules = plan.chapter(chapter).exercises if by_rules else {}
            cells = cells_with_rules(course, chapter, assignment, rules)
            ours = any(notebook.name == chapter for notebook in assignment.notebooks)
            for student in students:
                known_as = roster.get(student.id, Student(student.id))
                submission = submissions.get(student.id)
                grade = _build_grade(assignment, student, submission, known_as, waiting)
                if results.get(student.id) == "to decide" and (submitted / student.id / chapter).is_dir():
                    grade = replace(grade, handed_in=True, waits_for="choice")
                elif submission is None and student.id in present[chapter]:
                    grade = replace(grade, handed_in=True, waits_for="grading")
                elif submission is None and chapter in known_as.drafts:
                    grade = replace(grade, handed_in=True, waits_for="hand-in")
                elif submission is not None:
                    status = results.get(student.id) if ours else "graded"
                    grade = replace(
                        grade,
                        gradable=_is_gradable(submission, status),
                        has_result=status is not None,
                        in_place=(submitted / student.id / chapter).is_dir(),
                    )
                grade = apply_counting_rules(_apply_own_deadline(grade, plan), submission, cells, plan)
                grades.append(
                    _apply_decision(grade, *known_as.decided[chapter]) if chapter in known_as.decided else grade
                )
    times = {chapter: read_journal(course, chapter).times for chapter in present}
    shared = [
        grade
        for grade in _share_within_groups(course, grades, roster)
        if has_grade(roster, grade.student, grade.chapter, plan, handed_in=grade.handed_in)
    ]
    _refuse_shared_numbers(course, shared)
    return [
        replace(grade, handed_in=True, waits_for="download")
        if not grade.handed_in and grade.student in times[grade.chapter]
        else grade
        for grade in shared
    ]


def _apply_decision(grade: Grade, points: float, reason: str) -> Grade:
    """Return a grade with the points that a person decided; the reason mentions a notebook graded since."""
    if grade.graded:
        reason += f"; a notebook that was handed in since has {grade.score:g} points (tfcourse decide --undo counts it)"
    return replace(
        grade,
        raw=points,
        penalty=0.0,
        pending=0,
        handed_in=True,
        gradable=True,
        has_result=True,
        waits_for="",
        in_place=True,
        decision=reason,
    )


def _share_within_groups(course: Course, grades: Sequence[Grade], roster: Mapping[str, Student]) -> list[Grade]:
    """Return the grades, with each group member's grade replaced by that of the member who handed in."""
    plan = read_course_file(course.root)
    by_key = {(grade.chapter, grade.student): grade for grade in grades}
    shared = dict(by_key)
    for chapter in dict.fromkeys(grade.chapter for grade in grades):
        present = [grade.student for grade in grades if grade.chapter == chapter and grade.handed_in]
        for name, submitter in group_submitters(course, chapter, roster, present).items():
            grade = _apply_member_deadline(by_key[chapter, submitter], name, plan)
            shared[chapter, name] = _copy_to_member(grade, by_key[chapter, name])
    return list(shared.values())


def _apply_own_deadline(grade: Grade, plan: CourseFile) -> Grade:
    """Return a grade with the student's deadline in ``course.toml``, which the gradebook may not have yet."""
    due = plan.due(grade.chapter, grade.student)
    return grade if due is None else replace(grade, due=due.astimezone(UTC).replace(tzinfo=None))


def _apply_member_deadline(grade: Grade, member: str, plan: CourseFile) -> Grade:
    """Return a grade with its lateness computed from another group member's deadline.

    An extension is one student's: a group must not get it by letting that student hand in.
    """
    due = plan.due(grade.chapter, member)
    if due is None or due == plan.due(grade.chapter, grade.student):
        return grade
    penalty = plan.late_penalty(grade.chapter, member, grade.raw, grade.submitted_utc)
    return replace(grade, due=due.astimezone(UTC).replace(tzinfo=None), penalty=penalty)


def _copy_to_member(grade: Grade, member: Grade) -> Grade:
    """Copy a grade to another group member, for the platform on which the group handed in.

    Pending manual work is reported only for the submitter.
    """
    return replace(
        grade,
        student=member.student,
        first_name=member.first_name,
        last_name=member.last_name,
        email=member.email,
        platform=grade.platform or member.platform,
        canvas_id=member.canvas_id,
        moodle_id=member.moodle_id,
        number=member.number,
        login=member.login,
        section=member.section,
        pending=0,
        has_result=True,
        in_place=True,
        handed_in_by=grade.student,
    )


def _refuse_shared_numbers(course: Course, grades: Sequence[Grade]) -> None:
    """Refuse grades if several students have the same number on a platform."""
    students: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for grade in grades:
        if grade.canvas_id:
            students["Canvas", "", grade.canvas_id].add(grade.student)
        if grade.moodle_id:
            students["Moodle", f" in {grade.chapter}", grade.moodle_id].add(grade.student)
    for (platform, where, number), several in students.items():
        if len(several) > 1:
            raise CourseError(
                f"number {number} of {platform}{where} belongs to several students: {', '.join(sorted(several))}",
                where=roster_path(course),
                do="Assign the number to one student only (check the roster and lms_user_id in the gradebook), then run the command again.",
            )


def count_waiting_answers(course: Course, chapter: str) -> list[tuple[str, int]]:
    """Return the students with answers that wait for manual grading in a chapter, and the numbers of answers.

    Raises:
        CourseError: if the gradebook cannot be read.
    """
    with open_gradebook(course) as gradebook:
        waiting = _count_waiting_answers(gradebook)
        submissions = gradebook.assignment_submissions(chapter)
        return sorted((s.student_id, waiting[s.id]) for s in submissions if s.id in waiting)


def _count_waiting_answers(gradebook: Any) -> dict[str, int]:
    """Return the number of waiting answers by submission id, in one query."""
    query = (
        select(SubmittedNotebook.assignment_id, func.count())
        .join(GradeRow, GradeRow.notebook_id == SubmittedNotebook.id)
        .where(GradeRow.needs_manual_grade)
        .group_by(SubmittedNotebook.assignment_id)
    )
    return {submission: int(answers) for submission, answers in gradebook.db.execute(query)}


def _is_gradable(submission: Any, status: Status | None) -> bool | None:
    """Return whether a submission could be graded or was decided by a person; None if that is unknown."""
    if status not in ("not gradable", None):
        return True
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    # A person has given points by hand, perhaps 0.
    if any(grade.manual_score is not None for grade in grades):
        return True
    if status is None:
        # An ungradable submission has 0 everywhere, and no answer waits.
        return None if all(grade.auto_score == 0 for grade in grades) else True
    return False


def _build_grade(
    assignment: Any, student: Any, submission: Any, known_as: Student, waiting: Mapping[str, int]
) -> Grade:
    first, last = known_as.first_and_last_name
    # The class list knows the present name of a student, and a download none that is better than the gradebook's.
    listed = known_as.enrolled and bool(known_as.name)
    named = bool(student.first_name or student.last_name) and not listed
    platform = known_as.find_platform(assignment.name)
    on_moodle = platform == "moodle"
    return Grade(
        student=student.id,
        first_name=(student.first_name or "") if named else first,
        last_name=(student.last_name or "") if named else last,
        email=(known_as.enrolled and known_as.email) or student.email or known_as.email,
        platform=platform,
        # The lecturer's entry in the gradebook takes precedence over the name in a download.
        canvas_id="" if on_moodle and not known_as.user else student.lms_user_id or known_as.user,
        moodle_id=known_as.participants.get(assignment.name, "") if on_moodle else "",
        chapter=assignment.name,
        submitted=submission.timestamp if submission else None,
        due=submission.duedate if submission else assignment.duedate,
        raw=float(submission.score) if submission else 0.0,
        penalty=float(submission.late_submission_penalty or 0.0) if submission else 0.0,
        best=float(assignment.max_score),
        pending=waiting.get(submission.id, 0) if submission else 0,
        handed_in=submission is not None,
        number=known_as.number,
        login=known_as.login,
        section=known_as.section,
    )
