"""Search everything that students receive or see for solutions, hidden questions, rubrics and model answers.

Protects against:

- a **line** of a solution (its code without spaces and trailing comment, at least 12 characters; a comment of its own counts as well)
  that stands nowhere in what is public anyway: docstrings, lessons, the site's pages, the code that every student build carries, and
  for a chapter the solutions of the chapters before it.
- lines that are public one by one (``if mask is None:``) and together give a solution away: most of a body's lines (three in five, and all
  of a body of one or two) close to each other. This rule also finds a solution in a lesson, whose lines are public by being there.
- a **sentence** of a model answer or a mark scheme (letters and digits only, at least 25), by the same two rules.
- a line of the code of a **known mistake** that stands nowhere in what is public: the mistake is the solution but for one place.
- the line of a hidden test, nbgrader's markers around solutions and hidden tests, and the canary in every solution, anywhere

Does not protect against:

- a solution that is paraphrased, renamed or translated
- text within raster images
- a student's own text in feedback, which counts as no find: a right solution may well read like ours
"""

from __future__ import annotations

import io
import math
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import ahocorasick

import autograder
import tfcourse
from autograder.authoring.chapter import Chapter, chapters
from autograder.authoring.exercise_source import BEGIN_SOLUTION, END_SOLUTION
from autograder.authoring.solution_notebook import BEGIN_HIDDEN, CANARY, END_HIDDEN, hidden_test
from autograder.checking.exercise import Exercise
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.release.student_module import solution_helpers, statement_lines, student_module
from autograder.release.text_extraction import NOT_TEXT, extract_texts
from autograder.static_analysis.definitions import find_definition, module_source

Kind = Literal["solution", "known mistake", "rubric", "hidden test", "marker", "canary"]

_LINE_LENGTH = 12
_SENTENCE_LENGTH = 25
_MOST = 0.6
_CHAPTER = re.compile(r"\d+_\w+")
# Neither a letter nor a digit: of the first 128 characters, as UTF-8 has them, and of all others.
_PLAIN = bytes(code for code in range(128) if not chr(code).isalnum())
_NEITHER = re.compile(r"\W+")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*(?:[-*+]|\d+\.)\s+|\n\s*\n")


@dataclass(frozen=True)
class Secret:
    """Something that students must not see.

    Attributes:
        kind: what it is.
        name: the exercise or question that it belongs to, or the marker itself.
        chapter: its chapter; empty for what is secret everywhere.
        parts: its lines or sentences as they are searched for.
    """

    kind: Kind
    name: str
    chapter: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Secrets:
    """Everything secret, and what is public beside it.

    Attributes:
        items: the secrets.
        public: texts that everybody may read.
    """

    items: tuple[Secret, ...]
    public: tuple[str, ...] = ()

    def parts_in(self, text: str) -> set[str]:
        """Return which parts of any secret stand in a text."""
        return {part for _, part in self._automaton.iter(text)} if self.items else set()

    @cached_property
    def _automaton(self) -> ahocorasick.Automaton:
        # To look for two thousand parts one by one takes a hundred times as long as to read the text once.
        found = ahocorasick.Automaton()
        for part in {part for item in self.items for part in item.parts}:
            found.add_word(part, part)
        found.make_automaton()
        return found

    @cached_property
    def public_code(self) -> str:
        """What is public, without white space."""
        return "\n".join(map(strip_whitespace, self.public))

    @cached_property
    def public_words(self) -> str:
        """What is public, letters and digits only."""
        return "\n".join(map(letters_only, self.public))


@dataclass(frozen=True)
class Material:
    """A file that students receive or can see.

    Attributes:
        path: the file.
        chapter: the chapter that it is given out with: solutions of earlier chapters may be in it. None: no solution may.
        own: files of the student's own making; what stands in them is no leak.
    """

    path: Path
    chapter: str | None = None
    own: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Leak:
    """A find.

    Attributes:
        file: the file; for a member of an archive, ``archive!member``.
        kind: what was found.
        name: the exercise, question or marker.
        part: the line or sentence, as it was searched for.
    """

    file: str
    kind: Kind
    name: str
    part: str = field(compare=False)

    def __str__(self) -> str:
        return f"{self.file}: {self.kind} {self.name}: {self.part[:80]}"


def find_leaks(files: Iterable[Path | Material], secrets: Secrets) -> list[Leak]:
    """Search files for secrets.

    Args:
        files: what students receive or can see; a plain path is searched for everything.
        secrets: what to search for.

    Returns:
        One leak for each file and secret, with the first part that was found. Of files with the same content the first is named.
    """
    materials = [item if isinstance(item, Material) else Material(item) for item in files]
    # What is secret for everybody comes first, then what is for those who have come to a chapter: to them less and less is secret. So a
    # content that has been searched, such as that of an archive beside the archive, need not be searched again.
    materials.sort(key=lambda material: material.chapter or "")
    searched: dict[tuple[Path, ...], set[bytes]] = {}
    found: list[Leak] = []
    for material in materials:
        search = _Search(secrets, material)
        for label, forms in extract_texts(material.path, searched.setdefault(material.own, set())):
            found += search.leaks(label, forms)
    return list(dict.fromkeys(found))


def refuse_leaks(leaks: Sequence[Leak], what: str) -> None:
    """Raise a CourseError that lists leaks, if there are any.

    Raises:
        CourseError: with one line a leak.
    """
    if leaks:
        listed = "\n".join(f"  - {leak}" for leak in leaks)
        raise CourseError(f"{what}:\n{listed}", do="Nothing was given out. Rewrite what is public, or the solution.")


def project_secrets(root: Path, registry: Mapping[str, Exercise] | None = None) -> Secrets:
    """Return what must not get out of a project, and what is public in it."""
    every = chapters(root, registry)
    known = every[0].registry if every else dict(registry or {})
    items = [_solution(exercise) for exercise in known.values()]
    items += [mistake for exercise in known.values() for mistake in _mistakes(exercise)]
    items += [Secret("hidden test", name, "", (strip_whitespace(hidden_test(name)),)) for name in known]
    items += [rubric for chapter in every for rubric in _rubrics(chapter)]
    items += [
        Secret("marker", m, "", (strip_whitespace(m),))
        for m in (BEGIN_SOLUTION, END_SOLUTION, BEGIN_HIDDEN, END_HIDDEN)
    ]
    items.append(Secret("canary", CANARY, "", (strip_whitespace(CANARY),)))
    return Secrets(tuple(item for item in items if item.parts), tuple(_public(root, known)))


def course_materials(course: Course) -> list[Material]:
    """Return what a course folder holds for students: releases, packages and feedback."""
    found = []
    for step in ("release", "student"):
        for path in _files(course.root / step):
            top = path.relative_to(course.root / step).parts[0]
            found.append(Material(path, top.removesuffix(".zip")))
    for path in _files(course.root / "feedback"):
        student, *rest = path.relative_to(course.root / "feedback").parts
        chapter = rest[0] if len(rest) > 1 else None
        own = sorted(course.folder("submitted", student, chapter).glob("**/*.ipynb")) if chapter else []
        found.append(Material(path, chapter, tuple(own)))
    return found


def site_materials(site: Path) -> list[Material]:
    """Return the files of a built site: pages, sources, search index, downloads."""
    found = []
    for path in _files(site):
        parts = path.relative_to(site).parts
        offered = parts[0] == "_downloads" and len(parts) == 3 and _CHAPTER.fullmatch(parts[1])
        found.append(Material(path, parts[1] if offered else None))
    return found


def written_materials(root: Path) -> list[Material]:
    """Return the texts that people write for students: a solution in them is public the moment the site is."""
    patterns = ("chapters/*/lesson.md", "chapters/*/exercises.md", "book/**/*.md", "README.md")
    paths = sorted(path for pattern in patterns for path in root.glob(pattern))
    return [Material(path) for path in paths if "_build" not in path.parts]


def strip_whitespace(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def letters_only(text: str) -> str:
    """Return the letters and digits of a text, in one case."""
    plain = text.casefold().encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    return _NEITHER.sub("", plain.decode("utf-8", "surrogatepass"))


class _Search:
    """The search through one file."""

    def __init__(self, secrets: Secrets, material: Material) -> None:
        self._secrets = [s for s in secrets.items if _is_secret(s, material)]
        self._parts_in = secrets.parts_in
        out = [s for s in secrets.items if s.kind == "solution" and not _is_secret(s, material)]
        # What has come out with an earlier chapter is public by now.
        self._public = {
            "solution": "\n".join([secrets.public_code, *(part for s in out for part in s.parts)]),
            "rubric": secrets.public_words,
        }
        own = [form for path in material.own for _, forms in extract_texts(path) for form in forms]
        self._own = {"solution": "\n".join(map(strip_whitespace, own)), "rubric": "\n".join(map(letters_only, own))}

    def leaks(self, label: str, forms: Sequence[str]) -> Iterator[Leak]:
        codes, words = (
            [(text, self._parts_in(text)) for text in map(how, forms)] for how in (strip_whitespace, letters_only)
        )
        for secret in self._secrets:
            part = self._part(secret, words if secret.kind == "rubric" else codes)
            if part is not None:
                yield Leak(label, secret.kind, secret.name, part)

    def _part(self, secret: Secret, texts: Iterable[tuple[str, Set[str]]]) -> str | None:
        kind = "rubric" if secret.kind == "rubric" else "solution"
        own, public = self._own[kind], self._public[kind]
        for text, there in texts:
            present = [part for part in secret.parts if part in there and part not in own]
            if present and secret.kind not in ("solution", "known mistake", "rubric"):
                return present[0]
            rare = next((part for part in present if part not in public), None)
            if rare is not None:
                return rare
            # A lesson may well show a mistake.
            if present and secret.kind != "known mistake" and _together(present, text) >= _enough(len(secret.parts)):
                return present[0]
        return None


def _is_secret(secret: Secret, material: Material) -> bool:
    return (
        secret.kind not in ("solution", "known mistake")
        or material.chapter is None
        or secret.chapter >= material.chapter
    )


def _enough(count: int) -> int:
    """Return how many of a body's lines give it away."""
    return count if count <= 2 else math.ceil(count * _MOST)


def _together(parts: Sequence[str], text: str) -> int:
    """Return how many different parts stand close to each other in a text."""
    reach = 3 * sum(map(len, parts)) + 300
    places = sorted((place, index) for index, part in enumerate(parts) for place in _places(part, text))
    best, first = 0, 0
    for last, (place, _) in enumerate(places):
        while place - places[first][0] > reach:
            first += 1
        best = max(best, len({index for _, index in places[first : last + 1]}))
    return best


def _places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _solution(exercise: Exercise) -> Secret:
    module, node = find_definition(exercise.reference)
    lines = statement_lines(module, node)
    for helper in solution_helpers(module, exercise.name):
        lines += statement_lines(module, helper)
    return Secret("solution", exercise.name, exercise.chapter, code_parts(lines))


def _mistakes(exercise: Exercise) -> Iterator[Secret]:
    """A known mistake is the solution but for one place, so the code of that place tells where to look."""
    for mistake in exercise.misconceptions:
        lines = [line for piece in mistake.code for line in piece.split("\n")]
        yield Secret("known mistake", f"{exercise.name}, {mistake.name}", exercise.chapter, code_parts(lines))


def code_parts(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a body as they are searched for; of a body without a long line, the whole."""
    parts = [strip_whitespace(part) for line in lines for part in _code_and_comment(line)]
    long = [part for part in parts if len(part) >= _LINE_LENGTH]
    whole = "".join(parts)
    return tuple(dict.fromkeys(long or ([whole] if len(whole) >= _LINE_LENGTH else [])))


def _code_and_comment(line: str) -> tuple[str, ...]:
    """Return a line's code without the comment behind it, or the text of a line that is a comment."""
    code = line.strip()
    if code.startswith("#"):
        return (code.lstrip("# "),)
    try:
        for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline):
            if token.type == tokenize.COMMENT:
                return (code[: token.start[1]],)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        # Part of a statement over several lines.
        pass
    return (code,)


def _rubrics(chapter: Chapter) -> Iterator[Secret]:
    for rubric in chapter.rubrics().values():
        for text in (rubric.answer, rubric.marks):
            sentences = map(letters_only, _SENTENCE_END.split(text))
            parts = [part for part in sentences if len(part) >= _SENTENCE_LENGTH]
            yield Secret("rubric", rubric.question, chapter.name, tuple(dict.fromkeys(parts)))


def _public(root: Path, registry: Mapping[str, Exercise]) -> Iterator[str]:
    """Return what every student may read: the build of the very first chapter, lessons, prompts and pages."""
    stubs: dict[Path, dict[str, str]] = {}
    for name, exercise in registry.items():
        module, _ = find_definition(exercise.reference)
        stubs.setdefault(module.path.resolve(), {})[name] = exercise.chapter
    for path in sorted(Path(str(tfcourse.__file__)).parent.rglob("*.py")):
        module = module_source(path)
        yield student_module(module, stubs.get(path.resolve(), {}))
    for path in sorted((Path(str(autograder.__file__)).parent / "checking").rglob("*.py")):
        yield module_source(path).text
    for exercise in registry.values():
        yield from (mistake.explanation for mistake in exercise.misconceptions)
    for material in written_materials(root):
        yield material.path.read_text(encoding="utf-8", errors="replace")


def _files(folder: Path, wanted: Callable[[Path], bool] = Path.is_file) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if wanted(path) and path.suffix.casefold() not in NOT_TEXT]
