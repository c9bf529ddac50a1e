"""Render students' text and code as HTML that cannot run anything.

Protects against:

- script injection: tags are escaped, links lose their address, Mermaid diagrams are shown as text
- requests to elsewhere: only PNG and JPEG attachments are shown, as data in the page
- text that becomes a large page: long texts, texts with many formulas, and what exceeds the notebook's limits are shown as written
- lexers that students choose: only Python is highlighted

Does not protect against:

- text that takes long to render: callers render students' text in a process with a limit (``autograder.limited_process``)
- misleading content: text can imitate the page, or try to persuade
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

from autograder.grading.feedback.formula import formula_html
from autograder.intake.notebook.images import PixelLimit, safe_images

_LONGEST, _MOST_FORMULAS = 20_000, 400
# Characters of MathML in one text; formulas behind them are shown as they were written.
_LONGEST_MATHML = 200_000
# Characters of HTML from one notebook's texts on one page; texts beyond are shown as they were written.
_LONGEST_PAGE = 1_000_000
_PYTHON = frozenset({"ipython", "ipython3", "py", "py3", "python", "python3"})
_TICKS = re.compile(r"`([^`]+)`")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class _Renderer(IPythonRenderer):  # type: ignore[misc]
    """Renders Markdown: escapes unknown markup, renders formulas, and lowers headings below the page's own."""

    def __init__(self, pictures: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)
        self._pictures = pictures
        self._shown: set[str] = set()
        self._left = _LONGEST_MATHML

    def block_code(self, code: str, info: str | None = None) -> str:
        # nbconvert's own takes any lexer that the text names; some of them take exponential time.
        language = (info or "").strip().partition(" ")[0].casefold()
        return python_html(code) if language in _PYTHON else f"<pre><code>{html.escape(code)}</code></pre>\n"

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        return f"<h{min(level + 2, 6)}>{text}</h{min(level + 2, 6)}>\n"

    def inline_math(self, body: str) -> str:
        return self._render_formula(body)

    def block_math(self, body: str) -> str:
        return self._render_formula(body, display=True)

    def latex_environment(self, name: str, body: str) -> str:
        return self._render_formula(rf"\begin{{{name}}}{body}\end{{{name}}}", display=True)

    def _render_formula(self, tex: str, *, display: bool = False) -> str:
        shown = formula_html(tex, display=display)
        self._left -= len(shown)
        return shown if self._left >= 0 else f"<code>{html.escape(tex)}</code>"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        described = html.escape(text) or "without a description"
        scheme, _, name = unquote(url).partition(":")
        if scheme != "attachment":
            return f"<em>[figure: {described}]</em>"
        forms = self._pictures.get(name)
        if not forms:
            return f"<em>[figure: {described}; its file is missing]</em>"
        if name in self._shown:
            # The page holds the picture itself, not its address: a thousand times would be a thousand pictures.
            return f"<em>[figure: {described}; shown above]</em>"
        self._shown.add(name)
        kind, data = next(iter(forms.items()))
        return f'<img src="data:{kind};base64,{data}" alt="{described}" style="max-width:100%">'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        # A link into the lesson leads nowhere from here; one to the web would leave the page without a warning.
        return f"<u>{text}</u>"


class NotebookTexts:
    """Renders all texts of one notebook for one page, with shared limits.

    Args:
        plain: whether every text is shown as it was written, without any parser.
        pixels: how many pixels the images may have; by default as many as a notebook may have.
    """

    def __init__(self, *, plain: bool = False, pixels: PixelLimit | None = None) -> None:
        self.pixels = pixels or PixelLimit()
        self._plain = plain
        self._left = _LONGEST_PAGE

    @property
    def plain(self) -> bool:
        """Whether texts are shown unrendered: all of them, or those beyond the limit."""
        return self._plain or self._left <= 0

    def markdown(self, text: str, attachments: Any = None) -> str:
        """Render Markdown as HTML, with the images among a cell's attachments that the text embeds."""
        if self.plain:
            return plain_html(text)
        pictures = safe_images(attachments, self.pixels)
        if not pictures:
            return self.count_html(_render_cached(text))
        shown = _render_markdown(text, pictures)
        # Pictures have limits of their own.
        self._left += sum(len(data) for forms in pictures.values() for data in forms.values() if data in shown)
        return self.count_html(shown)

    def python(self, code: str) -> str:
        """Highlight Python code as HTML."""
        return plain_html(code) if self.plain else self.count_html(python_html(code))

    def count_html(self, shown: str) -> str:
        """Subtract a piece of HTML from the page's limit, and return it."""
        self._left -= len(shown)
        return shown


def markdown_html(text: str, attachments: Any = None) -> str:
    """Render Markdown as HTML: formulas as MathML, headings lowered, tags escaped and link addresses removed.

    A text that no answer needs, very long or with very many formulas, is shown as it was written.

    Args:
        attachments: a cell's attachments; PNG and JPEG images among them are shown where the text has them.
    """
    return NotebookTexts().markdown(text, attachments)


def markdown_answer(text: str, attachments: Any = None, *, plain: bool = False) -> str:
    """Render one student's answer as HTML; see :class:`NotebookTexts`."""
    return NotebookTexts(plain=plain).markdown(text, attachments)


def plain_html(text: str) -> str:
    """Return a text as unrendered HTML in a ``<pre>`` element."""
    return f"<pre>{html.escape(text)}</pre>"


@lru_cache(maxsize=1024)
def _render_cached(text: str) -> str:
    return _render_markdown(text, {})


def _render_markdown(text: str, pictures: Mapping[str, Mapping[str, str]]) -> str:
    if len(text) > _LONGEST or text.count("\\begin") + text.count("$") > _MOST_FORMULAS:
        return plain_html(text)
    rendered: str = MarkdownWithMath(renderer=_Renderer(pictures)).render(text)
    return rendered


@lru_cache(maxsize=1024)
def python_html(code: str) -> str:
    """Highlight Python code as HTML with Pygments' short class names."""
    marked: str = highlight(
        code.rstrip() + "\n", PythonLexer(stripnl=False), HtmlFormatter(cssclass="code highlight", wrapcode=True)
    )
    return marked


def sentence_html(text: str) -> Markup:
    """Return a sentence as HTML, with text between backticks as code and everything else escaped."""
    return Markup(_TICKS.sub(r"<code>\1</code>", html.escape(text)))


def points_text(points: float) -> str:
    """Format points with at most two decimals, without trailing zeros."""
    return f"{round(points, 2):.8g}"


def duration_text(seconds: float) -> str:
    """Format a duration in its two largest units among days, hours and minutes, rounded up to a minute."""
    minutes = math.ceil(seconds / 60)
    parts = (minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute")
    return " ".join([f"{number} {unit}{'s' * (number != 1)}" for number, unit in parts if number][:2]) or "0 minutes"


def strip_colours(text: str) -> str:
    """Remove ANSI colour codes from a terminal's text; the result is not escaped."""
    return _ANSI.sub("", text)
