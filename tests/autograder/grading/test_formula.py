"""A student's TeX becomes MathML that cannot do anything, of limited length."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.feedback.formula import _ATTRIBUTES, _TAGS, formula
from autograder.feedback.markup import markdown

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = [
    r"\text{<script>alert(1)</script>}",
    r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
    r"\href{javascript:alert(1)}{x}",
    r"\style{background:url(http://x)}{x}",
    r"\class{panel}{x}",
    r"\color{url(http://x)}{x}",
    r"\colorbox{url(http://x)}{x}",
    r"\mathop{<img src=x onerror=alert(1)>}",
    r"\operatorname{</math><img src=x>}",
    r"\rule{1em\" onclick=\"alert(1)}{1em}",
    r"\hspace{1em\" onclick=\"alert(1)}",
    r"\mbox{</mtext><a href=javascript:x>y</a>}",
    r"\begin{array}{c\" onclick=\"x} a \end{array}",
    r"\unicode{60}script\unicode{62}",
]
_TAG = re.compile(r"<(/?)(\w+)((?: \w+=\"[\w.+% -]*\")*)>")


@pytest.mark.parametrize("tex", HOSTILE)
def test_nothing_of_a_formula_runs_or_fetches(tex: str) -> None:
    shown = formula(tex)
    assert "<" not in _TAG.sub("", shown)
    attributes = {name for match in _TAG.finditer(shown) for name in re.findall(r" (\w+)=", match[3])}
    names = {match[2] for match in _TAG.finditer(shown)}
    assert names <= _TAGS | {"code"}
    assert attributes <= _ATTRIBUTES | {"display", "class"}
    assert shown.count("class=") == shown.startswith('<code class="tex">')


@pytest.mark.parametrize(
    "tex",
    [
        r"\frac{" * 300 + "1" + "}{2}" * 300,
        r"\sqrt{" * 300 + "x" + "}" * 300,
        r"\left(" * 300,
        "{" * 1_000,
        "x_1 + " * 1_000,
        r"\def\a{xxxxxxxxxx}\def\b{\a\a\a\a\a\a\a\a\a}\b\b\b",
        r"\includegraphics{x}",
        r"\begin{matrix}" + "&" * 1_900 + r"\end{matrix}",
        "",
    ],
)
def test_what_cannot_or_should_not_be_converted_stays_short(tex: str) -> None:
    assert len(formula(tex)) <= max(len(tex) * 6, 41_000)


def test_a_text_full_of_formulas_stays_short() -> None:
    bomb = r"$\begin{matrix}" + "&" * 60 + r"\end{matrix}$ "
    text = bomb * 199
    assert len(text) < 20_000
    assert len(markdown(text)) < 300_000


def test_aligned_equations_have_columns() -> None:
    assert "<mtable" in formula(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True)


def test_nearly_all_of_the_courses_formulas_are_converted() -> None:
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("chapters/*/*.md")]
    found = {tex for text in texts for tex in re.findall(r"(?<![\\$])\$([^$\n]+)\$(?!\$)", text)}
    left = {tex for tex in found if "<code" in formula(tex)}
    assert len(found) > 300
    assert len(left) <= len(found) // 100, left
