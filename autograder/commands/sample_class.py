"""Run ``tfcourse sample-class``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import CommandResult, command
from autograder.commands.options import OTHER_COURSE, chapters_argument, course_option
from autograder.course.paths import course_folder, project_root, require_writable


@click.command("sample-class")
@chapters_argument
@click.option(
    "--students", type=click.IntRange(min=1, max=5000), default=24, show_default=True, help="Number of students."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same class.")
@click.option("--predict", is_flag=True, help="Also compute the expected score of each mistake.")
@course_option
@command
def sample_class(
    chapters: tuple[str, ...], students: int, seed: int, predict: bool, course_dir: Path | None
) -> CommandResult:
    """Generate a class that makes known mistakes.

    COURSE/sample_class.json lists what each student did.

    Example:
      tfcourse sample-class --students 24
    """
    root = project_root()
    from autograder.commands.selftest.sample_class import sample_class as make_class
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters

    course = Course.open(course_folder(course_dir))
    require_writable(course.root, OTHER_COURSE)
    names = released_chapters(course, chapters)
    class_members = make_class(root, course, names, students=students, seed=seed, predict=predict)
    handed_in = sum(work.oddity != "not handed in" for student in class_members for work in student.chapters.values())
    return CommandResult(
        [student.to_dict() for student in class_members],
        f"{len(class_members)} students: {handed_in} submissions of {', '.join(names)} in {course.folder('submitted')}",
    )
