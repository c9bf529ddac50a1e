"""The command line: thin commands over the library.

Exit codes: 0 done; 1 the thing examined falls short; 2 wrong usage, wrong input or wrong environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from autograder.errors import CourseError
from tfcourse import __version__

if TYPE_CHECKING:
    from autograder.course import Course
    from autograder.grading.collect import Collection
    from autograder.grading.results import GradeResult

P = ParamSpec("P")
R = TypeVar("R")

errors = Console(stderr=True, highlight=False)

# Libraries are imported inside the commands: `tfcourse --help` must not wait for torch and nbgrader.


def _people_read(command: Callable[P, R]) -> Callable[P, R]:
    """Show a CourseError as what, where and what to do, with exit code 2."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except CourseError as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail("stopped. What was finished is kept; run the same command again to go on.")

    return run


def fail(message: str) -> NoReturn:
    """Say what went wrong and leave with exit code 2."""
    click.echo(click.style("tfcourse: ", fg="red", bold=True) + message, err=True)
    sys.exit(2)


def say(text: str = "") -> None:
    """Print a line for people."""
    click.echo(text)


def as_json(data: object) -> None:
    """Print data for scripts."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def project_root() -> Path:
    """Return the course's project: the nearest folder upwards that holds ``_config.yml`` and ``chapters/``."""
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "_config.yml").is_file() and (folder / "chapters").is_dir():
            return folder
    raise CourseError(
        "this is not inside the course's project (no folder above has _config.yml and chapters/)",
        where=here,
        do="Change into your clone of the course and run the command again.",
    )


@contextmanager
def progress_bar(title: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Yield a function that marks one step as done: a bar on a terminal, a plain line elsewhere."""
    if not errors.is_terminal:
        done = 0

        def line(step: str) -> None:
            nonlocal done
            done += 1
            click.echo(f"{title}: {step}" + (f" ({done}/{total})" if total else ""), err=True)

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=total)

        def step(text: str) -> None:
            bar.update(task, advance=1, description=f"{title}: {text}"[:60])

        yield step


course_option = click.option(
    "--course",
    "course_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("course"),
    show_default=True,
    help="The course folder, an nbgrader course.",
)
json_option = click.option("--json", "json_", is_flag=True, help="Print the result as JSON.")
device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "auto"]),
    default="auto",
    show_default=True,
    help="Where student code runs.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tfcourse")
def main() -> None:
    """Build, assign, autograde and solve the course.

    Example: tfcourse assign 03 && tfcourse autograde 03 --submissions downloads.zip
    """


@main.command()
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Where the site goes (book/_build/html)."
)
@json_option
@_people_read
def build(output: Path | None, json_: bool) -> None:
    """Build the static site; warnings are errors.

    Example: tfcourse build
    """
    from autograder.authoring.student_files import student_files
    from autograder.site.build import build_site

    root = project_root()
    with progress_bar("build") as step:
        site = build_site(
            root, output=output, downloads=student_files(root, root / ".cache" / "student"), progress=step
        )
    if json_:
        as_json({"output": site.output, "pages": site.pages, "seconds": site.seconds, "lessons": site.runtimes})
    else:
        say(f"{len(site.pages)} pages in {site.seconds:.0f} s. Open {site.output / 'index.html'}")


@main.command()
@click.argument("chapters", nargs=-1, required=True, metavar="CHAPTER...")
@course_option
@json_option
@_people_read
def assign(chapters: tuple[str, ...], course_dir: Path, json_: bool) -> None:
    """Release chapters: nbgrader source, release notebook and the student's tfcourse.

    Example: tfcourse assign 03 04
    """
    from autograder.authoring.assign import assign as assign_chapters
    from autograder.course import Course

    root = project_root()
    names = _chapter_names(root, chapters)
    made = assign_chapters(root, Course.open(course_dir, create=True), names)
    if json_:
        as_json([vars(item) for item in made])
        return
    for item in made:
        say(f"{item.chapter}: give students {item.package}")
        say(f"  notebook {item.notebook}")
        say(f"  package  {item.wheel}")


def _chapter_names(root: Path, wanted: Sequence[str]) -> list[str]:
    """Return full names for what was typed; every chapter if nothing was."""
    from autograder.authoring.chapter import chapters, find_chapter

    if not wanted:
        return [chapter.name for chapter in chapters(root)]
    return list(dict.fromkeys(find_chapter(root, name).name for name in wanted))


@main.command()
@click.argument("chapters", nargs=-1, required=True, metavar="CHAPTER...")
@click.option("--submissions", type=click.Path(path_type=Path), help="A folder or zip from Canvas, Moodle or nbgrader.")
@click.option("--jobs", type=click.IntRange(min=1), help="Submissions that run at once (default: the number of cores).")
@device_option
@click.option("--force", is_flag=True, help="Grade again what has not changed.")
@course_option
@json_option
@_people_read
def autograde(
    chapters: tuple[str, ...],
    submissions: Path | None,
    jobs: int | None,
    device: str,
    force: bool,
    course_dir: Path,
    json_: bool,
) -> None:
    """Grade submissions into the gradebook and write feedback.

    Example: tfcourse autograde 03 --submissions ~/Downloads/submissions.zip
    """
    from autograder.course import Course

    names = _chapter_names(project_root(), chapters)
    course = Course.open(course_dir)
    outcome = [
        _autograde(course, name, submissions, jobs or os.cpu_count() or 1, device, force, quiet=json_) for name in names
    ]
    if json_:
        as_json(outcome)
    if any(result["status"] == "not recorded" for chapter in outcome for result in chapter["results"]):
        sys.exit(1)


def _autograde(
    course: Course, chapter: str, submissions: Path | None, jobs: int, device: str, force: bool, *, quiet: bool
) -> dict[str, Any]:
    from autograder.grading.autograde import autograde as grade_chapter
    from autograder.grading.collect import collect
    from autograder.grading.feedback import write_feedback

    collection = collect(course, chapter, submissions)
    with progress_bar(f"grading {chapter}", len(collection.students)) as step:
        results = grade_chapter(
            course,
            chapter,
            jobs=jobs,
            device=device,
            force=force,
            progress=lambda result: step(f"{result.student} {result.status}"),
        )
    with progress_bar(f"feedback {chapter}", len(results)) as step:
        pages = write_feedback(course, chapter, progress=step)
    if not quiet:
        _tell_grades(chapter, collection, results, pages)
    return {
        "chapter": chapter,
        "problems": [problem.to_dict() for problem in collection.problems],
        "results": [result.to_dict() for result in results],
    }


def _tell_grades(chapter: str, collection: Collection, results: Sequence[GradeResult], pages: Sequence[Path]) -> None:
    graded = [result for result in results if result.status == "graded"]
    again = sum(not result.unchanged for result in graded)
    say(
        f"{chapter}: {len(graded)} of {len(results)} submissions graded, {len(graded) - again} of them earlier and unchanged"
    )
    say(f"  {len(pages)} feedback pages in {pages[0].parents[2]}" if pages else "  no feedback pages")
    for problem in collection.problems:
        say(f"  {problem}")
    for result in results:
        for problem in result.problems:
            say(f"  {result.student}: {problem}")
    pending = sum(result.pending for result in results)
    if pending:
        say(
            f"  {pending} answers wait for manual grading: open the formgrader (`jupyter notebook` in the course folder, menu Nbgrader)"
        )


@main.command()
@click.argument("chapters", nargs=-1, metavar="[CHAPTER...]")
@device_option
@json_option
@_people_read
def solve(chapters: tuple[str, ...], device: str, json_: bool) -> None:
    """Run the solutions: every exercise must get full marks, every stub none.

    Example: tfcourse solve --device cpu
    """
    from autograder.grading.settings import resolve_device
    from autograder.solve import solve as solve_chapters

    root = project_root()
    names = _chapter_names(root, chapters)
    where = resolve_device(device)
    with progress_bar("solve", 2 * len(names)) as step:
        solved = solve_chapters(root, names, device=where, progress=step)
    if json_:
        as_json([{"chapter": s.chapter, "exercise": s.exercise, "sound": s.sound, "error": s.error} for s in solved])
    else:
        for item in solved:
            say(str(item))
        unsound = sum(not item.sound for item in solved)
        say(f"{len(solved) - unsound} of {len(solved)} exercises sound on {where}")
    sys.exit(0 if all(item.sound for item in solved) else 1)


@main.command()
@click.argument("chapters", nargs=-1, metavar="[CHAPTER...]")
@course_option
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where the page goes (COURSE/report.html)."
)
@json_option
@_people_read
def report(chapters: tuple[str, ...], course_dir: Path, output: Path | None, json_: bool) -> None:
    """Write the class report.

    Example: tfcourse report 03 --output report.html
    """
    from autograder.course import Course
    from autograder.reports.class_report import summarise, write_report
    from autograder.reports.works import read_works

    course = Course.open(course_dir)
    summaries = summarise(read_works(course, _chapter_names(project_root(), chapters) if chapters else ()))
    path = write_report(summaries, output or course.root / "report.html", title="Class report")
    if json_:
        as_json({"report": path, "chapters": [summary.to_dict() for summary in summaries]})
    else:
        say(f"Report on {', '.join(summary.chapter for summary in summaries)}: {path}")


@main.command()
@click.argument("chapters", nargs=-1, metavar="[CHAPTER...]")
@course_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "canvas", "moodle"]),
    default="csv",
    show_default=True,
    help="Whose columns.",
)
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="The folder to write to (COURSE/export).")
@json_option
@_people_read
def export(chapters: tuple[str, ...], course_dir: Path, form: str, to: Path | None, json_: bool) -> None:
    """Write grades for a learning platform.

    Example: tfcourse export --format canvas
    """
    from autograder.course import Course
    from autograder.reports.export import export as export_grades
    from autograder.reports.grades import read_grades

    course = Course.open(course_dir)
    grades = read_grades(course, _chapter_names(project_root(), chapters) if chapters else ())
    paths = export_grades(grades, form, to or course.root / "export")
    if json_:
        as_json({"files": paths})
        return
    for path in paths:
        say(str(path))
    pending = sum(grade.pending for grade in grades)
    if pending:
        say(f"{pending} of these grades still wait for manual grading.")


@main.command()
@click.argument("notebook", type=click.Path(path_type=Path))
@json_option
@_people_read
def validate(notebook: Path, json_: bool) -> None:
    """Check your notebook before you hand it in: the visible part of the grader.

    Example: tfcourse validate 03_scaled_dot_product.ipynb
    """
    from autograder.checking.validate import NotebookError
    from autograder.checking.validate import report as validate_and_report

    try:
        sys.exit(validate_and_report(notebook, as_json=json_, show=say))
    except NotebookError as error:
        fail(str(error))


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if something has drifted.")
@json_option
@_people_read
def sync(check: bool, json_: bool) -> None:
    """Write stubs and solution notebooks from the reference.

    Example: tfcourse sync --check
    """
    from autograder.authoring.sync import sync as sync_chapters

    drifts = sync_chapters(project_root(), check=check)
    if json_:
        as_json([vars(drift) for drift in drifts])
    else:
        for drift in drifts:
            say(str(drift))
        say(
            "Everything agrees with the reference."
            if not drifts
            else f"{len(drifts)} {'drifts' if check else 'places brought in step'}"
        )
    sys.exit(1 if check and drifts else 0)


@main.command("sample-class")
@click.argument("chapters", nargs=-1, metavar="[CHAPTER...]")
@click.option(
    "--students", type=click.IntRange(min=1, max=5000), default=24, show_default=True, help="How many students."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same class.")
@course_option
@json_option
@_people_read
def sample_class(chapters: tuple[str, ...], students: int, seed: int, course_dir: Path, json_: bool) -> None:
    """Make a class whose mistakes are drawn from the misconceptions.

    Example: tfcourse sample-class --students 24
    """
    from autograder.course import Course
    from autograder.grading.sample_class import sample_class as make_class

    root = project_root()
    names = _chapter_names(root, chapters)
    made = make_class(root, Course.open(course_dir), names, students=students, seed=seed)
    if json_:
        as_json([student.to_dict() for student in made])
    else:
        say(f"{len(made)} students handed in {', '.join(names)} in {course_dir / 'submitted'}")


@main.command()
@course_option
@json_option
@_people_read
def doctor(course_dir: Path, json_: bool) -> None:
    """Look at versions, devices, isolation and gradebook; say what is missing and how to get it.

    Example: tfcourse doctor
    """
    from autograder.doctor import examine

    items = examine(course_dir)
    if json_:
        as_json([vars(item) for item in items])
    else:
        marks = {"ok": "ok     ", "note": "note   ", "missing": "MISSING"}
        for item in items:
            say(
                f"{marks[item.state]}  {item.name}: {item.detail}"
                + (f"\n         {item.remedy}" if item.remedy else "")
            )
    sys.exit(1 if any(item.state == "missing" for item in items) else 0)
