"""Students' texts and code as HTML that cannot do anything: no tag of theirs, no script, nothing from elsewhere."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

from autograder.grading.formula import formula

_LONGEST, _MOST_FORMULAS = 20_000, 400
_TICKS = re.compile(r"`([^`]+)`")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class _Renderer(IPythonRenderer):  # type: ignore[misc]
    """Escapes what it does not know, draws formulas, and lowers headings below those of the page."""

    def __init__(self) -> None:
        super().__init__(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        return f"<h{min(level + 2, 6)}>{text}</h{min(level + 2, 6)}>\n"

    def inline_math(self, body: str) -> str:
        return formula(body)

    def block_math(self, body: str) -> str:
        return formula(body, display=True)

    def latex_environment(self, name: str, body: str) -> str:
        return formula(rf"\begin{{{name}}}{body}\end{{{name}}}", display=True)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return f"<em>[figure: {html.escape(text) or 'without a description'}]</em>"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        # A link into the lesson leads nowhere from here; one to the web would leave the page without a warning.
        return f"<u>{text}</u>"


@lru_cache(maxsize=1024)
def markdown(text: str) -> str:
    """Return a Markdown text as HTML: formulas drawn, headings lowered, tags and addresses disarmed.

    A text that no answer needs, very long or with very many formulas, is shown as it was written: to read it could take any time.
    """
    if len(text) > _LONGEST or text.count("\\begin") + text.count("$") > _MOST_FORMULAS:
        return f"<pre>{html.escape(text)}</pre>"
    rendered: str = MarkdownWithMath(renderer=_Renderer()).render(text)
    return rendered


@lru_cache(maxsize=1024)
def python(code: str) -> str:
    """Return Python code as HTML, its words marked with Pygments' short class names."""
    marked: str = highlight(
        code.rstrip() + "\n", PythonLexer(stripnl=False), HtmlFormatter(cssclass="code", wrapcode=True)
    )
    return marked


def in_code(text: str) -> Markup:
    """Return a sentence as HTML, what it has between backticks as code and everything else as it is."""
    return Markup(_TICKS.sub(r"<code>\1</code>", html.escape(text)))


def plain(text: str) -> str:
    """Return a text from a terminal without its colours; to be escaped where it is shown."""
    return _ANSI.sub("", text)
