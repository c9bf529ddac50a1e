"""Release chapters: nbgrader's source and release notebooks, and the students' package.

Outside the repository a notebook is named after its chapter (`03_scaled_dot_product.ipynb`), because students and learning platforms see
it without its folder. Inside, `solutions/NN/exercises.ipynb` mirrors `chapters/NN/exercises.md`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.atomic_files import remove_stale_temp_files, write_all_or_none
from autograder.course.authoring.chapter import Chapter, find_chapter, load_chapters, raise_if_drifted
from autograder.course.authoring.myst import write_notebook
from autograder.course.authoring.selection import provided_exercises, require_names, select_exercises
from autograder.course.authoring.solution_notebook import source_notebook
from autograder.course.authoring.sync import sync
from autograder.course.course_file import CourseFile, assignment_sentences, course_file_path, read_course_file
from autograder.course.earlier_releases import add_replaced_texts, earlier_texts_path
from autograder.course.folder import Course
from autograder.course.known_names import store_project_chapters
from autograder.course.release.leaks import Material, find_leaks, refuse_leaks
from autograder.course.release.nbgrader_release import generate_assignment, released_notebook
from autograder.course.release.secret_texts import project_secrets
from autograder.course.release.student_files import write_student_files
from autograder.errors import CourseError

STUDENT_FOLDER = "student"


@dataclass(frozen=True)
class ReleasedFiles:
    """The files of a released chapter."""

    chapter: str
    source: Path  # nbgrader's source notebook, with solutions
    notebook: Path  # the notebook that students get, nbgrader's release
    wheel: Path  # the students' package
    package: Path  # a zip archive with notebook, package and instructions, for a learning platform


def assign(
    root: Path, course: Course, chapter_names: Sequence[str], progress: Callable[[str], None] = lambda step: None
) -> list[ReleasedFiles]:
    """Release chapters into a course folder.

    For each chapter this writes ``source/CHAPTER/CHAPTER.ipynb``, lets nbgrader create ``release/CHAPTER/CHAPTER.ipynb`` and its gradebook
    entries, and writes notebook, package and instructions to ``student/CHAPTER/`` and, as one file, to ``student/CHAPTER.zip``. It may be
    repeated: the same chapter gives the same files, and grades stay. All files are created in a temporary folder and searched for
    solutions before any is written to the course.

    Args:
        course: the course folder. Its ``course.toml`` selects the exercises and questions of a chapter that are assigned.
        chapter_names: names of chapters, or the beginnings of them.
        progress: receives each step as a line.

    Raises:
        CourseError: if there is no such chapter, ``course.toml`` is wrong, something has drifted from the reference, a solution would
            get out, nbgrader refuses, or the course folder cannot be written.
    """
    selected = selected_chapters(root, course, chapter_names)
    for chapter in selected:
        _refuse_other_notebooks(course, chapter)
    with tempfile.TemporaryDirectory() as folder:
        # The last chapter first: its package needs the question sheets of all chapters, which are then recorded together.
        last_first = sorted(selected, key=lambda chapter: chapter.name, reverse=True)
        materials = {}
        for chapter in last_first:
            progress(f"{chapter.name}: notebook, package, and the lesson, which runs if it has changed")
            materials[chapter] = make_student_files(root, course, chapter, Path(folder))
        _refuse_solutions(root, materials)
        contents = {
            chapter: {Path(STUDENT_FOLDER) / path.relative_to(folder): path.read_bytes() for path in paths}
            for chapter, paths in materials.items()
        }
        published = _publish_all(course, contents, selected)
    store_project_chapters(course.root, (chapter.name for chapter in load_chapters(root)))
    course.secret_seed()  # grading starts its workers with it, before it has read the course's configuration
    return published


def selected_chapters(root: Path, course: Course, chapter_names: Sequence[str]) -> list[Chapter]:
    """Return chapters with the exercises that the course assigns, after checking that they match the reference.

    Raises:
        CourseError: if there is no such chapter, ``course.toml`` is wrong, or something has drifted from the reference.
    """
    named = list(dict.fromkeys(find_chapter(root, name) for name in chapter_names))
    if not named:
        raise CourseError("no chapter was named", do="Name at least one, for example 03.")
    plan = _read_plan(root, course)
    selected = [_select_assigned(chapter, plan, course) for chapter in named]
    drifts = sync(root, check=True, only=[chapter.name for chapter in selected])
    raise_if_drifted(drifts, "what would be released is not what the reference says", do="Nothing was released.")
    return selected


def _read_plan(root: Path, course: Course) -> CourseFile:
    own_assignments = (path.name for path in course.folder("source").glob("*") if path.is_dir())
    return read_course_file(course.root, {*(chapter.name for chapter in load_chapters(root)), *own_assignments})


def _select_assigned(chapter: Chapter, plan: CourseFile, course: Course) -> Chapter:
    """Return a chapter with the exercises and questions that the course assigns."""
    wishes = plan.chapter(chapter.name)
    names = [*(wishes.only or ()), *(wishes.without or ())]
    try:
        require_names(chapter, names)
    except CourseError as error:
        raise CourseError(error.what, where=course_file_path(course.root), do=error.do) from error
    return select_exercises(chapter, lambda name: plan.selects(chapter.name, name)) if names else chapter


def _publish_all(
    course: Course, contents: Mapping[Chapter, dict[Path, bytes]], selected: Sequence[Chapter]
) -> list[ReleasedFiles]:
    """Publish chapters in order; if one fails, list the published ones in the error."""
    published: list[ReleasedFiles] = []
    for chapter in selected:
        try:
            published.append(_publish_files(course, chapter, contents[chapter]))
        except CourseError as error:
            if not published:
                raise
            before = ", ".join(item.chapter for item in published)
            raise CourseError(error.what, where=error.where, do=f"{error.do} Released before: {before}.") from error
    return published


def make_student_files(root: Path, course: Course, chapter: Chapter, folder: Path) -> list[Path]:
    """Create all files for a chapter's students."""
    notebook = released_notebook(chapter, course.config())
    sentences = assignment_sentences(_read_plan(root, course), chapter.name)
    return write_student_files(root, chapter, notebook, folder, sentences)


def _refuse_solutions(root: Path, files: Mapping[Chapter, Sequence[Path]]) -> None:
    """Search all students' files for solutions together, because chapters share many files."""
    registry = next(iter(files)).registry
    materials = [
        Material(path, chapter.name, provided=frozenset(exercise.name for exercise in provided_exercises(chapter)))
        for chapter, paths in files.items()
        for path in paths
    ]
    leaks = find_leaks(materials, project_secrets(root, registry), root)
    refuse_leaks(leaks, "the release would give solutions away")


def _publish_files(course: Course, chapter: Chapter, files: dict[Path, bytes]) -> ReleasedFiles:
    name = f"{chapter.name}.ipynb"
    source = course.folder("source", chapter=chapter.name) / name
    release = course.folder("release", chapter=chapter.name)
    ours = course.root / STUDENT_FOLDER / chapter.name
    earlier = earlier_texts_path(course.root, chapter.name)
    with _restore_on_failure([source.parent, release, ours, ours.with_suffix(".zip"), earlier], course.root):
        shutil.rmtree(ours, ignore_errors=True)
        # nbgrader copies files beside the source to students.
        remove_stale_temp_files([source, release / name, ours.with_suffix(".zip")])
        written = {course.root / path: content for path, content in files.items()}
        if (release / name).is_file():
            # Students have the release that is replaced now, and hand it in.
            new = files[Path(STUDENT_FOLDER) / chapter.name / name]
            if texts := add_replaced_texts(course.root, chapter.name, (release / name).read_bytes(), new):
                written[earlier] = texts
        write_all_or_none({source: write_notebook(source_notebook(chapter)), **written})
        release.mkdir(parents=True, exist_ok=True)
        # The gradebook comes last: by now every folder has proved writable.
        generate_assignment(course.config(), chapter.name)
    wheel = next(course.root / path for path in files if path.suffix == ".whl")
    return ReleasedFiles(chapter.name, source, release / name, wheel, ours.with_suffix(".zip"))


def _refuse_other_notebooks(course: Course, chapter: Chapter) -> None:
    """Refuse other notebooks next to the source, because nbgrader would release them, too."""
    folder = course.folder("source", chapter=chapter.name)
    others = [path.name for path in sorted(folder.glob("*.ipynb")) if path.stem != chapter.name]
    if others:
        raise CourseError(
            f"other notebooks lie beside the source of {chapter.name} and would be released with it: {', '.join(others)}",
            where=folder,
            do="Move them elsewhere.",
        )


@contextmanager
def _restore_on_failure(paths: Sequence[Path], course: Path) -> Iterator[None]:
    """Restore files and folders if the block fails."""
    with tempfile.TemporaryDirectory() as folder:
        saved = {path: Path(folder) / str(number) for number, path in enumerate(paths)}
        try:
            for path, copy in saved.items():
                if path.is_dir():
                    shutil.copytree(path, copy)
                elif path.exists():
                    shutil.copy2(path, copy)
            yield
        except BaseException as error:
            for path, copy in saved.items():
                _restore_file(path, copy)
            if isinstance(error, OSError):
                reason = error.strerror or str(error)
                raise CourseError(
                    f"the course folder cannot be written ({reason})",
                    where=error.filename or course,
                    do="The chapter was not released. Check the folder's permissions and free space, or choose another with "
                    "--course.",
                ) from error
            raise


def _restore_file(path: Path, copy: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if copy.is_dir():
            shutil.copytree(copy, path)
        elif copy.exists():
            shutil.copy2(copy, path)
        elif not any(path.parent.iterdir()):
            # The folder was created for this file only.
            path.parent.rmdir()


@dataclass(frozen=True)
class Preview:
    """A chapter's release in a temporary folder."""

    gradebook_url: str  # a temporary gradebook that holds this chapter alone
    source: Path  # the source notebook
    wheel: Path  # the students' package


@contextmanager
def preview_release(root: Path, course: Course, chapter_names: Sequence[str]) -> Iterator[dict[str, Preview]]:
    """Release chapters into a temporary folder that exists while the block runs.

    Args:
        course: the course, in which nothing changes.

    Raises:
        CourseError: as ``assign`` does.
    """
    selected = selected_chapters(root, course, chapter_names)
    with tempfile.TemporaryDirectory() as folder:
        yield {
            chapter.name: _make_preview(root, course, chapter, Path(folder).resolve() / chapter.name)
            for chapter in selected
        }


def _make_preview(root: Path, course: Course, chapter: Chapter, folder: Path) -> Preview:
    config = course.config()
    config.CourseDirectory.root = str(folder)
    # The course's own gradebook may be on a server.
    config.CourseDirectory.db_url = url = f"sqlite:///{folder / 'gradebook.db'}"
    source = folder / "source" / chapter.name / f"{chapter.name}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes(write_notebook(source_notebook(chapter)))
    generate_assignment(config, chapter.name)
    files = make_student_files(root, course, chapter, folder / "student")
    return Preview(url, source, next(path for path in files if path.suffix == ".whl"))
