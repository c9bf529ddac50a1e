"""The command line: thin commands over the library.

Exit codes: 0 done; 1 the thing examined falls short; 2 wrong usage, wrong input or wrong environment; 130 stopped with Ctrl-C, 143 with
SIGTERM.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import click

    from autograder.commands.console import FELL_SHORT, Outcome, command, example, progress_bar
    from autograder.course.paths import (
        course_folder,
        new_course,
        project_chapters,
        project_root,
        refuse_unwritable,
        typed,
    )
except ModuleNotFoundError as _missing:
    # The reference and the checks work without what the commands need, for instance on a machine that only lends its GPU.
    sys.stderr.write(f"tfcourse: {_missing}. Install what the commands need: pip install 'tfcourse[grading,book]'\n")
    raise SystemExit(2) from None

from autograder.errors import CourseError
from tfcourse import __version__

if TYPE_CHECKING:
    from autograder.collecting.collect import Collection
    from autograder.course.folder import Course
    from autograder.engine.settings import GradingSettings
    from autograder.engine.workers.executor import Workers
    from autograder.grading.regrade import Regrade
    from autograder.record.results import GradeResult
    from autograder.submission.problem import Problem

# As the shell has it, before anything is added to it.
_PATH = os.environ.get("PATH")

# Libraries are imported inside the commands: `tfcourse --help` must not wait for torch and nbgrader.

_OTHER_COURSE = "Check who may write there, or name another course folder with --course."

chapters_argument = click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")
required_chapters_argument = click.argument("chapters", nargs=-1, required=True, metavar="CHAPTER...")
course_option = click.option(
    "--course",
    "course_dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="The course folder, an nbgrader course. [default: the one that you are in, else course/ in the project]",
)

jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="Submissions that run at once. [default: the number of cores]"
)
device_option = click.option(
    "--device",
    metavar="[cpu|cuda|auto]",
    default="auto",
    show_default=True,
    help="Where student code runs; auto takes a GPU where there is one.",
)
weaker_option = click.option(
    "--allow-weaker-isolation",
    "allow_weaker",
    is_flag=True,
    help="Go on where this machine cannot shut submissions in as the course asks. Only for code that you trust.",
)
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Run submissions on the workers of a Dask scheduler; local starts one on this machine.",
)


class _Command(click.Command):
    """A command of which the list of commands tells the whole first sentence, in two lines if it must."""

    def get_short_help_str(self, limit: int = 45) -> str:
        return super().get_short_help_str(sys.maxsize)


class _Group(click.Group):
    command_class = _Command


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tfcourse")
@example
def main() -> None:
    """Build, assign, autograde and solve the course.

    A chapter can be named by its beginning, such as 03.

    Example:
      tfcourse assign 03 && tfcourse autograde 03 --submissions downloads.zip
    """
    if shutil.which("alembic") is None:
        # nbgrader calls it by its name when it makes a gradebook. It lies beside this Python, on the path or not.
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


@main.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the site goes. [default: book/_build/html]",
)
@click.option(
    "--offer",
    "offered",
    multiple=True,
    metavar="CHAPTER",
    help="Offer only this chapter's notebook and package for download; may be repeated. [default: all]",
)
@command
def build(output: Path | None, offered: tuple[str, ...]) -> Outcome:
    """Build the static site; warnings are errors.

    A chapter's package holds the solutions of the chapters before it: while those are due, --offer only what is open.

    Example:
      tfcourse build --offer 03
    """
    root = project_root()
    only = _project_chapters(root, offered) if offered else None
    if output is not None:
        refuse_unwritable(output.resolve(), "Name a folder that you may write to with --output.")
    from autograder.release.leaks import find_leaks, refuse_leaks, secrets_of, site_materials
    from autograder.release.student_files import student_files
    from autograder.site.build import build_site

    with progress_bar("build") as step:
        step("students' files")
        downloads = student_files(root, root / ".cache" / "student", only=only)
        site = build_site(root, output=output, downloads=downloads, progress=step)
        step("searching the pages for solutions")
        refuse_leaks(
            find_leaks(site_materials(site.output), secrets_of(root)),
            "do not publish this site: it gives solutions away",
        )
    return Outcome(
        {
            "output": site.output,
            "pages": site.pages,
            "seconds": site.seconds,
            "lessons": site.runtimes,
            "words": site.words,
        },
        "\n".join(
            [
                *(f"{lesson.split('/')[1]}: a lesson of {words:,} words" for lesson, words in site.words.items()),
                f"{len(site.pages)} pages in {site.seconds:.0f} s. Open {site.output / 'index.html'}",
            ]
        ),
    )


@main.command()
@required_chapters_argument
@course_option
@command
def assign(chapters: tuple[str, ...], course_dir: Path | None) -> Outcome:
    """Release chapters to students.

    This makes nbgrader's source and release, and for each chapter an archive with the notebook and the student's tfcourse.

    Example:
      tfcourse assign 03 04
    """
    root = project_root()
    folder = course_folder(course_dir)
    refuse_unwritable(folder, _OTHER_COURSE)
    from autograder.release.assign import assign as assign_chapters

    names = _project_chapters(root, chapters)
    with new_course(folder) as course, progress_bar("assign"):
        made = assign_chapters(root, course, names)
    lines = [
        f"{item.chapter}: give students {item.package}\n  notebook {item.notebook}\n  package  {item.wheel}"
        for item in made
    ]
    return Outcome([vars(item) for item in made], "\n".join(lines))


def _project_chapters(root: Path, wanted: Sequence[str]) -> list[str]:
    """Return the project's full names for what was typed; every chapter if nothing was."""
    from autograder.authoring.chapter import chapters, find_chapter

    if wanted:
        return list(dict.fromkeys(find_chapter(root, name).name for name in wanted))
    names = [chapter.name for chapter in chapters(root)]
    if not names:
        raise CourseError("no chapter has exercises", where=root / "chapters", do="Add chapters/NN_topic/exercises.md.")
    return names


@main.command()
@required_chapters_argument
@click.option("--submissions", type=click.Path(path_type=Path), help="A folder or zip from Canvas, Moodle or nbgrader.")
@jobs_option
@device_option
@click.option("--force", is_flag=True, help="Grade again what has not changed.")
@weaker_option
@scheduler_option
@course_option
@command
def autograde(
    chapters: tuple[str, ...],
    submissions: Path | None,
    jobs: int | None,
    device: str,
    force: bool,
    allow_weaker: bool,
    scheduler: str | None,
    course_dir: Path | None,
) -> Outcome:
    """Grade submissions into the gradebook and write feedback.

    Without --submissions, what lies in COURSE/submitted is graded. A run that was stopped or killed goes on where it was when the
    command is given again.

    Example:
      tfcourse autograde 03 --submissions ~/Downloads/submissions.zip
    """
    from autograder.collecting.preflight import refuse_other_work
    from autograder.course.folder import Course
    from autograder.course.lock import course_lock
    from autograder.engine.workers.executor import Workers
    from autograder.gradebook.reader import released_chapters
    from autograder.grading.released_points import refuse_other_points

    course = Course.open(course_folder(course_dir))
    refuse_unwritable(course.root, _OTHER_COURSE)
    names = released_chapters(course, chapters)
    for name in names:
        refuse_other_points(course, name)
    settings = _settings(course, jobs, device, allow_weaker, scheduler)
    if submissions is not None:
        for name in names:
            refuse_other_work(course, name, submissions)
    else:
        for name in names:
            _wanted(course, name, partial(_in_place, course, name))
    with course_lock(course), Workers() as workers:
        done = [_autograde(course, name, submissions, settings, force, workers) for name in names]
    failed = any(data["missing"] or any(map(_left_undone, data["results"])) for data, _ in done)
    return Outcome([data for data, _ in done], "\n".join(text for _, text in done), FELL_SHORT if failed else 0)


def _left_undone(result: Mapping[str, Any]) -> bool:
    """Whether somebody has to do something before a submission has a grade, or its author a page."""
    from autograder.feedback.pages import KIND as NO_FEEDBACK

    return result["status"] in ("not recorded", "to decide") or any(
        problem["kind"] == NO_FEEDBACK for problem in result["problems"]
    )


def _settings(
    course: Course, jobs: int | None, device: str, allow_weaker: bool, scheduler: str | None
) -> GradingSettings:
    """Return the course's settings with what was asked for on the command line."""
    from autograder.engine.settings import resolve_device
    from autograder.grading.autograde import configured_settings
    from autograder.parallel import cores

    settings = configured_settings(course)
    return replace(
        settings,
        jobs=jobs or cores(),
        device=resolve_device(device),
        allow_weaker=allow_weaker or settings.allow_weaker,
        scheduler=scheduler or settings.scheduler,
    )


def _autograde(
    course: Course, chapter: str, submissions: Path | None, settings: GradingSettings, force: bool, workers: Workers
) -> tuple[dict[str, Any], str]:
    """Collect, grade and tell the students of one chapter; return what came of it as data and as text."""
    from autograder.collecting.collect import collect
    from autograder.commands.progress import grading_progress
    from autograder.grading.autograde import autograde as grade_chapter
    from autograder.reports.grades import answers_waiting

    collection = collect(course, chapter, submissions, chapters=project_chapters())
    students = _wanted(course, chapter, lambda: collection)
    with _naming_who_is_missing(collection), grading_progress(f"grading {chapter}", len(students)) as step:
        results = grade_chapter(
            course,
            chapter,
            jobs=settings.jobs,
            device=settings.device,
            force=force,
            locked=True,
            settings=settings,
            progress=step,
            workers=workers,
        )
        pages, results = _write_feedback(course, chapter, results)
    data = {
        "chapter": chapter,
        "missing": [item.to_dict() for item in collection.missing],
        "problems": [problem.to_dict() for problem in collection.problems],
        "results": [result.to_dict() for result in results],
        "answers_pending": sum(answers for _, answers in answers_waiting(course, chapter)),
        "feedback": pages,
    }
    return data, "\n".join(
        [_tell_grades(course, collection, results, pages), *_tell_means(course, chapter, results, settings)]
    )


@contextmanager
def _naming_who_is_missing(collection: Collection) -> Iterator[None]:
    """Have an error that ends a run say as well who was not brought in: a full disk is the cause of both."""
    try:
        yield
    except CourseError as error:
        if not collection.missing:
            raise
        who = ", ".join(item.student for item in collection.missing)
        what = f"{error.what}\n  not brought in, {len(collection.missing)} of {collection.chapter}: {who}"
        raise CourseError(what, where=error.where, do=error.do) from error


def _in_place(course: Course, chapter: str) -> Collection:
    from autograder.collecting.collect import collect

    return collect(course, chapter, chapters=project_chapters())


def _wanted(course: Course, chapter: str, collected: Callable[[], Collection]) -> list[str]:
    """Return whose submissions there are; if there are none, say also what was found in their place."""
    from autograder.grading.autograde import wanted_students

    try:
        return wanted_students(course, chapter)
    except CourseError as error:
        told = "".join(f"\n  {problem}" for problem in collected().problems)
        raise CourseError(f"{error.what}{told}", where=error.where, do=error.do) from error


def _write_feedback(
    course: Course, chapter: str, results: Sequence[GradeResult]
) -> tuple[list[Path], list[GradeResult]]:
    """Write all pages of a chapter; return them, and the results with the pages that could not be written among the problems."""
    from autograder.feedback.pages import graded_students, write_feedback
    from autograder.grading.plugin import configured
    from autograder.record.results import read_results

    students = graded_students(course, chapter)
    with progress_bar(f"feedback {chapter}", len(students), every=len(students)) as step:
        pages = write_feedback(course, chapter, configured(course), students=students, progress=step)
    problems = {result.student: result.problems for result in read_results(course, chapter)}
    return pages, [replace(result, problems=problems.get(result.student, result.problems)) for result in results]


def _tell_means(course: Course, chapter: str, results: Sequence[GradeResult], settings: GradingSettings) -> list[str]:
    """Return how well submissions were shut in, and which grades were made by other means than there are now."""
    from autograder.grading.autograde import as_released, provenance
    from autograder.record.provenance import changed_since, isolation_line

    isolation = isolation_line(result.provenance for result in results if not result.unchanged)
    kept = [result.provenance for result in results if result.unchanged]
    again = typed(course, "regrade", chapter)
    changed = changed_since(kept, provenance(as_released(course, chapter, settings)), again) if kept else ""
    return [f"  {line}" for line in (isolation, changed) if line]


def _tell_grades(course: Course, collection: Collection, results: Sequence[GradeResult], pages: Sequence[Path]) -> str:
    from autograder.record.results import waiting
    from autograder.reports.grades import answers_waiting

    chapter = collection.chapter
    graded = [result for result in results if result.status == "graded"]
    earlier = sum(result.unchanged for result in graded)
    # Whoever is missing may have handed in something earlier, which counts already.
    absent = {item.student for item in collection.missing} - {result.student for result in results}
    total = len(results) + len(absent)
    lines = [f"{chapter}: {len(graded)} of {total} submissions graded, {earlier} of them earlier and unchanged"]
    if collection.missing:
        lines.append(f"  {len(collection.missing)} not brought in")
    lines.append(
        f"  {len(pages)} feedback page{'s' * (len(pages) != 1)} in {course.folder('feedback')}"
        if pages
        else "  no feedback pages"
    )
    lines += [f"  {problem}" for problem in collection.problems]
    told = [(result.student, problem) for result in results for problem in result.problems]
    lines += [f"  {_before(problem)}{student}: {problem}" for student, problem in told if not problem.remark]
    lines += [f"  note: {student}: {problem}" for student, problem in told if problem.remark]
    if pending := waiting(answers_waiting(course, chapter)):
        lines.append(f"  {pending}: {_formgrader(course)}")
    return "\n".join(lines)


def _before(problem: Problem) -> str:
    """Return the word that a problem is listed under, if it asks for a decision."""
    return "to decide: " if problem.kind == "to decide" else ""


def _formgrader(course: Course) -> str:
    """Return how to get to nbgrader's formgrader, also where this Python's environment is not activated."""
    own = Path(sys.executable).parent / "jupyter"
    found = shutil.which("jupyter", path=_PATH)
    jupyter = "jupyter" if found is not None and Path(found).parent == own.parent else str(own)
    return f"cd {shlex.quote(str(course.root))} && {shlex.quote(jupyter)} notebook, then the menu Nbgrader"


@main.command()
@required_chapters_argument
@click.option("--student", "students", multiple=True, metavar="STUDENT", help="Only this one's grade; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Write nothing; only say who would move.")
@click.option(
    "--new-points", is_flag=True, help="First release the chapter again, under the points that its checks give now."
)
@jobs_option
@device_option
@weaker_option
@scheduler_option
@course_option
@command
def regrade(
    chapters: tuple[str, ...],
    students: tuple[str, ...],
    dry_run: bool,
    new_points: bool,
    jobs: int | None,
    device: str,
    allow_weaker: bool,
    scheduler: str | None,
    course_dir: Path | None,
) -> Outcome:
    """Grade again after the checks have changed, and say who moved.

    What was graded by other checks, in another environment or with other limits is graded again. Points and comments that a person gave
    are kept. A chapter that was released under other points is graded again only with --new-points.

    Example:
      tfcourse regrade 03 --dry-run
    """
    from autograder.course.folder import Course
    from autograder.course.lock import course_lock
    from autograder.engine.workers.executor import Workers
    from autograder.gradebook.reader import released_chapters
    from autograder.grading.released_points import refuse_other_points
    from autograder.release.assign import assign as assign_chapters

    course = Course.open(course_folder(course_dir))
    if dry_run and new_points:
        raise click.UsageError("--new-points changes the course, and --dry-run changes nothing; give one of them")
    if not dry_run:
        refuse_unwritable(course.root, _OTHER_COURSE)
    names = released_chapters(course, chapters)
    for name in () if new_points else names:
        refuse_other_points(course, name)
    settings = _settings(course, jobs, device, allow_weaker, scheduler)
    with nullcontext() if dry_run else course_lock(course), Workers() as workers:
        if new_points:
            assign_chapters(project_root(), course, names)
        done = [_regrade(course, name, students or None, settings, dry_run, workers) for name in names]
    text = "\n".join(_tell_regrade(item) for item in done)
    failed = any(item.failed for item in done)
    return Outcome([item.to_dict() for item in done], text, FELL_SHORT if failed else 0)


def _regrade(
    course: Course,
    chapter: str,
    students: Sequence[str] | None,
    settings: GradingSettings,
    dry_run: bool,
    workers: Workers,
) -> Regrade:
    from autograder.commands.progress import grading_progress
    from autograder.grading.regrade import regrade as regrade_chapter
    from autograder.grading.regrade import to_regrade
    from autograder.grading.tried import tried_in

    chosen = to_regrade(course, chapter, students, settings)
    with grading_progress(f"grading {chapter} again", len(chosen.students)) as step:
        done = regrade_chapter(
            course,
            chosen,
            settings,
            dry_run=dry_run,
            locked=True,
            progress=step,
            workers=workers,
            tried=tried_in(course, chapter, writes=dry_run),
        )
    if not dry_run:
        # Also where nothing was graded: a regrade that was killed may have left the pages of what it had recorded.
        _write_feedback(course, chapter, done.results)
    return done


def _tell_regrade(done: Regrade) -> str:
    """Return who moved, as a table."""
    would = "would move" if done.dry_run else "moved"
    lines = [f"{done.chapter}: {len(done.moves)} {would}, {done.stayed} stayed"]
    width = max((len(move.student) for move in done.moves), default=0)
    for move in done.moves:
        exercises = ", ".join(f"{name} {before:g} → {after:g}" for name, before, after in move.exercises)
        lines.append(f"  {move.student:<{width}}  {move.before:6g} → {move.after:<6g}  {exercises}")
    lines += [f"  {result.student}: {problem}" for result in done.failed for problem in result.problems]
    lines += [f"  {phrase}" for phrase in done.left_out()]
    return "\n".join(lines)


@main.command()
@click.argument("student", metavar="STUDENT")
@click.argument("chapter", metavar="CHAPTER")
@click.argument("file", metavar="FILE")
@jobs_option
@device_option
@weaker_option
@scheduler_option
@course_option
@command
def choose(
    student: str,
    chapter: str,
    file: str,
    jobs: int | None,
    device: str,
    allow_weaker: bool,
    scheduler: str | None,
    course_dir: Path | None,
) -> Outcome:
    """Decide which of a student's notebooks counts, and grade it.

    Where autograde says 'to decide', FILE is one of the notebooks that it names. A new choice undoes an earlier one.

    Example:
      tfcourse choose ada 03 solution.ipynb
    """
    from autograder.course.folder import Course
    from autograder.course.lock import course_lock
    from autograder.engine.workers.executor import Workers
    from autograder.gradebook.reader import released_chapters
    from autograder.grading.choose import choose as choose_notebook

    course = Course.open(course_folder(course_dir))
    refuse_unwritable(course.root, _OTHER_COURSE)
    (name,) = released_chapters(course, [chapter])
    settings = _settings(course, jobs, device, allow_weaker, scheduler)
    with course_lock(course), Workers() as workers:
        choose_notebook(course, student, name, file)
        data, text = _autograde(course, name, None, settings, False, workers)
    failed = any(_left_undone(result) for result in data["results"] if result["student"] == student)
    return Outcome(data, f"{student}, {name}: {file} counts\n{text}", FELL_SHORT if failed else 0)


@main.command()
@click.argument("student", metavar="STUDENT")
@click.argument("chapter", metavar="CHAPTER")
@course_option
@command
def replay(student: str, chapter: str, course_dir: Path | None) -> Outcome:
    """Make a grade again and compare.

    The submission is run with the recorded seed, device and limits. Nothing is written.

    Example:
      tfcourse replay ada 03
    """
    from autograder.course.folder import Course
    from autograder.gradebook.reader import released_chapters
    from autograder.grading.replay import replay as replay_grade

    course = Course.open(course_folder(course_dir))
    (name,) = released_chapters(course, [chapter])
    done = replay_grade(course, name, student)
    points = f"{done.again.score:g} of the {done.again.max_score:g} points that the checks give"
    lines = [f"{student}, {name}: {'the same grade' if done.same else 'another grade'}, {points}"]
    lines += [f"  {sentence}" for sentence in done.differences]
    lines += [f"  since then: {sentence}" for sentence in done.changes]
    return Outcome(done.to_dict(), "\n".join(lines), 0 if done.same else FELL_SHORT)


@main.command()
@chapters_argument
@click.option(
    "--device",
    metavar="[cpu|cuda|auto]",
    default="auto",
    show_default=True,
    help="Where the solutions run; auto takes the CPU, and a GPU as well where there is one.",
)
@command
def solve(chapters: tuple[str, ...], device: str) -> Outcome:
    """Run the solutions and the stubs.

    Every exercise must get full marks from its solution and none from its stub.

    Example:
      tfcourse solve --device cpu
    """
    root = project_root()
    from autograder.selftest.solve import devices
    from autograder.selftest.solve import solve as solve_chapters

    names = _project_chapters(root, chapters)
    where = devices(device)
    with progress_bar("solve", 2 * len(names) * len(where)) as step:
        solved = [item for place in where for item in solve_chapters(root, names, device=place, progress=step)]
    sound = sum(item.sound for item in solved)
    lines = [str(item) for item in solved]
    lines.append(f"{sound} of {len(solved)} exercises sound ({' and '.join(where)})")
    all_sound = sound == len(solved) > 0
    return Outcome([item.to_dict() for item in solved], "\n".join(lines), 0 if all_sound else FELL_SHORT)


@main.command()
@chapters_argument
@course_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the page goes. [default: COURSE/report.html]",
)
@command
def report(chapters: tuple[str, ...], course_dir: Path | None, output: Path | None) -> Outcome:
    """Write the class report.

    One page that opens from the disk: scores, exercises, misconceptions, problems, and the students behind each number.

    Example:
      tfcourse report 03 --output report.html
    """
    from autograder.course.folder import Course
    from autograder.gradebook.reader import released_chapters
    from autograder.record.results import waiting
    from autograder.reports.class_report import summarise, write_report
    from autograder.reports.missing import gaps, not_brought_in, tell_gaps
    from autograder.reports.student_work import read_works

    course = Course.open(course_folder(course_dir))
    works = read_works(course, released_chapters(course, chapters))
    grades = [work.grade for work in works]
    lacking = not_brought_in(course, grades)
    summaries = summarise(works, {chapter: [item.student for item in found] for chapter, found in lacking.items()})
    path = write_report(summaries, (output or course.root / "report.html").resolve(), title="Class report")
    lines = [f"report on {', '.join(summary.chapter for summary in summaries)}: {path}"]
    page = next((work.feedback for work in works if work.feedback is not None), None)
    if page is not None:
        lines.append(f"feedback, for example: {page}")
    pending = ((work.grade.student, work.grade.pending) for work in works)
    if phrase := waiting(pending):
        lines.append(f"{phrase}: {_formgrader(course)}")
    for work in works:
        if not work.grade.decided:
            lines += [f"to decide: {work.grade.student}: {problem}" for problem in work.problems]
    lines += tell_gaps(course, grades)
    data = {"report": path, "chapters": [summary.to_dict() for summary in summaries], **gaps(course, grades)}
    return Outcome(data, "\n".join(lines), FELL_SHORT if lacking else 0)


@main.command()
@chapters_argument
@course_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "canvas", "moodle"]),
    default="csv",
    show_default=True,
    help="Whose columns.",
)
@click.option(
    "--to", type=click.Path(path_type=Path, file_okay=False), help="The folder to write to. [default: COURSE/export]"
)
@command
def export(chapters: tuple[str, ...], course_dir: Path | None, form: str, to: Path | None) -> Outcome:
    """Write grades for a learning platform.

    One table with nbgrader's columns, one gradebook for Canvas, or a grading worksheet per chapter for Moodle.

    Example:
      tfcourse export --format canvas
    """
    from autograder.course.folder import Course
    from autograder.gradebook.reader import released_chapters
    from autograder.record.results import waiting
    from autograder.reports.export import HINTS, not_begun, open_choices, undecided
    from autograder.reports.export import export as export_grades
    from autograder.reports.grades import read_grades
    from autograder.reports.missing import gaps, not_brought_in, tell_gaps, unclear

    course = Course.open(course_folder(course_dir))
    grades = read_grades(course, released_chapters(course, chapters))
    files = export_grades(grades, form, (to or course.root / "export").resolve())
    lines = [str(file.path) for file in files]
    for file in files:
        if file.left_out:
            who = ", ".join(file.left_out)
            lines.append(f"not in {file.path.name}, because their number on the platform is not known: {who}")
    if empty := not_begun(grades):
        lines.append(empty)
    if open_ := open_choices(grades):
        lines.append(open_)
    if refused := undecided(grades):
        lines.append(refused if form == "csv" else f"{refused}. Not in the file: decide, and enter it by hand.")
    if doubtful := unclear(grades):
        lines.append(doubtful if form == "csv" else f"{doubtful}. Not in the file.")
    lines += tell_gaps(course, grades)
    if phrase := waiting((grade.student, grade.pending) for grade in grades):
        lines.append(phrase)
    lines += [HINTS[form]] if form in HINTS else []
    data = {
        "files": [vars(file) for file in files],
        "pending": sum(grade.pending for grade in grades),
        "not_gradable": [
            {"student": grade.student, "chapter": grade.chapter}
            for grade in grades
            if grade.handed_in and grade.gradable is False
        ],
        "to_decide": [{"student": grade.student, "chapter": grade.chapter} for grade in grades if not grade.decided],
        **gaps(course, grades),
    }
    fell_short = open_ or not_brought_in(course, grades)
    return Outcome(data, "\n".join(lines), FELL_SHORT if fell_short else 0)


@main.command()
@click.argument("notebook", type=click.Path(path_type=Path))
@command
def validate(notebook: Path) -> Outcome:
    """Check a notebook before it is handed in.

    This runs it from the top and asks the visible part of the grader's questions.

    Example:
      tfcourse validate 03_scaled_dot_product.ipynb
    """
    from autograder.checking.validate import NotebookError, describe
    from autograder.checking.validate import validate as validate_notebook

    try:
        found = validate_notebook(notebook)
    except NotebookError as error:
        raise CourseError(str(error)) from error
    return Outcome(found.to_dict(), describe(found), 0 if found.passed else FELL_SHORT)


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if something has drifted.")
@command
def sync(check: bool) -> Outcome:
    """Write stubs and solution notebooks from the reference.

    Example:
      tfcourse sync --check
    """
    root = project_root()
    from autograder.authoring.sync import sync as sync_chapters

    drifts = sync_chapters(root, check=check)
    if check:
        lines = [*map(str, drifts), f"{len(drifts)} drift{'s' * (len(drifts) != 1)}"]
    else:
        lines = [f"brought in step: {drift.file} ({drift.cell or 'all of it'}: {drift.what})" for drift in drifts]
    text = "\n".join(lines) if drifts else "Everything agrees with the reference."
    return Outcome([vars(drift) for drift in drifts], text, FELL_SHORT if check and drifts else 0)


@main.command("sample-class")
@chapters_argument
@click.option(
    "--students", type=click.IntRange(min=1, max=5000), default=24, show_default=True, help="How many students."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same class.")
@click.option("--predict", is_flag=True, help="Also work out the score that each mistake must get.")
@course_option
@command
def sample_class(
    chapters: tuple[str, ...], students: int, seed: int, predict: bool, course_dir: Path | None
) -> Outcome:
    """Invent a class that makes well-known mistakes.

    What everybody did is written to COURSE/sample_class.json.

    Example:
      tfcourse sample-class --students 24
    """
    root = project_root()
    from autograder.course.folder import Course
    from autograder.gradebook.reader import released_chapters
    from autograder.selftest.sample_class import sample_class as make_class

    course = Course.open(course_folder(course_dir))
    refuse_unwritable(course.root, _OTHER_COURSE)
    names = released_chapters(course, chapters)
    made = make_class(root, course, names, students=students, seed=seed, predict=predict)
    handed_in = sum(work.oddity != "not handed in" for student in made for work in student.chapters.values())
    return Outcome(
        [student.to_dict() for student in made],
        f"{len(made)} students: {handed_in} submissions of {', '.join(names)} in {course.folder('submitted')}",
    )


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("prompt", required=False)
@click.option(
    "--ids", metavar="NUMBERS", help="The prompt as token numbers, such as 3,1,4; the result is numbers, too."
)
@click.option(
    "--new-tokens", type=click.IntRange(min=0), default=40, show_default=True, help="How many to write at most."
)
@click.option("--greedy", is_flag=True, help="Take the most probable token each time, and draw nothing.")
@click.option("--temperature", type=float, help="Below 1 likely tokens gain, above 1 unlikely ones do.")
@click.option("--top-k", type=int, help="Draw from the k most probable tokens.")
@click.option("--top-p", type=float, help="Draw from the most probable tokens that reach this probability.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed draws the same text.")
@command
def generate(
    folder: Path,
    prompt: str | None,
    ids: str | None,
    new_tokens: int,
    greedy: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int,
) -> Outcome:
    """Go on with a text, by a published GPT-2, Llama or T5 in the course's own model.

    FOLDER holds config.json, safetensors and, for text, tokenizer.json. Nothing is downloaded.

    Example:
      tfcourse generate gpt2/ "The attention of a reader" --top-p 0.9
    """
    from autograder.commands.generate_text import chain_of, generate_text

    chain = chain_of(temperature=temperature, top_k=top_k, top_p=top_p)
    made = generate_text(folder, prompt, ids=ids, new_tokens=new_tokens, greedy=greedy, chain=chain, seed=seed)
    return Outcome(vars(made), made.text if made.text is not None else " ".join(map(str, made.tokens)))


@main.command()
@course_option
@command
def doctor(course_dir: Path | None) -> Outcome:
    """Say what this machine lacks, and how to get it.

    This looks at versions, devices, isolation and gradebook, and changes nothing.

    Example:
      tfcourse doctor
    """
    from autograder.selftest.doctor import examine

    try:
        folder = course_folder(course_dir)
    except CourseError:
        # The machine can be looked at from anywhere.
        folder = None
    items = examine(folder)
    marks = {"ok": "ok     ", "note": "note   ", "missing": "MISSING"}
    lines = [
        f"{marks[item.state]}  {item.name}: {item.detail}" + (f"\n         {item.remedy}" if item.remedy else "")
        for item in items
    ]
    missing = any(item.state == "missing" for item in items)
    return Outcome([vars(item) for item in items], "\n".join(lines), FELL_SHORT if missing else 0)
