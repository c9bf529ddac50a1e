"""Teams: several students hand in together, and each gets the grade.

Moodle packs such an assignment by team: ``Team 5_7_assignsubmission_file``, with the name and the number of the team, which are no
participant's. The work is kept with one of the members; the others get its grade because the chapter has ``groups = true`` in
``course.toml``.

The groups with which a chapter was first collected are the chapter's: a student who changes to another group keeps the grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autograder.collecting.uploads import Upload
from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.roster.roster import Student, team_members


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


def with_groups_of_today(course: Course, chapter: str, roster: Mapping[str, Student]) -> dict[str, Student]:
    """Return a roster in which students have their present group in a chapter in which groups hand in, unless they have another already."""
    if not read_course_file(course.root).chapter(chapter).groups:
        return dict(roster)
    return {
        name: replace(student, teams={**student.teams, chapter: student.group})
        if student.enrolled and student.group and chapter not in student.teams
        else student
        for name, student in roster.items()
    }
