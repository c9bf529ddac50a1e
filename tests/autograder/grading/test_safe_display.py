"""What of a student's notebook reaches a lecturer's browser: texts, pixels and tables, and nothing that runs or fetches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from traitlets.config import Config

from autograder.grading.feedback.formula import _ATTRIBUTES, _TAGS, formula_html
from autograder.grading.feedback.markup import markdown_html
from autograder.grading.feedback.safe_notebook import FILTERS, SafeNotebook
from autograder.grading.plugin import configure
from autograder.intake.notebook.images import image_base64, safe_images
from tests.autograder.submission.pictures import jpeg, png

PNG = png(2, 3)
JPEG = jpeg(2, 3)


def shown(*cells: Any, **metadata: Any) -> Any:
    """What of a notebook the formgrader shows."""
    made, _ = SafeNotebook().preprocess(new_notebook(cells=list(cells), metadata=metadata), {})
    return made


# ------------------------------------------------------------------------------------------------------------ pictures


def test_png_and_jpeg_are_kept_and_everything_else_is_left_out() -> None:
    attachments = {
        "a.png": {"image/png": PNG, "image/svg+xml": "<svg/>"},
        "b.jpg": {"image/jpeg": [JPEG[:4], "\n" + JPEG[4:]]},
        "c.svg": {"image/svg+xml": "<svg onload=x>"},
        "d.png": {"image/png": JPEG},
        "e.png": {"image/png": '"><script>'},
        "f.png": "no forms",
        "g" * 300: {"image/png": PNG},
    }
    assert safe_images(attachments) == {"a.png": {"image/png": PNG}, "b.jpg": {"image/jpeg": JPEG}}
    assert safe_images(None) == safe_images(["x"]) == {}


@pytest.mark.parametrize("data", [None, 3, "", "====", PNG + '"', PNG + "é", "<svg/>"])
def test_what_is_no_picture_has_no_data(data: Any) -> None:
    assert image_base64("image/png", data) == ""


def test_a_picture_stands_where_the_text_has_it_and_a_missing_one_is_said_to_be_missing() -> None:
    html = markdown_html(
        '![a "quote"](attachment:a%20b.png) ![](attachment:no.png) ![far](http://x/y.png)',
        {"a b.png": {"image/png": PNG}},
    )
    assert f'src="data:image/png;base64,{PNG}"' in html
    assert "without a description; its file is missing" in html
    assert "[figure: far]" in html
    assert "http://x" not in html


# ---------------------------------------------------------------------------------------------------------- the page


def test_metadata_keep_the_marks_and_nothing_of_the_students() -> None:
    good = {"grade_id": "q", "points": 2, "grade": True, "solution": True, "locked": "yes", "own": "<x>"}
    notebook = shown(
        new_markdown_cell("a", metadata={"nbgrader": good, "title": "<x>"}),
        new_markdown_cell("b", metadata={"nbgrader": {"grade_id": '"><script>'}}),
        new_raw_cell("<script>x</script>\n```", metadata={"raw_mimetype": "text/html"}),
        widgets={"state": "</script>"},
        title="<script>",
    )
    assert notebook.metadata == {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    assert [dict(cell.metadata) for cell in notebook.cells] == [
        {"nbgrader": {"grade_id": "q", "grade": True, "solution": True, "points": 2}},
        {},
        {},
    ]
    assert notebook.cells[2].cell_type == "markdown"
    assert "<script" not in notebook.cells[2].source
    assert "&lt;script&gt;" in notebook.cells[2].source


def test_outputs_keep_text_tables_and_pixels_without_attributes() -> None:
    table = (
        '<table onclick="x"><tr><td style="background:url(http://x)" colspan="2">1</td></tr></table><script>x</script>'
    )
    outputs = [
        new_output("stream", text="printed"),
        new_output("display_data", data={"text/html": table}, metadata={"text/html": {"isolated": True}}),
        new_output(
            "display_data",
            data={"image/png": PNG, "text/plain": "figure"},
            metadata={"image/png": {"width": "1 onload=x"}},
        ),
        new_output("display_data", data={"image/svg+xml": "<svg onload=x>", "application/javascript": "x"}),
        new_output("display_data", data={"text/latex": "$\\href{javascript:x}{y}$", "text/plain": "formula"}),
        new_output("error", ename="E", evalue="<script>", traceback=["<script>"]),
    ]
    (cell,) = shown(new_code_cell("1", outputs=outputs, execution_count=3)).cells
    kinds = [(output.output_type, dict(output.get("data", {}))) for output in cell.outputs]
    assert kinds[0] == ("stream", {})
    assert kinds[1][1]["text/html"] == '<table><tbody><tr><td colspan="2">1</td></tr></tbody></table>x'
    assert kinds[2:] == [
        ("display_data", {"image/png": PNG, "text/plain": "figure"}),
        ("display_data", {"text/plain": "formula"}),
        ("error", {}),
    ]
    assert all(not output.get("metadata") for output in cell.outputs)


def test_whatever_a_course_configures_nbgrader_s_pages_get_the_course_s_markdown() -> None:
    config = Config()
    config.HTMLExporter.sanitize_html = False
    config.HTMLExporter.filters = {"markdown2html": lambda text: text, "own": lambda text: text}
    configure(config)
    configure(config)
    page, _ = HTMLExporter(config=config, template_name="classic").from_notebook_node(
        new_notebook(cells=[new_markdown_cell("**bold** <script>alert(1)</script>")])
    )
    assert "<script>alert(1)" not in page
    assert "<strong>bold</strong>" in page
    assert set(config.HTMLExporter.filters) == {*FILTERS, "own"}
    assert config.HTMLExporter.preprocessors == [SafeNotebook]


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
    shown = formula_html(tex)
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
    assert len(formula_html(tex)) <= max(len(tex) * 6, 41_000)


def test_a_text_full_of_formulas_stays_short() -> None:
    bomb = r"$\begin{matrix}" + "&" * 60 + r"\end{matrix}$ "
    text = bomb * 199
    assert len(text) < 20_000
    assert len(markdown_html(text)) < 300_000


def test_aligned_equations_have_columns() -> None:
    assert "<mtable" in formula_html(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True)


def test_nearly_all_of_the_courses_formulas_are_converted() -> None:
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("chapters/*/*.md")]
    found = {tex for text in texts for tex in re.findall(r"(?<![\\$])\$([^$\n]+)\$(?!\$)", text)}
    left = {tex for tex in found if "<code" in formula_html(tex)}
    assert len(found) > 300
    assert len(left) <= len(found) // 100, left
