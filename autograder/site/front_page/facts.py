"""Read facts about the course from its files: counts from the exercises, names and licences from the project.

Pages use them through two roles and a directive: ``{count}`exercises```, ``{fact}`version``` and ``{course-facts}``. So no page states a
number or a name that can fall behind.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive

from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.numbering import list_efforts
from autograder.errors import CourseError
from autograder.site.page_parts.closed_chapters import site_chapters

_NO_ADDRESS = "the repository that this site was built from"
RECORD = Path("experiments", "results", "llama_writes.json")
WORDS_PER_MINUTE = 200
LINES_PER_MINUTE = 10
_CELL = re.compile(r"```\{code-cell\}[^\n]*\n(.*?)\n```", re.DOTALL)
_FENCE = re.compile(r"```.*?\n```", re.DOTALL)
_OPTION = re.compile(r"^:(?:tags|mystnb):.*\n+", re.MULTILINE)
_HIDDEN = re.compile(r"^:tags: \[.*(?:hide-input|remove-input)", re.MULTILINE)


@dataclass(frozen=True)
class Facts:
    """Facts about the course from the project's files."""

    title: str  # its title for citations
    author: str
    version: str  # its release
    date: str  # the release date, such as ``2026-11-20``
    licence: str  # the code's licence
    source: str  # address of the repository; empty if ``_config.yml`` has none

    @property
    def year(self) -> str:
        """The year of the release."""
        return self.date[:4]

    @property
    def clone(self) -> str:
        """The shell command that clones the course and enters its folder."""
        return f"git clone {self.source} tfcourse && cd tfcourse" if self.source else "cd tfcourse"

    @property
    def bibtex(self) -> str:
        """The BibTeX entry of the course."""
        lines = [f"title = {{{self.title}}}", f"author = {{{{{self.author}}}}}", f"year = {{{self.year}}}"]
        lines += [f"version = {{{self.version}}}"] + ([f"url = {{{self.source}}}"] if self.source else [])
        return "@software{tfcourse,\n" + "".join(f"  {line},\n" for line in lines) + "}"


def read_facts(root: Path) -> Facts:
    """Read the facts from ``pyproject.toml``, ``CITATION.cff`` and ``_config.yml``."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return Facts(
        title=citation["title"],
        author=", ".join(author["name"] for author in project["authors"]),
        version=project["version"],
        date=str(citation["date-released"]),
        licence=project["license"],
        source=(config.get("repository") or {}).get("url") or "",
    )


@dataclass(frozen=True)
class ChapterSize:
    """The size of a chapter: exercises and minutes."""

    exercises: int  # how many exercises it has
    reading: int  # minutes of reading
    solving: int  # minutes of solving, questions included


def chapter_size(chapter: Chapter) -> ChapterSize:
    """Return the number of exercises of a chapter and the minutes to read and solve."""
    reading = reading_minutes(chapter.lesson.read_text(encoding="utf-8"))
    return ChapterSize(len(chapter.exercises()), reading, sum(effort.minutes for effort in list_efforts(chapter)))


def round_to_hours(minutes: int) -> int:
    """Round minutes to whole hours, at least one."""
    return max(1, round(minutes / 60))


@cache
def _compute_counts(root: Path, names: tuple[str, ...]) -> dict[str, str]:
    course = site_chapters(root, names)
    sizes = [chapter_size(chapter) for chapter in course]
    mistakes = sum(len(exercise.misconceptions) for chapter in course for exercise in chapter.exercises())
    return {
        "chapters": str(len(sizes)),
        "exercises": str(sum(size.exercises for size in sizes)),
        "reading-hours": str(round_to_hours(sum(size.reading for size in sizes))),
        "exercise-hours": str(round_to_hours(sum(size.solving for size in sizes))),
        "mistakes": f"{mistakes:,}",
        "times-nbgrader": "{} to {}".format(*map(int, _read_range(root, "against stock, one more"))),
        "submission-seconds": "{:.1f} to {:.1f}".format(*_read_range(root, "tfcourse: one more, s")),
    }


def _read_range(root: Path, column: str) -> tuple[float, float]:
    """Return the smallest and the largest value over the chapters in a column of the benchmark of all chapters."""
    data = json.loads((root / "benchmarks" / "results" / "chapters.json").read_text(encoding="utf-8"))
    values = [float(str(row[data["columns"].index(column)]).rstrip("×")) for row in data["rows"]]
    return min(values), max(values)


def course_count(root: Path, name: str, names: Collection[str] = ()) -> str:
    """Return a count about the site's chapters as text, such as ``chapters``, ``exercises`` or ``mistakes``.

    Args:
        names: the chapters of the site; empty for all chapters of the course.

    Raises:
        CourseError: if the count is unknown.
    """
    return _require_value(_compute_counts(root, tuple(names)), name, "count")


def course_fact(root: Path, name: str) -> str:
    """Return a fact about the course: an attribute of :class:`Facts`.

    Raises:
        CourseError: if there is no such fact.
    """
    return _require_value(vars(read_facts(root)), name, "fact")


def _require_value(values: dict[str, str], name: str, kind: str) -> str:
    if name not in values:
        raise CourseError(f"there is no {kind} {name!r}", do=f"Use one of: {', '.join(values)}.")
    return values[name]


def make_role(value: Callable[[Path, str, Collection[str]], str]) -> Any:
    """Return a role function that writes a value as plain text."""

    def write(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> tuple[list[Any], list[Any]]:
        env = inliner.document.settings.env
        try:
            return [nodes.Text(value(Path(env.srcdir), text, env.config.tfcourse_chapters))], []
        except CourseError as error:
            return [], [inliner.reporter.error(str(error), line=lineno)]

    return write


class CourseFacts(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{course-facts}``: author, version, licences, source, and citation."""

    def run(self) -> list[nodes.Node]:
        """Return the facts as raw HTML."""
        env = self.state.document.settings.env
        root = Path(env.srcdir)
        for name in ("pyproject.toml", "CITATION.cff"):
            env.note_dependency(str(root / name))
        return [nodes.raw("", facts_html(read_facts(root)), format="html")]


class CloneCommands(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{clone}``: a shell block with its lines after the command that clones the repository."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the shell block as a node."""
        facts = read_facts(Path(self.state.document.settings.env.srcdir))
        text = "\n".join([facts.clone, *self.content])
        return [nodes.literal_block(text, text, language="shell")]


def facts_html(facts: Facts) -> str:
    """Return the facts as an HTML definition list, with the citation folded."""
    source = f'<a href="{escape(facts.source)}">{escape(re.sub("^https://", "", facts.source))}</a>'
    entries = {
        "Author": escape(facts.author),
        "Version": f"{escape(facts.version)} ({escape(facts.date)})",
        "Licence": f"code {escape(facts.licence)}, text and figures CC BY 4.0",
        "Source": source if facts.source else _NO_ADDRESS,
    }
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in entries.items())
    citation = f"<details><summary>Cite this course</summary><pre>{escape(facts.bibtex)}</pre></details>"
    return f'<div class="tfc-facts"><dl>{listed}</dl>{citation}</div>'


def reading_minutes(text: str) -> int:
    """Return the minutes to read a lesson, from its words and its visible lines of code."""
    word_count = len(_FENCE.sub("", text).split())
    lines = 0
    for cell in _CELL.findall(text):
        if not _HIDDEN.search(cell):
            lines += sum(bool(line.strip()) for line in _OPTION.sub("", cell).splitlines())
    return round(word_count / WORDS_PER_MINUTE + lines / LINES_PER_MINUTE)


class WrittenText(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{written-text}``: the recorded model's training, the command, and its generated text."""

    def run(self) -> list[nodes.Node]:
        """Return a paragraph and two blocks as nodes."""
        env = self.state.document.settings.env
        path = Path(env.srcdir) / RECORD
        env.note_dependency(str(path))
        return record_nodes(json.loads(path.read_text(encoding="utf-8")))


def record_nodes(record: dict[str, Any]) -> list[nodes.Node]:
    """Convert a training record to nodes.

    Args:
        record: what ``experiments/llama_writes.py`` wrote: commands, sizes, losses in nats per token, and the text.
    """
    training = (
        f"The first command trains a Llama of {record['parameters']:,} parameters for {record['steps']:,} steps on Python's language "
        f"reference, in a vocabulary of byte pairs, and saves it as a checkpoint. On text that it has not read, its loss fell from "
        f"{record['untrained_loss']:.2f} to {record['loss']:.2f} nats per token. The second command lets it write:"
    )
    # A reader trains their own, and has no record to renew.
    commands = f"{record['command'].partition(' --record')[0]}\n{record['generate']}"
    note = "This is what that run wrote. It is sampled text of a very small model: read its words and phrases, not its statements."
    return [
        nodes.paragraph("", training),
        nodes.literal_block(commands, commands, language="shell"),
        nodes.paragraph("", note),
        nodes.literal_block(record["text"], record["text"], language="none", classes=["tfc-written"]),
    ]
