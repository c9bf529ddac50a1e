"""Collect a project's secrets (solutions, hidden tests, rubrics, model answers) and its public texts."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import ahocorasick

import autograder
import tfcourse
from autograder.checking.exercise import Exercise
from autograder.course.authoring.chapter import Chapter, load_chapters
from autograder.course.authoring.exercise_source import BEGIN_SOLUTION, END_SOLUTION
from autograder.course.authoring.solution_notebook import BEGIN_HIDDEN, CANARY, END_HIDDEN, hidden_test
from autograder.course.release.student_module import solution_helpers, statement_lines, stubs_by_file, student_module
from autograder.static_analysis.definitions import find_definition, module_source

Kind = Literal["solution", "known mistake", "rubric", "hidden test", "marker", "canary"]

_LINE_LENGTH = 12
_SENTENCE_LENGTH = 25
# Bytes of ASCII characters that are neither letters nor digits, and the other such characters.
_PLAIN = bytes(code for code in range(128) if not chr(code).isalnum())
_NEITHER = re.compile(r"\W+")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*(?:[-*+]|\d+\.)\s+|\n\s*\n")


@dataclass(frozen=True)
class Secret:
    """A text that students must not see."""

    kind: Kind  # the kind of secret
    name: str  # its exercise or question, or the marker itself
    chapter: str  # its chapter; empty if it is secret in all chapters
    parts: tuple[str, ...]  # its lines or sentences in the form of the search


@dataclass(frozen=True)
class Secrets:
    """A project's secrets and public texts."""

    items: tuple[Secret, ...]  # the secrets
    public: tuple[str, ...] = ()  # the public texts

    def find_parts(self, text: str) -> set[str]:
        """Return the secret parts that occur in a text."""
        return {part for _, part in self._automaton.iter(text)} if self.items else set()

    @cached_property
    def all_parts(self) -> frozenset[str]:
        """All secret lines and sentences that are searched for."""
        return frozenset(part for item in self.items for part in item.parts)

    @cached_property
    def _automaton(self) -> ahocorasick.Automaton:
        # Searching for two thousand parts one by one takes a hundred times as long as one pass over the text.
        automaton = ahocorasick.Automaton()
        for part in self.all_parts:
            automaton.add_word(part, part)
        automaton.make_automaton()
        return automaton

    @cached_property
    def public_code(self) -> str:
        """The public texts without white space."""
        return "\n".join(map(strip_whitespace, self.public))

    @cached_property
    def public_words(self) -> str:
        """The letters and digits of the public texts."""
        return "\n".join(map(letters_only, self.public))


def project_secrets(root: Path, registry: Mapping[str, Exercise] | None = None) -> Secrets:
    """Return a project's secrets and public texts."""
    every = load_chapters(root, registry)
    declared = every[0].registry if every else dict(registry or {})
    items = [_solution_secret(exercise) for exercise in declared.values()]
    items += [mistake for exercise in declared.values() for mistake in _mistake_secrets(exercise)]
    items += [Secret("hidden test", name, "", (strip_whitespace(hidden_test(name)),)) for name in declared]
    items += [rubric for chapter in every for rubric in _rubric_secrets(chapter)]
    items += [
        Secret("marker", m, "", (strip_whitespace(m),))
        for m in (BEGIN_SOLUTION, END_SOLUTION, BEGIN_HIDDEN, END_HIDDEN)
    ]
    items.append(Secret("canary", CANARY, "", (strip_whitespace(CANARY),)))
    return Secrets(tuple(item for item in items if item.parts), tuple(_public_texts(root, declared)))


def written_texts(root: Path) -> list[Path]:
    """Return the paths of hand-written texts for students: lessons, prompts and pages."""
    patterns = ("chapters/*/lesson.md", "chapters/*/exercises.md", "book/**/*.md", "README.md")
    paths = sorted(path for pattern in patterns for path in root.glob(pattern))
    return [path for path in paths if "_build" not in path.parts]


def strip_whitespace(text: str) -> str:
    """Remove all white space from a text."""
    return "".join(text.split())


def letters_only(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    plain = text.casefold().encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    return _NEITHER.sub("", plain.decode("utf-8", "surrogatepass"))


def _solution_secret(exercise: Exercise) -> Secret:
    module, node = find_definition(exercise.reference)
    lines = statement_lines(module, node)
    for helper in solution_helpers(module, exercise.name):
        lines += statement_lines(module, helper)
    return Secret("solution", exercise.name, exercise.chapter, code_parts(lines))


def _mistake_secrets(exercise: Exercise) -> Iterator[Secret]:
    """Yield the secrets of known mistakes, each of which is the solution except for the edited lines."""
    for mistake in exercise.misconceptions:
        lines = [line for piece in mistake.code for line in piece.split("\n")]
        yield Secret("known mistake", f"{exercise.name}, {mistake.name}", exercise.chapter, code_parts(lines))


def code_parts(lines: Sequence[str]) -> tuple[str, ...]:
    """Return a body's long lines in search form; the whole body if no line is long."""
    parts = [strip_whitespace(part) for line in lines for part in _code_and_comment(line)]
    long = [part for part in parts if len(part) >= _LINE_LENGTH]
    body = "".join(parts)
    return tuple(dict.fromkeys(long or ([body] if len(body) >= _LINE_LENGTH else [])))


def _code_and_comment(line: str) -> tuple[str, ...]:
    """Return a line's code without its trailing comment, or the text of a comment line."""
    code = line.strip()
    if code.startswith("#"):
        return (code.lstrip("# "),)
    try:
        for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline):
            if token.type == tokenize.COMMENT:
                return (code[: token.start[1]],)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        # The line is part of a longer statement.
        pass
    return (code,)


def _rubric_secrets(chapter: Chapter) -> Iterator[Secret]:
    for rubric in chapter.rubrics().values():
        for text in (rubric.answer, rubric.marks):
            sentences = map(letters_only, _SENTENCE_END.split(text))
            parts = [part for part in sentences if len(part) >= _SENTENCE_LENGTH]
            yield Secret("rubric", rubric.question, chapter.name, tuple(dict.fromkeys(parts)))


def _public_texts(root: Path, registry: Mapping[str, Exercise]) -> Iterator[str]:
    """Yield the public texts: the first chapter's student build, lessons, prompts and pages."""
    stubs = stubs_by_file(registry)
    for path in sorted(Path(str(tfcourse.__file__)).parent.rglob("*.py")):
        module = module_source(path)
        yield student_module(module, stubs.get(path.resolve(), {}))
    for path in sorted((Path(str(autograder.__file__)).parent / "checking").rglob("*.py")):
        yield module_source(path).text
    for exercise in registry.values():
        yield from (mistake.explanation for mistake in exercise.misconceptions)
    for path in written_texts(root):
        yield path.read_text(encoding="utf-8", errors="replace")
