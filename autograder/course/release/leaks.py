"""Search everything that students receive or see for solutions, hidden tests, rubrics and model answers.

Protects against:

- a **line** of a solution or a comment line (at least 12 characters, without spaces and trailing comment) that is not public. Public are
  docstrings, lessons, the site's pages, the code in every student build, and, for a chapter, the solutions of earlier chapters.
- public lines (``if mask is None:``) that together give a solution away: three in five lines of a body, or all lines of a body of one or
  two, close to each other. This rule also finds a solution in a lesson, whose lines are public.
- a **sentence** of a model answer or a mark scheme (at least 25 letters and digits), by the same two rules.
- a line of the code of a **known mistake** that is not public: the mistake differs from the solution in one place.
- in a page *Find the bug* of a closed chapter: most lines of a solution of a later chapter, close to each other. Single lines may agree.
- the line of a hidden test, nbgrader's markers around solutions and hidden tests, and the canary in every solution, anywhere

Does not protect against:

- a solution that is paraphrased, renamed or translated
- text within raster images
- a student's own text in feedback, which counts as no find: a right solution may well read like ours
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from autograder.course.folder import Course
from autograder.course.release.parts_index import PartsIndex
from autograder.course.release.secret_texts import Kind, Secret, Secrets, letters_only, strip_whitespace, written_texts
from autograder.course.release.text_extraction import NOT_TEXT, extract_contents, extract_texts, text_forms
from autograder.errors import CourseError

_MOST = 0.6
_CHAPTER = re.compile(r"\d+_\w+")
# Pages that show a chapter's solutions, each with one mistake, once the chapter is closed.
OF_CLOSED_CHAPTERS = ("find-the-bug.html",)
_AFTER = "~"


@dataclass(frozen=True)
class Material:
    """A file that students receive or can see."""

    path: Path
    # the chapter with which it is released: it may contain solutions of earlier chapters. None: it may contain none.
    chapter: str | None = None
    submissions: tuple[Path, ...] = ()  # the student's own files, whose text is no leak
    provided: frozenset[str] = frozenset()  # exercises whose solutions are released with the chapter on purpose


@dataclass(frozen=True)
class Leak:
    """A secret in a file that students can see."""

    file: str  # the file; for a member of an archive, ``archive!member``
    kind: Kind  # the kind of secret
    name: str  # the exercise, question or marker
    part: str = field(compare=False)  # the line or sentence, as it was searched for

    def __str__(self) -> str:
        return f"{self.file}: {self.kind} {self.name}: {self.part[:80]}"


def find_leaks(files: Iterable[Path | Material], secrets: Secrets, store: Path | None = None) -> list[Leak]:
    """Search files for secrets.

    Args:
        files: files that students receive or can see; a plain path is searched for every secret.
        store: an index of which contents hold which lines of secrets, so that unchanged contents are not searched again. It can be deleted
            at any time.

    Returns:
        One leak for each file and secret, with the first matching part. Of files with the same content the first is named.
    """
    materials = [item if isinstance(item, Material) else Material(item) for item in files]
    # Files for everybody come first, then those of each chapter in order: for later chapters fewer solutions are secret. So content
    # that has been searched, for instance in an archive, need not be searched again.
    materials.sort(key=lambda material: material.chapter or "")
    searched: dict[tuple[Path, ...], set[str]] = {}
    index = PartsIndex.read(store, secrets)
    # Only the chapter and the student's files decide what is secret in a file, so most files share a search.
    searches: dict[tuple[str | None, tuple[Path, ...], frozenset[str]], _Search] = {}
    leaks: list[Leak] = []
    for material in materials:
        audience = material.chapter, material.submissions, material.provided
        search = searches.get(audience) or searches.setdefault(audience, _Search(secrets, material))
        for content in extract_contents(material.path, searched.setdefault(material.submissions, set())):
            content_parts = index.parts_in(content)
            if content_parts is not None and not search.can_leak(content_parts):
                continue
            texts = search.texts(text_forms(content))
            index.add(content, set().union(*(parts for form in texts for _, parts in form)))
            leaks += search.leaks(content.label, *texts)
    index.write(store)
    return list(dict.fromkeys(leaks))


def refuse_leaks(leaks: Sequence[Leak], message: str) -> None:
    """Raise a CourseError that lists leaks, if there are any.

    Raises:
        CourseError: with one line per leak.
    """
    if leaks:
        listed = "\n".join(f"  - {leak}" for leak in leaks)
        raise CourseError(f"{message}:\n{listed}", do="Nothing was given out. Rewrite what is public, or the solution.")


def course_materials(course: Course) -> list[Material]:
    """Return a course folder's files for students: releases, packages and feedback."""
    materials = []
    for step in ("release", "student"):
        for path in _files(course.root / step):
            top = path.relative_to(course.root / step).parts[0]
            materials.append(Material(path, top.removesuffix(".zip")))
    for path in _files(course.root / "feedback"):
        student, *rest = path.relative_to(course.root / "feedback").parts
        chapter = rest[0] if len(rest) > 1 else None
        submissions = sorted(course.folder("submitted", student, chapter).glob("**/*.ipynb")) if chapter else []
        materials.append(Material(path, chapter, tuple(submissions)))
    return materials


def site_materials(site: Path) -> list[Material]:
    """Return the files of a built site: pages, sources, search index, downloads."""
    materials = []
    for path in _files(site):
        parts = path.relative_to(site).parts
        offered = parts[0] == "_downloads" and len(parts) == 3 and _CHAPTER.fullmatch(parts[1])
        materials.append(Material(path, _release(parts[1], parts[2]) if offered else None))
    return materials


def _release(chapter: str, name: str) -> str:
    """Return the chapter with which an offered file is released; of a page about a closed chapter, a name right after the chapter's."""
    return f"{chapter}{_AFTER}" if name in OF_CLOSED_CHAPTERS else chapter


def written_materials(root: Path) -> list[Material]:
    """Return the hand-written texts for students, which the site publishes."""
    return [Material(path) for path in written_texts(root)]


# A text, and the parts of secrets in it.
_Text: TypeAlias = tuple[str, set[str]]


class _Search:
    """The search through the files of one audience."""

    def __init__(self, secrets: Secrets, material: Material) -> None:
        self._secrets = [s for s in secrets.items if _is_secret(s, material)]
        self._with_part: dict[str, list[int]] = {}
        for index, secret in enumerate(self._secrets):
            for part in secret.parts:
                self._with_part.setdefault(part, []).append(index)
        self._parts_in = secrets.parts_in
        out = [s for s in secrets.items if s.kind == "solution" and not _is_secret(s, material)]
        # A mistaken line of a closed chapter may be a right line of a later one.
        self._only_bodies = (material.chapter or "").endswith(_AFTER)
        # Solutions of earlier chapters are public.
        self._public = {
            "solution": "\n".join([secrets.public_code, *(part for s in out for part in s.parts)]),
            "rubric": secrets.public_words,
        }
        own_texts = [form for path in material.submissions for _, forms in extract_texts(path) for form in forms]
        self._own = {
            "solution": "\n".join(map(strip_whitespace, own_texts)),
            "rubric": "\n".join(map(letters_only, own_texts)),
        }

    def texts(self, forms: Sequence[str]) -> tuple[list[_Text], list[_Text]]:
        """Return the forms of a text without white space and as letters only, each with the parts of secrets in it."""
        codes, letter_texts = (
            [(text, self._parts_in(text)) for text in map(how, forms)] for how in (strip_whitespace, letters_only)
        )
        return codes, letter_texts

    def can_leak(self, present: Set[str]) -> bool:
        """Return whether a text with these parts of secrets may be a leak. False is certain; True means that the text must be searched."""
        for secret in self._secrets_with(present):
            parts = [part for part in secret.parts if part in present]
            if secret.kind not in ("solution", "known mistake", "rubric"):
                return True
            public = self._public["rubric" if secret.kind == "rubric" else "solution"]
            if any(part not in public for part in parts):
                return True
            if secret.kind != "known mistake" and len(parts) >= _enough(len(secret.parts)):
                return True
        return False

    def leaks(self, label: str, codes: Sequence[_Text], letter_texts: Sequence[_Text]) -> Iterator[Leak]:
        """Yield the leaks of a text from the two lists that :meth:`texts` returns."""
        for secret in self._secrets_with(set().union(*(parts for _, parts in (*codes, *letter_texts)))):
            part = self._part(secret, letter_texts if secret.kind == "rubric" else codes)
            if part is not None:
                yield Leak(label, secret.kind, secret.name, part)

    def _secrets_with(self, present: Set[str]) -> list[Secret]:
        """Return the secrets with one of these parts, in order: most texts contain no part of most secrets."""
        return [self._secrets[i] for i in sorted({i for part in present for i in self._with_part.get(part, ())})]

    def _part(self, secret: Secret, texts: Iterable[tuple[str, Set[str]]]) -> str | None:
        kind = "rubric" if secret.kind == "rubric" else "solution"
        own_text, public = self._own[kind], self._public[kind]
        for text, parts_in_text in texts:
            present = [part for part in secret.parts if part in parts_in_text and part not in own_text]
            if present and secret.kind not in ("solution", "known mistake", "rubric"):
                return present[0]
            rare = next((part for part in present if part not in public), None)
            if rare is not None and not self._only_bodies:
                return rare
            # A lesson may show a mistake on purpose.
            if present and secret.kind != "known mistake" and _together(present, text) >= _enough(len(secret.parts)):
                return present[0]
        return None


def _is_secret(secret: Secret, material: Material) -> bool:
    if secret.kind not in ("solution", "known mistake") or material.chapter is None:
        return True
    # The name of a known mistake begins with its exercise's name.
    return secret.chapter >= material.chapter and secret.name.partition(",")[0] not in material.provided


def _enough(count: int) -> int:
    """Return how many lines of a body reveal it."""
    return count if count <= 2 else math.ceil(count * _MOST)


def _together(parts: Sequence[str], text: str) -> int:
    """Return the largest number of different parts close to each other in a text."""
    reach = 3 * sum(map(len, parts)) + 300
    places = sorted((position, index) for index, part in enumerate(parts) for position in _places(part, text))
    best, first = 0, 0
    for last, (position, _) in enumerate(places):
        while position - places[first][0] > reach:
            first += 1
        best = max(best, len({index for _, index in places[first : last + 1]}))
    return best


def _places(part: str, text: str) -> Iterator[int]:
    position = text.find(part)
    while position >= 0:
        yield position
        position = text.find(part, position + 1)


def _files(folder: Path, accept: Callable[[Path], bool] = Path.is_file) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if accept(path) and path.suffix.casefold() not in NOT_TEXT]
