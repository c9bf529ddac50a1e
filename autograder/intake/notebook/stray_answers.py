"""Find text that answers a question outside its cell, and append it to the answer for the marker.

Students write into an additional cell above or below the answer's cell, into the question itself, or into a comment of a code cell. Or they
split the answer's cell. nbgrader gives 0 points to an unchanged answer cell and shows no other text. Text is found in the same way as code:
by the name of its cell, by its position, and by additions to the course's text.

Protects against:

- quadratic comparisons: each notebook has a budget of comparisons, and long texts are not compared word by word;
- text of the course: a text cell of the release, or a slightly older version of it, is not a student's answer.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from autograder.errors import list_first
from autograder.intake.notebook.cell_reader import TextComparison
from autograder.intake.notebook.manifest import Manifest, SourceCell
from autograder.intake.notebook.problem import Problem
from autograder.static_analysis.cell_names import is_python
from autograder.static_analysis.limited_parse import LONGEST

KIND = "answer elsewhere"
# Comparing two texts takes as many steps as the product of their numbers of words. Longer ones are shown as a whole.
_STEPS = 1_000_000
# The most characters from other cells that are shown with an answer.
_LONGEST = 50_000
# Fewer words that were added to a question are a correction of its text, or a mark at its margin.
_WORDS = 3


@dataclass(frozen=True)
class Layout:
    """A notebook whose named cells are identified."""

    manifest: Manifest  # the chapter's cells
    cells: Sequence[Any]  # its cells in order
    named: Mapping[str, Any]  # the cells with a name in the chapter, by name
    claims: Mapping[int, str]  # the names in the cells' metadata, by identity of the cell
    label: Callable[[Any], str]  # returns what a cell is called for people
    texts: TextComparison  # compares texts, within the notebook's budget
    _originals: dict[int, str | None] = field(default_factory=dict)

    def original(self, cell: Any) -> str | None:
        """Return the unnamed course text that a cell contains or is derived from; None for a student's own cell."""
        if id(cell) not in self._originals:
            texts, source = self.manifest.plain_texts, cell["source"]
            exact = (text for text in (*texts, *self.manifest.former_texts) if self.texts.is_same(source, text))
            alike = (
                text for text in texts if self.texts.find_similar([cell], text) or _resembles_original(source, text)
            )
            self._originals[id(cell)] = next(exact, None) or next(alike, None)
        return self._originals[id(cell)]

    def is_students(self, cell: Any) -> bool:
        """Return whether an unnamed cell is the student's own; False if the course has no source notebook."""
        return bool(self.manifest.plain_texts) and self.original(cell) is None


@dataclass
class _Answer:
    """A question's answer cell, and text found elsewhere that answers it."""

    question: SourceCell
    cell: Any
    own_text: str  # what the cell says; nothing if it is untouched
    strays: list[tuple[Any, str]] = field(default_factory=list)


def gather_answers(layout: Layout) -> list[Problem]:
    """Append text that answers a question outside its cell to the answer, in place, and return it as problems."""
    answers = []
    for question in layout.manifest.cells:
        if question.is_answer and question.cell_type == "markdown" and question.name in layout.named:
            cell = layout.named[question.name]
            untouched = layout.texts.is_same_as_any(cell["source"], layout.manifest.wordings[question.name])
            if untouched:
                cell["source"] = question.source
            answers.append(_Answer(question, cell, "" if untouched else str(cell["source"]).strip()))
    used: set[int] = set()
    for answer in answers:
        for cell, text in _find_strays(answer, layout):
            if id(cell) not in used and text.strip() and text.strip() != answer.own_text:
                used.add(id(cell))
                answer.strays.append((cell, text.strip()))
    problems = list(_place_leftovers(answers, used, layout))
    for answer in answers:
        if answer.strays:
            labels = ", ".join(layout.label(cell) for cell, _ in answer.strays)
            message = f"Text outside of the answer's cell is shown with the answer: {labels}."
            problems.append(Problem(KIND, message, answer.question.name, remark=True))
            _write_answer(answer, layout)
    return problems


def _resembles_original(text: str, original: str) -> bool:
    """Return whether a text is an older version of a course text, by its share of common words."""
    counts, others = Counter(text.split()), Counter(original.split())
    return 2 * counts.total() >= others.total() and 5 * (counts & others).total() >= 3 * counts.total()


def _find_strays(answer: _Answer, layout: Layout) -> Iterator[tuple[Any, str]]:
    """Yield the cells outside of an answer's cell that hold parts of the answer, with these parts, in order."""
    parts: dict[int, str] = {}
    for cell in layout.cells:
        claims_name = layout.claims.get(id(cell)) == answer.question.name and cell is not answer.cell
        if claims_name and not layout.texts.is_same_as_any(
            cell["source"], layout.manifest.wordings[answer.question.name]
        ):
            parts[id(cell)] = _to_markdown(cell)
    for cell, text in _adjacent_cells(answer, layout):
        parts.setdefault(id(cell), text)
    cells = layout.manifest.cells
    before = cells[cells.index(answer.question) - 1] if answer.question is not cells[0] else None
    if before and before.locked and before.cell_type == "markdown" and before.name in layout.named:
        prompt = layout.named[before.name]
        # In what was made of an earlier release, the least is the student's.
        added = (added_text(text, prompt["source"]) for text in layout.manifest.wordings[before.name])
        parts[id(prompt)] = min(added, key=len)
    yield from ((cell, parts[id(cell)]) for cell in layout.cells if id(cell) in parts)


def _adjacent_cells(answer: _Answer, layout: Layout) -> Iterator[tuple[Any, str]]:
    """Yield a student's cells around an answer cell, up to the next course cell in both directions."""
    course_cells = {id(cell) for cell in layout.named.values()}
    at = next(i for i, cell in enumerate(layout.cells) if cell is answer.cell)
    for above, side in ((True, layout.cells[:at][::-1]), (False, layout.cells[at + 1 :])):
        for cell in side:
            if id(cell) in course_cells:
                break
            if id(cell) in layout.claims:
                continue
            is_text, original = cell["cell_type"] == "markdown", layout.original(cell)
            if original is not None and is_text:
                # The question itself, if it has no name; below an answer it is the next question.
                if above:
                    yield cell, added_text(original, cell["source"])
                break
            if layout.is_students(cell) and (is_text or (not answer.own_text and has_words(cell))):
                yield cell, _to_markdown(cell)


def _place_leftovers(answers: Sequence[_Answer], used: set[int], layout: Layout) -> Iterator[Problem]:
    """Add texts far from any question to the only unanswered question, or else report them as problems."""
    open_ = [answer for answer in answers if not answer.own_text and not answer.strays]
    if not open_:
        return
    taken = used | layout.claims.keys() | {id(cell) for cell in layout.named.values()}
    texts = [cell for cell in layout.cells if cell["cell_type"] == "markdown" and id(cell) not in taken]
    unplaced = [cell for cell in texts if layout.is_students(cell) and len(cell["source"].split()) >= _WORDS]
    if len(open_) == 1:
        open_[0].strays += [(cell, cell["source"].strip()) for cell in unplaced]
    elif unplaced:
        labels = list_first([layout.label(cell) for cell in unplaced])
        names = ", ".join(answer.question.name for answer in open_)
        message = f"Text that the student added may answer one of the questions without an answer ({names}): {labels}."
        yield Problem(KIND, message, do="Read it in the notebook, and give points by hand.")


def _write_answer(answer: _Answer, layout: Layout) -> None:
    """Write stray texts below the answer cell's text, each under the name of its cell."""
    order = {id(cell): i for i, cell in enumerate(layout.cells)}
    attachments = dict(answer.cell.get("attachments") or {})
    parts = [(order[id(answer.cell)], answer.own_text)] if answer.own_text else []
    remaining = _LONGEST
    for cell, text in answer.strays:
        for name, content in (cell.get("attachments") or {}).items():
            new = name
            if attachments.get(name, content) != content:
                new = f"{layout.label(cell).partition(' (')[0].replace(' ', '-')}-{name}"
                text = text.replace(f"attachment:{name}", f"attachment:{new}")
            attachments[new] = content
        shown = text if len(text) <= remaining else f"{text[:remaining]} … (more in the notebook)"
        remaining = max(0, remaining - len(text))
        parts.append((order[id(cell)], f"*From {layout.label(cell)}:*\n\n{shown}"))
    answer.cell["source"] = "\n\n".join(text for _, text in sorted(parts, key=lambda part: part[0]))
    if attachments:
        answer.cell["attachments"] = attachments


def _to_markdown(cell: Any) -> str:
    """Return a cell's text as Markdown."""
    source = str(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        return source
    fence = "`" * (max((len(run) for run in re.findall(r"`+", source)), default=2) + 1)
    fence = fence if len(fence) > 2 else "```"
    return f"{fence}{'python' if cell['cell_type'] == 'code' else ''}\n{source}\n{fence}"


def has_words(cell: Any) -> bool:
    """Return whether a non-text cell contains words for a reader: a comment, or a string as a statement."""
    if cell["cell_type"] != "code":
        return len(cell["source"].split()) >= _WORDS
    source = cell["source"]
    if len(source) > LONGEST or not is_python(source):
        return len(source.split()) >= _WORDS
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    kinds = [token for token in tokens if token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT)]
    texts = [token.string for token in kinds if token.type == tokenize.COMMENT]
    texts += [
        token.string
        for before, token in zip([None, *kinds], kinds, strict=False)
        if token.type == tokenize.STRING and (before is None or before.type in (tokenize.NEWLINE, tokenize.COMMENT))
    ]
    return len(" ".join(texts).split()) >= _WORDS


def added_text(original: str, text: str) -> str:
    """Return the words that were added to a text; empty for fewer than three.

    Args:
        original: the course's text.
        text: the text in the submission.
    """
    old, new = (re.findall(r"\S+\s*", part) for part in (original, text))
    if len(old) * len(new) > _STEPS:
        return text if len(new) >= len(old) + _WORDS else ""
    stripped = [[token.strip() for token in part] for part in (old, new)]
    blocks = SequenceMatcher(None, stripped[0], stripped[1], autojunk=False).get_opcodes()
    added = ["".join(new[start:end]).strip() for kind, _, _, start, end in blocks if kind in ("insert", "replace")]
    joined = "\n\n".join(part for part in added if part)
    return joined if len(joined.split()) >= _WORDS else ""
