"""Search all files that students receive or see for solutions, hidden tests, rubrics and model answers.

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
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from autograder.course.artifact_cache import read_artifact, write_artifact
from autograder.course.release.secret_texts import Kind, Secret, Secrets, letters_only, strip_whitespace
from autograder.course.release.text_extraction import NOT_TEXT, extract_contents, text_forms
from autograder.errors import CourseError

_MOST = 0.6
_CHAPTER = re.compile(r"\d+_\w+")
# Pages that show a chapter's solutions, each with one mistake, once the chapter is closed.
OF_CLOSED_CHAPTERS = ("find-the-bug.html",)
_AFTER = "~"
_INDEX = "secret-lines"
# A site with its downloads has about 700 contents.
_INDEXED = 5000
# Kinds of secrets of which single lines or sentences may be public.
_TEXTS = ("solution", "known mistake", "rubric")


@dataclass(frozen=True)
class Material:
    """A file that students receive or can see."""

    path: Path
    # the chapter with which it is released: it may contain solutions of earlier chapters. None: it may contain none.
    chapter: str | None = None
    provided: frozenset[str] = frozenset()  # exercises whose solutions are released with the chapter on purpose


@dataclass(frozen=True)
class Leak:
    """A secret found in a file that students can see."""

    file: str  # the file; for a member of an archive, ``archive!member``
    kind: Kind  # the kind of secret
    name: str  # the exercise, question or marker
    part: str = field(compare=False)  # the line or sentence, as it was searched for

    def __str__(self) -> str:
        return f"{self.file}: {self.kind} {self.name}: {self.part[:80]}"


def find_leaks(files: Iterable[Path | Material], secrets: Secrets, root: Path | None = None) -> list[Leak]:
    """Search files for secrets.

    Args:
        files: files that students receive or can see; a plain path is searched for every secret.
        root: the project. Its cache lists the lines of secrets in each content, so that unchanged contents are not searched again.

    Returns:
        One leak for each file and secret, with the first matching part. Of files with the same content the first is named.
    """
    materials = [item if isinstance(item, Material) else Material(item) for item in files]
    # Files for everybody come first, then those of each chapter in order: for later chapters fewer solutions are secret. So content
    # that has been searched, for instance in an archive, need not be searched again.
    materials.sort(key=lambda material: material.chapter or "")
    searched: set[str] = set()
    key, index = sorted(secrets.all_parts), dict[str, list[str]]()
    with suppress(ValueError):  # a damaged file
        index = json.loads((root and read_artifact(root, _INDEX, key)) or "{}")
    # The chapter decides what is secret in a file, so most files share a search.
    searches: dict[tuple[str | None, frozenset[str]], _Search] = {}
    leaks: list[Leak] = []
    for material in materials:
        audience = material.chapter, material.provided
        search = searches.get(audience) or searches.setdefault(audience, _Search(secrets, material))
        for content in extract_contents(material.path, searched):
            parts = index.pop(content.digest, None)
            if parts is None or search.can_leak(set(parts)):
                texts = search.texts(text_forms(content))
                parts = sorted(set().union(*(parts for form in texts for _, parts in form)))
                leaks += search.leaks(content.label, *texts)
            index[content.digest] = parts  # as the last one: the least recently used entries go first
    if root is not None:
        newest = dict(list(index.items())[-_INDEXED:])
        write_artifact(root, _INDEX, key, json.dumps(newest).encode())
    return list(dict.fromkeys(leaks))


def refuse_leaks(leaks: Sequence[Leak], message: str) -> None:
    """Raise a CourseError that lists leaks, if there are any.

    Raises:
        CourseError: with one line per leak.
    """
    if leaks:
        listed = "\n".join(f"  - {leak}" for leak in leaks)
        raise CourseError(f"{message}:\n{listed}", do="Nothing was published. Change the public text or the solution.")


def site_materials(site: Path) -> list[Material]:
    """Return the files of a built site: pages, sources, search index, downloads."""
    materials = []
    for path in sorted(site.rglob("*")):
        if not path.is_file() or path.suffix.casefold() in NOT_TEXT:
            continue
        parts = path.relative_to(site).parts
        offered = parts[0] == "_downloads" and len(parts) == 3 and _CHAPTER.fullmatch(parts[1])
        materials.append(Material(path, _release_chapter(parts[1], parts[2]) if offered else None))
    return materials


def _release_chapter(chapter: str, name: str) -> str:
    """Return the chapter with which a download is released; pages about closed chapters sort right after it."""
    return f"{chapter}{_AFTER}" if name in OF_CLOSED_CHAPTERS else chapter


# A text, and the parts of secrets in it.
_Text: TypeAlias = tuple[str, set[str]]


class _Search:
    """A search for secrets in the files of one audience."""

    def __init__(self, secrets: Secrets, material: Material) -> None:
        self._secrets = [s for s in secrets.items if _is_secret(s, material)]
        self._with_part: dict[str, list[int]] = {}
        for index, secret in enumerate(self._secrets):
            for part in secret.parts:
                self._with_part.setdefault(part, []).append(index)
        self._parts_in = secrets.find_parts
        out = [s for s in secrets.items if s.kind == "solution" and not _is_secret(s, material)]
        # A mistaken line of a closed chapter may be a right line of a later one.
        self._only_bodies = (material.chapter or "").endswith(_AFTER)
        # Solutions of earlier chapters are public.
        self._public_code = "\n".join([secrets.public_code, *(part for s in out for part in s.parts)])
        self._public_words = secrets.public_words

    def texts(self, forms: Sequence[str]) -> tuple[list[_Text], list[_Text]]:
        """Return a text's forms without white space and as letters only, each with the secret parts in it."""
        codes, letter_texts = (
            [(text, self._parts_in(text)) for text in map(how, forms)] for how in (strip_whitespace, letters_only)
        )
        return codes, letter_texts

    def can_leak(self, present: Set[str]) -> bool:
        """Return whether a text with these secret parts may leak; if True, the text must be searched."""
        return any(self._find_revealing_part(secret, present, len) for secret in self._find_secrets(present))

    def leaks(self, label: str, codes: Sequence[_Text], letter_texts: Sequence[_Text]) -> Iterator[Leak]:
        """Yield the leaks of a text from the two lists that :meth:`texts` returns."""
        for secret in self._find_secrets(set().union(*(parts for _, parts in (*codes, *letter_texts)))):
            for text, present in letter_texts if secret.kind == "rubric" else codes:
                if part := self._find_revealing_part(secret, present, partial(_count_close_parts, text=text)):
                    yield Leak(label, secret.kind, secret.name, part)
                    break

    def _find_secrets(self, present: Set[str]) -> list[Secret]:
        """Return the secrets with any of these parts, in order."""
        return [self._secrets[i] for i in sorted({i for part in present for i in self._with_part.get(part, ())})]

    def _find_revealing_part(
        self, secret: Secret, present: Set[str], together: Callable[[Sequence[str]], int]
    ) -> str | None:
        """Return the first part that reveals a secret in a text with these parts; None if the secret is safe.

        Args:
            together: returns how many of some parts are close to each other in the text.
        """
        parts = [part for part in secret.parts if part in present]
        if not parts or secret.kind not in _TEXTS:
            return next(iter(parts), None)
        public = self._public_words if secret.kind == "rubric" else self._public_code
        rare = next((part for part in parts if part not in public), None)
        if rare is not None and not self._only_bodies:
            return rare
        # A lesson may show a mistake on purpose.
        if secret.kind != "known mistake" and together(parts) >= _revealing_count(len(secret.parts)):
            return parts[0]
        return None


def _is_secret(secret: Secret, material: Material) -> bool:
    if secret.kind not in ("solution", "known mistake") or material.chapter is None:
        return True
    # The name of a known mistake begins with its exercise's name.
    return secret.chapter >= material.chapter and secret.name.partition(",")[0] not in material.provided


def _revealing_count(count: int) -> int:
    """Return the number of a body's lines that reveal it."""
    return count if count <= 2 else math.ceil(count * _MOST)


def _count_close_parts(parts: Sequence[str], text: str) -> int:
    """Return the largest number of different parts close to each other in a text."""
    reach = 3 * sum(map(len, parts)) + 300
    places = sorted((position, index) for index, part in enumerate(parts) for position in _find_all(part, text))
    best, first = 0, 0
    for last, (position, _) in enumerate(places):
        while position - places[first][0] > reach:
            first += 1
        best = max(best, len({index for _, index in places[first : last + 1]}))
    return best


def _find_all(part: str, text: str) -> Iterator[int]:
    position = text.find(part)
    while position >= 0:
        yield position
        position = text.find(part, position + 1)
