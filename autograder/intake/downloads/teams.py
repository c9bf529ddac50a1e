"""Teams: several students hand in together, and each gets the grade.

Moodle packs such an assignment by team: ``Team 5_7_assignsubmission_file``, with the name and the number of the team, which are no
participant's. The work is kept with one of the members; the others get its grade because the chapter has ``groups = true`` in
``course.toml``.

The groups with which a chapter was first collected are the chapter's: a student who changes to another group keeps the grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.store import what_to_do
from autograder.intake.downloads.uploads import Upload
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import Student, hand_in_groups, read_roster, roster_path, team_members, write_roster


def teams_in(uploads: Iterable[Upload], roster: Mapping[str, Student], chapter: str) -> dict[str, Upload]:
    """Return an upload of each team in a download of Moodle's, by the id of the member who has the team's work."""
    teams = {}
    for upload in uploads:
        if upload.platform == "moodle" and (members := team_members(roster, upload.owner, chapter)):
            teams[members[0]] = upload
    return teams


def refuse_teams(course: Course, chapter: str, teams: Mapping[str, Upload]) -> None:
    """Refuse the work of teams for a chapter in which everybody hands in alone: it would be one member's.

    Raises:
        CourseError: if there is any.
    """
    if teams and not read_course_file(course.root).chapter(chapter).groups:
        names = sorted(upload.owner for upload in teams.values())
        raise CourseError(
            f"in this download teams have handed in {chapter}, such as {names[0]!r}; nothing was brought in",
            where=course_file_path(course.root),
            do=f"Write groups = true into [chapters.{chapter}], and collect again.",
        )


def entries_of_teams(roster: Mapping[str, Student], chapter: str, teams: Mapping[str, Upload]) -> list[Student]:
    """Return entries for the roster: the member who has a team's work, with the team's name and number, and the team of each member."""
    entries = []
    for holder, upload in teams.items():
        prefix = f"{upload.owner}_{upload.upload}" if upload.upload else upload.owner
        entries.append(Student(holder, platform="moodle", uploads={chapter: prefix}))
        entries += [
            Student(member, teams={chapter: roster[member].teams.get(chapter) or upload.owner})
            for member in team_members(roster, upload.owner, chapter)
        ]
    return entries


def keep_roster(course: Course, chapter: str, roster: Mapping[str, Student]) -> list[Problem]:
    """Write the roster where it has changed, with the groups of the chapter; return the problem that it could not be written, if so.

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
        do = what_to_do(error, "See to it that the course folder can be written, then collect again.")
        return [Problem("list not written", message, roster_path(course).name, do)]
    return []
