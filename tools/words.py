"""Find the words that tools/words.toml bans, in everything that people read.

``python -m tools.words`` prints the number of matches per area; ``python -m tools.words docs help`` lists those of some areas.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

ROOT = Path(__file__).parents[1]
CODE = "‹code›"
_GENERATED = re.compile(r"<!-- (?P<name>\w+): begin -->.*?<!-- (?P=name): end -->", re.DOTALL)
_PROSE_DIRECTIVE = re.compile(r"\{(note|tip|warning|important|admonition|dropdown|hint|grid|grid-item-card|card)\}")
_PRINTED_VALUE = re.compile(r"\{\{.*?\}\}")
_OPTION = re.compile(r"^:[\w-]+:.*$", re.MULTILINE)
_ENDING = re.compile(r"(?<=[.!?])[)\"'”]*\s+(?=[A-Z‹“\"(])")


@dataclass(frozen=True)
class Passage:
    """A piece of text that is read as one: a paragraph, a table cell, a message, a docstring's paragraph, or a name."""

    path: Path
    line: int
    text: str

    @property
    def where(self) -> str:
        """The file and the line, for messages."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    @property
    def labelled(self) -> str:
        """The file and the text: allow-lists have pieces of it."""
        return f"{self.path.relative_to(ROOT)}: {self.text}"

    def longest_sentence(self) -> str:
        """Return the sentence with the most words."""
        return max(_ENDING.split(self.text), key=lambda sentence: len(sentence.split()))


# ------------------------------------------------------------------------------------------------------------ Markdown


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    for plugin in (front_matter_plugin, dollarmath_plugin, myst_block_plugin, myst_role_plugin, colon_fence_plugin):
        parser.use(plugin)
    return parser


def _inline(token: Token) -> str:
    """Return the text of a paragraph, with ``CODE`` in place of code, formulas, roles and printed values."""
    parts = []
    for child in token.children or []:
        if child.type == "text":
            parts.append(child.content)
        elif child.type in {"softbreak", "hardbreak"}:
            parts.append(" ")
        elif child.type == "image":
            parts.append(child.content)
        elif child.type in {"code_inline", "math_inline", "math_inline_double", "myst_role"}:
            parts.append(CODE)
    return " ".join(_PRINTED_VALUE.sub(CODE, "".join(parts)).split())


def markdown_passages(path: Path, text: str, first_line: int = 1) -> Iterator[Passage]:
    """Yield the paragraphs, headings, list items and table cells of a page, without code and generated blocks."""
    text = _GENERATED.sub(lambda match: "\n" * match[0].count("\n"), text)
    line = first_line
    for token in _parser().parse(text):
        line = first_line + token.map[0] if token.map else line
        if token.type in {"fence", "colon_fence"} and _PROSE_DIRECTIVE.match(token.info.strip()):
            title = token.info.partition("}")[2].strip()
            yield from markdown_passages(path, title + "\n\n" + _OPTION.sub("", token.content), line - 1)
        elif token.type == "inline" and (content := _inline(token)):
            yield Passage(path, line, content)


def pages(*patterns: str, skip: tuple[str, ...] = ()) -> Iterator[Passage]:
    """Yield the passages of all pages that match a pattern."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            if str(path.relative_to(ROOT)) not in skip:
                yield from markdown_passages(path, path.read_text(encoding="utf-8"))


# -------------------------------------------------------------------------------------------------------------- Python


@cache
def _modules(folder: str) -> tuple[tuple[Path, ast.Module], ...]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return tuple((path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths)


def _plain(text: str) -> str:
    """Return a docstring's text with ``CODE`` in place of code."""
    return " ".join(re.sub(r"``.+?``|:\w+:`.+?`|`[^`]+`", CODE, text, flags=re.DOTALL).split())


def docstrings(folder: str) -> Iterator[Passage]:
    """Yield the paragraphs of all docstrings."""
    for path, tree in _modules(folder):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for paragraph in re.split(r"\n\s*\n|\n\s*(?=\w+: |- )", ast.get_docstring(node) or ""):
                yield Passage(path, getattr(node, "lineno", 1), _plain(paragraph))


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts below a node, with ``CODE`` in place of values that are formatted in."""
    if isinstance(node, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else CODE for part in node.values]
        yield node.lineno, "".join(parts)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


def messages(folder: str) -> Iterator[Passage]:
    """Yield the texts of all exceptions that are raised."""
    for path, tree in _modules(folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for argument in [*node.exc.args, *(keyword.value for keyword in node.exc.keywords)]:
                    for line, text in _strings(argument):
                        yield Passage(path, line, _plain(text))


def help_texts() -> Iterator[Passage]:
    """Yield the help of all commands and options: arguments ``help`` and the docstrings of command functions."""
    for path, tree in _modules("autograder/commands"):
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in {"help", "short_help", "epilog"}:
                for line, text in _strings(node.value):
                    yield Passage(path, line, _plain(text))
            elif isinstance(node, ast.FunctionDef) and any("command" in ast.dump(one) for one in node.decorator_list):
                for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                    yield Passage(path, node.lineno, _plain(paragraph.replace("\b", "")))


def command_output() -> Iterator[Passage]:
    """Yield what commands print: all texts of at least three words, apart from docstrings, help and exceptions."""
    for path, tree in _modules("autograder/commands"):
        covered: set[ast.AST] = set()
        for node in ast.walk(tree):
            is_help = isinstance(node, ast.keyword) and node.arg == "help"
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if is_help or is_docstring or isinstance(node, ast.Raise | ast.JoinedStr):
                covered |= set(ast.walk(node)) - {node}
            if isinstance(node, ast.JoinedStr | ast.Constant) and node not in covered:
                for line, text in _strings(node):
                    if len(text.split()) >= 3:
                        yield Passage(path, line, _plain(text))


def names(*folders: str) -> Iterator[Passage]:
    """Yield each name that a module binds: variables, arguments, functions and classes, without leading underscores."""
    for folder in folders:
        for path, tree in _modules(folder):
            for name, line in bound_names(tree):
                yield Passage(path, line, name.lstrip("_"))


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a syntax tree binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def diagnoses() -> Iterator[Passage]:
    """Yield the explanations of all known mistakes."""
    for path in sorted((ROOT / "autograder" / "checks").rglob("*.toml")):
        text = path.read_text(encoding="utf-8")
        for mistake in tomllib.loads(text).get("mistake", []):
            line = text[: text.index(f'name = "{mistake["name"]}"')].count("\n") + 1
            yield Passage(path, line, _plain(mistake["told"]))


# --------------------------------------------------------------------------------------------------------------- areas

# Pages that a command writes from texts of other areas.
WRITTEN_BY_COMMANDS = ("docs/systems.md", "docs/attacks.md")
PACKAGES = sorted(path.parent.name for path in (ROOT / "autograder").glob("*/__init__.py"))

AREAS: dict[str, Callable[[], Iterator[Passage]]] = {
    "docs": lambda: pages("docs/*.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", skip=WRITTEN_BY_COMMANDS),
    "guides": lambda: pages("README.md", "book/*.md", "book/teaching/*.md", "book/api/*.md"),
    "lessons": lambda: pages("chapters/*/lesson.md"),
    "slides": lambda: pages("chapters/*/slides.md"),
    "prompts": lambda: pages("chapters/*/exercises.md"),
    "diagnoses": diagnoses,
    **{f"messages in {package}": partial(messages, f"autograder/{package}") for package in PACKAGES},
    "help": help_texts,
    "command output": command_output,
    **{f"docstrings in {package}": partial(docstrings, f"autograder/{package}") for package in PACKAGES},
    "docstrings in tfcourse": lambda: (
        passage for passage in docstrings("tfcourse") if "lessons" not in passage.path.parts
    ),
    "docstrings in tfcourse.lessons": partial(docstrings, "tfcourse/lessons"),
    **{f"names in {package}": partial(names, f"autograder/{package}") for package in PACKAGES},
    "names in autograder's own modules": lambda: (
        passage for passage in names("autograder") if passage.path.parent == ROOT / "autograder"
    ),
    "names in tfcourse": lambda: names("tfcourse"),
}


PROSE = [area for area in AREAS if not area.startswith("names")]


# --------------------------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True)
class Rule:
    """A banned expression.

    Attributes:
        find: the expression; it ignores case.
        write: what to write instead.
        areas: the areas in which it is banned.
        restricted: whether it makes sense in these areas only.
        allow: passages that may contain it, each as a piece of its text.
    """

    find: re.Pattern[str]
    write: str
    areas: frozenset[str]
    restricted: bool = False
    allow: tuple[str, ...] = ()

    def find_in(self, passage: Passage) -> re.Match[str] | None:
        """Return the match in a passage, unless the allow-list has it."""
        match = self.find.search(passage.text)
        return None if match and any(piece in passage.labelled for piece in self.allow) else match


@dataclass(frozen=True)
class Table:
    """The contents of tools/words.toml."""

    rules: tuple[Rule, ...]
    longest_sentence: int
    long_sentences_banned: frozenset[str]
    allow_long: tuple[str, ...]
    pending: dict[str, int]

    def allowed(self) -> list[str]:
        """Return all entries of the allow-lists."""
        return [*self.allow_long, *(piece for rule in self.rules for piece in rule.allow)]


def table(path: Path = ROOT / "tools" / "words.toml") -> Table:
    """Read the table of words."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    rules = tuple(
        Rule(
            re.compile(rule["find"], re.IGNORECASE),
            rule["write"],
            _areas(rule),
            "areas" in rule,
            tuple(rule.get("allow", ())),
        )
        for rule in content["rule"]
    )
    sentences = content["sentences"]
    allow = tuple(sentences.get("allow", ()))
    return Table(rules, sentences["words"], _areas(sentences), allow, content["pending"])


def _areas(rule: dict[str, list[str]]) -> frozenset[str]:
    """Return the areas in which a rule is in force: its own ``areas``, or all prose."""
    chosen = frozenset(rule.get("areas", PROSE))
    if unknown := chosen - AREAS.keys():
        raise ValueError(f"tools/words.toml: unknown areas {sorted(unknown)}; known are {sorted(AREAS)}")
    return chosen


def findings(area: str, words: Table, everywhere: bool = False) -> Iterator[str]:
    """Yield a line per banned expression in an area.

    Args:
        area: a key of ``AREAS``.
        words: the table.
        everywhere: also apply rules that are not yet in force in this area.
    """
    prose = not area.startswith("names")
    rules = [rule for rule in words.rules if area in rule.areas or (everywhere and prose == (not rule.restricted))]
    sentences = area in words.long_sentences_banned or (everywhere and prose)
    for passage in AREAS[area]():
        for rule in rules:
            if match := rule.find_in(passage):
                yield f"{passage.where}: {match[0]!r} in {_around(passage.text, match)!r}. Write: {rule.write}"
        if not sentences:
            continue
        longest = passage.longest_sentence()
        if len(longest.split()) > words.longest_sentence and not any(piece in longest for piece in words.allow_long):
            yield f"{passage.where}: {len(longest.split())} words: {longest!r}. Write: at most {words.longest_sentence}"


def _around(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - 40) : match.end() + 40]


if __name__ == "__main__":
    if chosen := sys.argv[1:]:
        for one in chosen:
            print(*findings(one, table(), everywhere=True), sep="\n")
    else:
        for one in AREAS:
            matches = len(list(findings(one, table(), everywhere=True)))
            in_force = len(list(findings(one, table())))
            print(f"{one:30} {matches:6} matches, {in_force} of them banned there")
