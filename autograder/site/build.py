"""Build the course's site with Jupyter Book in a separate process, and publish it atomically.

Jupyter Book runs in a separate process, because Sphinx leaves global state behind. A second build is fast because parsed documents, outputs
of lessons and unchanged pages are cached; :mod:`autograder.site.incremental` determines which pages are kept. The finished site replaces
the old one atomically, and a failed build does not change the old site.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from autograder.course.authoring.lesson_cache import execution_cache_path, prune_execution_caches
from autograder.course.lock import lock_folder
from autograder.errors import CourseError
from autograder.site.build_log import RunReport, error_tail, parse_warnings, read_report, strip_colours
from autograder.site.downloads import check_downloads, copy_downloads
from autograder.site.incremental import remove_unused_images, skeleton_key
from autograder.site.page_parts.closed_chapters import closed_documents, remove_closed_documents

CONFIG = "_config.yml"
TOC = "book/_toc.yml"
_DERIVED_TOC = "_toc.yml"
_OUTPUT = "book/_build/html"
SLIDES = "slides"
_CACHE = ".cache/site"
_OF_A_SITE = ".buildinfo"
_PROGRESS = re.compile(
    r"^(reading sources|writing output|.*Executing notebook|copying images|build (succeeded|finished))"
)


class SiteError(CourseError):
    """The site could not be built. The message states the error, its location and a remedy."""


@dataclass(frozen=True)
class SiteCourse:
    """The parts of a site that belong to a course: its title and dates."""

    title: str = ""  # the site's title; empty for the project's
    # by chapter, what its pages say of the deadline and of late work
    dates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SiteReport:
    """The report of a finished build."""

    output: Path  # folder of the site; open ``index.html`` in it
    pages: tuple[str, ...]  # the pages, as document names
    seconds: float  # how long the build took
    runtimes: dict[str, float]  # seconds of each executed lesson, from this build or from the cache
    # words of each lesson's paragraphs and lists; code, formulas, captions and folded text are apart
    words: dict[str, int]


def build_site(
    root: Path,
    *,
    output: Path | None = None,
    cache: Path | None = None,
    downloads: Mapping[str, Sequence[Path]] | None = None,
    complete_downloads: Callable[[], object] | None = None,
    chapters: Sequence[str] = (),
    course: SiteCourse | None = None,
    slides: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> SiteReport:
    """Build the course's site; any warning is an error.

    Args:
        root: the course's root folder: it holds ``_config.yml``, ``book/`` and ``chapters/``.
        output: where the site goes, ``book/_build/html`` by default. An existing folder is replaced if it is empty or an older site.
        cache: folder for what makes the next build quick, ``.cache/site`` by default.
        downloads: students' files to offer, by chapter, for example ``{"03_scaled_dot_product": [notebook, wheel]}``.
        complete_downloads: returns when the files of ``downloads`` are written; they are needed when the pages are built, not before.
        chapters: names of the chapters that the site has; all by default.
        course: the course for which the site is: its title, and what its chapters' pages say of deadlines.
        slides: folder of the decks, which becomes the site's folder ``slides``.
        progress: is told each step, one line at a time.

    Returns:
        What was built.

    Raises:
        SiteError: ``root`` is no course, Jupyter Book is missing, a lesson's cell failed, there were warnings, the students' files
            are not fit to publish, another build is running, or the output cannot be written.
    """
    started = time.monotonic()
    root = root.resolve()
    _check_course(root)
    _check_jupyter_book()
    offered = {chapter: [path.resolve() for path in paths] for chapter, paths in (downloads or {}).items()}
    if complete_downloads is None:
        _check_downloads(offered, chapters or list_site_chapters(root))
    output = site_folder(root, output)
    cache = (cache or root / _CACHE).resolve()
    with _convert_write_errors(output, cache):
        _check_output(output)
        with _lock_cache(cache):
            shown = course or SiteCourse()
            decks = () if slides is None else tuple(sorted(path.stem for path in slides.glob("*.html")))
            report = _run_in_cache(root, cache, offered, chapters, shown, decks, progress or (lambda line: None))
            if complete_downloads is not None:
                complete_downloads()
                _check_downloads(offered, chapters or list_site_chapters(root))
            copy_downloads(offered, cache / "_build" / "html")
            shutil.rmtree(cache / "_build" / "html" / SLIDES, ignore_errors=True)
            if slides is not None:
                shutil.copytree(slides, cache / "_build" / "html" / SLIDES)
            _publish_site(cache / "_build" / "html", output)
    seconds = time.monotonic() - started
    return SiteReport(output, pages=report.pages, seconds=seconds, runtimes=report.runtimes, words=report.words)


def site_folder(root: Path, output: Path | None = None) -> Path:
    """Return the output folder of a site: the given folder, otherwise the project's own."""
    return (output or root / _OUTPUT).resolve()


def list_site_chapters(root: Path) -> list[str]:
    """Return the names of chapters with a lesson or exercises, in lecture order."""
    folders = (path.parent for name in ("lesson.md", "exercises.md") for path in (root / "chapters").glob(f"*/{name}"))
    return sorted({folder.name for folder in folders})


def _check_course(root: Path) -> None:
    missing = [name for name in (CONFIG, TOC) if not (root / name).is_file()]
    if missing:
        raise SiteError(
            f"this is not the root of the course: it has no {' and no '.join(missing)}",
            where=root,
            do="Run the command in the folder that you cloned, or name that folder.",
        )


def _check_jupyter_book() -> None:
    if importlib.util.find_spec("jupyter_book") is None:
        raise SiteError(
            "Jupyter Book is not installed in this environment", do="Install it: pip install 'tfcourse[book]'"
        )
    installed = version("jupyter-book")
    if not installed.startswith("1."):
        raise SiteError(
            f"Jupyter Book {installed} is installed, and it does not read {CONFIG}; the course needs version 1",
            do="Install that: pip install 'jupyter-book<2'",
        )


def _check_downloads(downloads: Mapping[str, Sequence[Path]], chapters: Sequence[str]) -> None:
    faults = check_downloads(downloads, chapters)
    if faults:
        raise SiteError(
            f"the students' files cannot go on the site:\n{_format_faults(faults)}",
            do="Make them with `tfcourse assign`.",
        )


def _check_output(output: Path) -> None:
    """Refuse to replace a folder that is not a site, and check that its parent is writable."""
    if output.exists() and not output.is_dir():
        raise SiteError("this is a file", where=output, do="Choose a folder for the site.")
    if output.is_dir() and any(output.iterdir()) and not (output / _OF_A_SITE).is_file():
        raise SiteError(
            "the folder holds something that is not a site, and building would delete it",
            where=output,
            do="Choose an empty or a new folder.",
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}."):
        pass


@contextmanager
def _convert_write_errors(output: Path, cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = error.filename or output
        reason = os.strerror(error.errno) if error.errno else str(error)
        advice = "Free some space" if error.errno == errno.ENOSPC else "Name folders that you may write to"
        raise SiteError(
            f"the site cannot be written: {reason}", where=path, do=f"{advice} (output {output}, cache {cache})."
        ) from error


@contextmanager
def _lock_cache(cache: Path) -> Iterator[None]:
    """Lock the cache against other builds while this one runs."""
    cache.mkdir(parents=True, exist_ok=True)
    handle = lock_folder(cache)
    if handle is None:
        raise SiteError(
            "another build is using this cache",
            where=cache,
            do="Wait for it to end, or pass another cache folder for this one.",
        )
    try:
        yield
    finally:
        os.close(handle)


def _run_in_cache(
    root: Path,
    cache: Path,
    downloads: Mapping[str, Sequence[Path]],
    chapters: Sequence[str],
    course: SiteCourse,
    decks: Sequence[str],
    progress: Callable[[str], None],
) -> RunReport:
    """Run Jupyter Book in the cache and return its report.

    Sphinx reports a warning when it reads a page, and does not read an unchanged page again. After a build with warnings the parsed
    documents are therefore thrown away, or the next build would pass in silence; lesson outputs stay cached.
    """
    work, report_file, sound = cache / "_build", cache / "report.json", cache / "sound"
    executions, skeleton = (
        cache / "execution",
        skeleton_key(root, [*_offered_names(downloads), *decks, str(course)], chapters),
    )
    before = sound.read_text(encoding="utf-8") if sound.is_file() else None
    if before is None:
        shutil.rmtree(work, ignore_errors=True)
    elif before != skeleton:
        shutil.rmtree(work / "html", ignore_errors=True)
    for path in (sound, report_file):
        path.unlink(missing_ok=True)
    config = _write_config(root, cache, executions, report_file, downloads, chapters, course, decks)
    status, output, errors = _run_jupyter_book(root, cache, config, progress)
    report = read_report(report_file, root)
    warnings = parse_warnings(errors, root)
    if report.failures:
        failures = "\n\n".join(str(failure) for failure in report.failures)
        raise SiteError(
            f"the site was not built, because a lesson does not run\n{failures}", do="Fix the cell and build again."
        )
    if warnings:
        raise SiteError(
            f"the site was not built: warnings are errors, and there were {len(warnings)}\n{_format_faults(warnings)}",
            do="Fix the problems listed above and build again.",
        )
    if status != 0 or not (work / "html" / "index.html").is_file():
        raise SiteError(f"Jupyter Book ended with status {status} and without a site:\n{error_tail(errors or output)}")
    remove_unused_images(work / "html")
    sound.write_text(skeleton, encoding="utf-8")
    prune_execution_caches(execution_cache_path(root, executions))
    return report


def _offered_names(downloads: Mapping[str, Sequence[Path]]) -> list[str]:
    return [f"{chapter}/{path.name}" for chapter, paths in downloads.items() for path in paths]


def _write_config(
    root: Path,
    cache: Path,
    executions: Path,
    report: Path,
    downloads: Mapping[str, Sequence[Path]],
    chapters: Sequence[str],
    course: SiteCourse,
    decks: Sequence[str],
) -> Path:
    """Write the course's configuration and table of contents with this build's settings."""
    config: dict[str, Any] = yaml.safe_load((root / CONFIG).read_text(encoding="utf-8"))
    settings = config.setdefault("sphinx", {}).setdefault("config", {})
    settings["tfcourse_cache"] = str(executions)
    settings["tfcourse_report"] = str(report)
    settings["tfcourse_downloads"] = {chapter: [str(path) for path in paths] for chapter, paths in downloads.items()}
    settings["tfcourse_chapters"] = list(chapters)
    settings["tfcourse_slides"] = list(decks)
    settings["tfcourse_dates"] = dict(course.dates)
    if course.title:
        config["title"] = settings["html_title"] = course.title
    contents = yaml.safe_load((root / TOC).read_text(encoding="utf-8"))
    _write_yaml(remove_closed_documents(contents, closed_documents(root, chapters)), cache / _DERIVED_TOC)
    return _write_yaml(config, cache / "config.yml")


def _write_yaml(value: dict[str, Any], path: Path) -> Path:
    path.write_text(yaml.safe_dump(value, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


def _run_jupyter_book(root: Path, cache: Path, config: Path, progress: Callable[[str], None]) -> tuple[int, str, str]:
    """Run ``jupyter-book build``; return its exit status and both output streams."""
    command = [
        sys.executable,
        "-c",
        "import autograder; from jupyter_book.cli.main import main; main()",  # the first for what it spares the second
        "build",
        str(root),
        "--config",
        str(config),
    ]
    command += ["--toc", str(cache / _DERIVED_TOC), "--path-output", str(cache), "-W", "--keep-going", "-n"]
    # The lessons import the course that is being built, also where another copy of it is installed.
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        # A thread for each lesson: they run side by side, and what they print does not depend on how many processors there are.
        "OMP_NUM_THREADS": "1",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    lines: list[str] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
        )
        try:
            assert process.stdout is not None  # it was asked for above
            for line in process.stdout:
                lines.append(strip_colours(line).rstrip())
                if _PROGRESS.match(lines[-1]):
                    progress(lines[-1])
            status = process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()
        errors.seek(0)
        return status, "\n".join(lines), errors.read()


def _format_faults(faults: Sequence[str]) -> str:
    return "\n".join(f"- {fault}" for fault in faults)


def _publish_site(built: Path, output: Path) -> None:
    """Replace the old site by the built one."""
    # GitHub Pages hides folders that begin with an underscore, unless told that no Jekyll is wanted.
    (built / ".nojekyll").touch()
    aside = Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}."))
    try:
        shutil.copytree(built, aside / "new")
        if output.exists():
            output.rename(aside / "old")
        try:
            (aside / "new").rename(output)
        except OSError:
            if (aside / "old").exists():
                (aside / "old").rename(output)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
