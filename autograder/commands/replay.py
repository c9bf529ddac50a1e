"""Run ``tfcourse replay``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.options import course_option
from autograder.course.paths import course_folder


@click.command()
@click.argument("student", metavar="STUDENT")
@click.argument("chapter", metavar="CHAPTER")
@course_option
@command
def replay(student: str, chapter: str, course_dir: Path | None) -> CommandResult:
    """Grade a submission again as recorded, and compare it with the recorded grade.

    STUDENT is an id, a name, a number or the beginning of one. The submission runs with the recorded seed, device and limits. The command
    writes nothing.

    Example:
      tfcourse replay ada 03
      tfcourse replay "Jörg Müller" 03
    """
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters
    from autograder.grading.record.results import read_results
    from autograder.grading.replay import replay as replay_grade
    from autograder.intake.people.find_student import find_student

    course = Course.open(course_folder(course_dir))
    (name,) = released_chapters(course, [chapter])
    if graded := [
        result.student for result in read_results(course, name)
    ]:  # replaying without grades has an error of its own
        student = find_student(course, student, graded)
    done = replay_grade(course, name, student)
    points = f"{done.again.score:g} of the {done.again.max_score:g} points that the checks give"
    lines = [f"{student}, {name}: {'the same grade' if done.is_same else 'another grade'}, {points}"]
    lines += [f"  {sentence}" for sentence in done.differences]
    lines += [f"  since then: {sentence}" for sentence in done.changes]
    return CommandResult(done.to_dict(), "\n".join(lines), 0 if done.is_same else EXIT_FAILED)
