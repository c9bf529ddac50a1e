"""What the tests of lessons share: a lesson that is executed once, its prose, and a check of the numbers in it."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from jupyter_cache.base import CacheBundleIn
from jupyter_client.manager import AsyncKernelManager
from myst_nb.core.read import read_myst_markdown_notebook
from traitlets import default

from autograder.course.authoring import lesson_cache
from autograder.course.authoring.lesson_cache import execution_cache_path, lock_execution_caches, open_execution_cache
from autograder.course.authoring.printed_values import append_values_cell

ROOT = Path(__file__).parents[2]
CHAPTERS = ROOT / "chapters"
# Where the tests of the site, which run after these, look for the outputs of lessons.
EXECUTIONS = ROOT / lesson_cache.EXECUTIONS


class KernelOverFiles(AsyncKernelManager):
    """A kernel behind sockets in the file system: a port that was free may be somebody else's when a kernel comes to bind it."""

    @default("transport")
    def _over_files(self) -> str:
        return "ipc"

    @default("ip")
    def _sockets(self) -> str:
        self._folder = tempfile.TemporaryDirectory(prefix="kernel-")
        return str(Path(self._folder.name, "k"))


# Every decimal, and every number with grouped digits.
NUMBERS = r"(?<![\w.])\d+\.\d+|\d{1,3}(?:\{?,\}?\d{3})+"


class Lesson:
    """A lesson and what is asked of it.

    Attributes:
        source: the text of the file.
        prose: the text without code and front matter, on one line, without emphasis.
    """

    def __init__(self, chapter: str, asked: Mapping[str, str], given: str) -> None:
        """Read a lesson.

        Args:
            chapter: folder below ``chapters/``.
            asked: what the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
            given: the numbers that the lesson does not print, separated by blanks: they come from papers, are settings of the code, or are
                worked out on the spot.
        """
        self.number = chapter[:2]
        self.path = CHAPTERS / chapter / "lesson.md"
        self.source = self.path.read_text(encoding="utf-8")
        self.asked = asked
        self.given = set(given.split())
        text = re.sub(r"\A---.*?\n---\n", "", self.source, flags=re.S)
        text = re.sub(r"```\{code-cell\}.*?\n```|```python.*?\n```", "", text, flags=re.S)
        self.prose = re.sub(r"\s+", " ", text.replace("*", ""))

    def run(self, folder: Path) -> tuple[list[Any], dict[str, Any]]:
        """Execute the lesson in a fresh kernel; return its code cells, and the answers to what is asked."""
        notebook = read_myst_markdown_notebook(append_values_cell(self.source, self.path), path=self.path)
        questions = ", ".join(f"{name!r}: {expression}" for name, expression in self.asked.items())
        asking = f"import json\nprint(json.dumps({{{questions}}}, default=lambda tensor: tensor.tolist()))"
        notebook.cells.append(nbformat.v4.new_code_cell(asking))
        began = time.monotonic()
        nbclient.NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            record_timing=False,
            kernel_manager_class=KernelOverFiles,
            resources={"metadata": {"path": str(folder)}},
        ).execute()
        self._keep(notebook, time.monotonic() - began)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        return cells[:-1], json.loads("".join(output.text for output in cells[-1].outputs))

    def _keep(self, notebook: Any, seconds: float) -> None:
        """Put the outputs into the cache of the site's tests, so that a run of all tests executes a lesson once."""
        without_questions = nbformat.from_dict({**notebook, "cells": notebook.cells[:-1]})
        cache = open_execution_cache(execution_cache_path(ROOT, EXECUTIONS))
        with lock_execution_caches(EXECUTIONS):
            bundle = CacheBundleIn(without_questions, str(self.path), data={"execution_seconds": seconds})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)

    def captions(self) -> list[int]:
        """Return the numbers of the figures that have a caption, in order."""
        pattern = rf"(?:\*|\")Figure {int(self.number)}\.(\d+)\. [A-Z][^.?]*[.?:]"
        return [int(number) for number in re.findall(pattern, self.source)]

    def unchecked(self) -> list[str]:
        """Return the numbers of the prose that the lesson does not print and that are not given."""
        prose = re.sub(r"\{\{.+?\}\}|[Ff]igure \d+\.\d+", "", self.prose)
        found = {number.replace("{,}", ",") for number in re.findall(NUMBERS, prose)}
        assert self.given <= found, f"given, but not in the prose: {sorted(self.given - found)}"
        return sorted(found - self.given)


def described(pages: list[str]) -> list[bool]:
    """For each plot and drawing among a lesson's pages, whether it has a description that says something."""
    figures = [
        page
        for page in pages
        if page.startswith(("<svg", '<div class="tfcourse-drawing"', '<div class="tfcourse-plot"'))
    ]
    found = [re.search(r'<svg[^>]* aria-label="([^"]*)"', page) for page in figures]
    return [description is not None and len(description[1]) > 60 for description in found]
