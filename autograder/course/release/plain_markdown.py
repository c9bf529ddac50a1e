"""Convert a lesson's MyST to plain Markdown: roles, directives and labels become text and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pybtex.database import Person, parse_file

_LABEL = re.compile(r"^\(([\w-]+)\)=\s*$\n?", re.MULTILINE)
_LABELLED = re.compile(r"^\(([\w-]+)\)=\s*\n+(?:\([\w-]+\)=\s*\n+)*#+\s+(.+?)\s*$", re.MULTILINE)
_EQUATION = re.compile(r"\n?\$\$ \(([\w-]+)\)")
_ROLE = re.compile(r"\{(?P<role>[a-z:]+)\}`(?P<text>[^`]+)`", re.DOTALL)
_TITLED = re.compile(r"^(?P<title>.*\S)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
_BLOCK = re.compile(r"^```\{(?P<kind>\w+)\}[ ]*(?P<title>[^\n]*)\n(?P<body>.*?)\n```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"^:[\w-]+:.*\n?", re.MULTILINE)


@dataclass(frozen=True)
class References:
    """The reference targets in a course's texts."""

    headings: Mapping[str, tuple[str, str]]  # the heading under each label, with the folder of its chapter
    works: Mapping[str, tuple[str, str]]  # authors and year of each cited work


@cache
def collect_references(root: Path) -> References:
    """Collect a project's reference targets: labelled headings of its pages, and its bibliography."""
    headings: dict[str, tuple[str, str]] = {}
    pages = (path for pattern in ("chapters/*/*.md", "book/*.md", "docs/*.md") for path in root.glob(pattern))
    for path in sorted(pages):
        for label, heading in _LABELLED.findall(path.read_text(encoding="utf-8")):
            headings[label] = (path.parent.name, heading)
    bibliography = root / "book" / "references.bib"
    entries = parse_file(str(bibliography)).entries if bibliography.is_file() else {}
    works = {
        key: (_author_names(entry.persons.get("author", [])), entry.fields.get("year", ""))
        for key, entry in entries.items()
    }
    return References(headings, works)


def _author_names(people: list[Person]) -> str:
    names = [" ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names])) for person in people]
    if len(names) > 2 or "others" in names[1:]:
        return f"{names[0]} et al."
    return " and ".join(names)


@dataclass
class PlainMarkdown:
    """Converts the texts of one lesson to plain Markdown; equations are numbered through the lesson."""

    chapter: str  # the lesson's chapter
    references: References  # the targets of references
    _numbers: dict[str, int] = field(default_factory=dict)

    def number_equations(self, texts: Iterator[str]) -> None:
        """Number every labelled equation before texts that refer to equations are converted."""
        for text in texts:
            for label in _EQUATION.findall(text):
                self._numbers[label] = len(self._numbers) + 1

    def __call__(self, text: str) -> str:
        """Convert a text to plain Markdown."""
        text = _BLOCK.sub(self._convert_block, text)
        text = _LABEL.sub("", text)
        text = _EQUATION.sub(lambda match: rf"\n\tag{{{self._numbers[match[1]]}}}".replace(r"\n", "\n") + "\n$$", text)
        return _ROLE.sub(self._convert_role, text)

    def _convert_block(self, match: re.Match[str]) -> str:
        """Convert a directive to a quotation under its title."""
        title = match["title"].strip() or match["kind"].capitalize()
        lines = [f"**{title}**", "", *_OPTION.sub("", match["body"]).strip().split("\n")]
        return "\n".join(f"> {line}".rstrip() for line in lines)

    def _convert_role(self, match: re.Match[str]) -> str:
        role, text = match["role"], " ".join(match["text"].split())
        titled = _TITLED.match(text)
        title, target = (titled["title"], titled["target"]) if titled else ("", text)
        if role.startswith("cite"):
            return self._cite(role, target)
        if role == "eq":
            return f"({self._numbers[target]})"
        if role == "ref":
            return self._link(target, title)
        if role == "doc":
            return title or target.rpartition("/")[2]
        if role.startswith("py:"):
            return f"`{title or target.lstrip('~').rpartition('.')[2]}`"
        raise ValueError(f"{match[0]}: there is no plain form of the role {role!r}; give it one in {__name__}")

    def _cite(self, role: str, keys: str) -> str:
        works = [self.references.works[key.strip()] for key in keys.split(",")]
        if role == "cite:t":
            return " and ".join(f"{authors} ({year})" for authors, year in works)
        return "(" + "; ".join(f"{authors}, {year}" for authors, year in works) + ")"

    def _link(self, label: str, title: str) -> str:
        chapter, heading = self.references.headings[label]
        heading = _ROLE.sub(self._convert_role, heading)
        if chapter == self.chapter:
            return f"[{title or heading}](#{heading.replace(' ', '-')})"
        where = f"lesson {chapter[:2]}" if chapter[:2].isdigit() else "the course's site"
        return f"{title or f'*{heading}*'} ({where})"
