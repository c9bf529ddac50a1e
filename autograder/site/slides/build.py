"""Make decks of slides with Sphinx and reveal.js, in a folder that goes beside the site's pages."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.content_hash import hash_files
from autograder.course.artifact_cache import code_hash, key_digest
from autograder.course.authoring import lesson_cache
from autograder.errors import CourseError
from autograder.site.build_log import error_tail, parse_warnings
from autograder.site.slides.source import Deck, DeckSources

_CACHE = Path(".cache", "slides")
_SETTINGS = Path(__file__).parent


@dataclass(frozen=True)
class DeckReport:
    """How long a deck takes."""

    name: str
    slides: int
    halves: tuple[int, ...]  # minutes before and after each break
    short: int  # minutes of the slides that the short lecture has

    def __str__(self) -> str:
        halves = " + ".join(map(str, self.halves))
        return f"slides {self.name}: {self.slides}, {halves} = {sum(self.halves)} minutes; the short ones {self.short}"


@dataclass(frozen=True)
class Decks:
    """The decks that were made."""

    folder: Path
    reports: tuple[DeckReport, ...]


def build_decks(
    root: Path,
    all_decks: Mapping[str, Deck],
    names: Sequence[str],
    progress: Callable[[str], None],
    cache: Path | None = None,
) -> Decks:
    """Make the named decks; unchanged ones are not made again.

    Args:
        root: the course's root folder.
        all_decks: every deck by name, from :func:`autograder.site.slides.source.decks`.
        names: the decks to make.
        progress: is told each step, one line at a time.
        cache: folder for sources and pages, ``.cache/slides`` by default.

    Raises:
        CourseError: if sphinx-revealjs is missing, a deck names what does not exist, a cell fails, or a slide is too full.
    """
    if importlib.util.find_spec("sphinx_revealjs") is None:
        raise CourseError("sphinx-revealjs is not installed here", do="Install it: pip install 'tfcourse[book]'")
    cache = cache or root / _CACHE
    with lesson_cache.lock_execution_caches(cache):
        _make(root, DeckSources(root, all_decks), names, cache, progress)
    report = (cache / "report.json").read_text(encoding="utf-8")
    data: dict[str, list[dict[str, Any]]] = json.loads(report)
    return Decks(cache / "html", tuple(_report(name, data[name]) for name in names))


def _make(root: Path, sources: DeckSources, names: Sequence[str], cache: Path, progress: Callable[[str], None]) -> None:
    source, output, key_file = (cache / name for name in ("source", "html", "key"))
    progress("slides: figures and numbers from the lessons")
    texts = sources.write(names, source)
    code = code_hash(root)
    quoted = hash_files(root, root.glob("chapters/*/lesson.md"))
    static = hash_files(_SETTINGS, (path for path in _SETTINGS.rglob("*") if path.suffix in (".css", ".html")))
    key = f"{key_digest([code, static])} {key_digest([quoted, *texts])}"
    before = key_file.read_text(encoding="utf-8") if key_file.is_file() else ""
    if key != before or not (output / "index.html").is_file():
        if before.split(" ")[0] != key.split(" ")[0]:
            shutil.rmtree(cache / "doctrees", ignore_errors=True)
            shutil.rmtree(output, ignore_errors=True)
        key_file.unlink(missing_ok=True)
        progress("slides: pages")
        _run_sphinx(root, cache)
        for page in output.glob("*.html"):
            if page.stem not in (*names, "index"):
                page.unlink()
        _add_static(root, cache / "_static")
        key_file.write_text(key, encoding="utf-8")


def _run_sphinx(root: Path, cache: Path) -> None:
    executions = lesson_cache.execution_cache_path(root, root / lesson_cache.EXECUTIONS)
    settings = {"nb_execution_cache_path": executions, "tfcourse_deck_report": cache / "report.json"}
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "revealjs",
        "-c",
        str(_SETTINGS),
        "-d",
        str(cache / "doctrees"),
        "-W",
    ]
    command += ["--keep-going", "-n", *(part for name, value in settings.items() for part in ("-D", f"{name}={value}"))]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment |= {"TFCOURSE_ROOT": str(root), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    done = subprocess.run(
        [*command, str(cache / "source"), str(cache / "html")],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        # A page that is not read again would not warn again.
        shutil.rmtree(cache / "doctrees", ignore_errors=True)
        faults = parse_warnings(done.stderr, root) or [error_tail(done.stderr or done.stdout)]
        raise CourseError(
            "the slides were not made:\n" + "\n".join(f"- {fault}" for fault in faults),
            do="Correct the deck and build again.",
        )


def _add_static(root: Path, folder: Path) -> None:
    """Put what decks load from the site beside them, so that they can be opened and printed before they are part of it."""
    from autograder.site.extension import copy_mathjax

    copy_mathjax(folder)
    shutil.copyfile(root / "book" / "_static" / "custom.css", folder / "custom.css")


def _report(name: str, slides: Sequence[Mapping[str, Any]]) -> DeckReport:
    halves = [0]
    for slide in slides:
        if "break" in slide["marks"]:
            halves.append(0)
        else:
            halves[-1] += slide["minutes"]
    short = sum(slide["minutes"] for slide in slides if "short" in slide["marks"])
    return DeckReport(name, len(slides), tuple(halves), short)
