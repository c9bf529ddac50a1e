"""A feedback page tells the student what was found, and nothing that is not theirs to know."""

from __future__ import annotations

import errno
import html
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert.writers import FilesWriter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder import site_address
from autograder.checking.verdict import NOT_JUDGED, VERDICT_MIME, Finding, Verdict
from autograder.checks import check
from autograder.commands.grade_chapter import write_pages
from autograder.course.folder import Course
from autograder.engine.interface import Execution, Submission
from autograder.grading.autograde import autograde
from autograder.grading.feedback import page_stamps
from autograder.grading.feedback import pages as feedback_pages
from autograder.grading.feedback.markup import markdown_html, points_text, sentence_html
from autograder.grading.feedback.page import Page, Part, build_feedback_page
from autograder.grading.feedback.page_html import _load_template
from autograder.grading.feedback.pages import write_feedback
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.record.results import read_result
from autograder.intake.notebook.problem import Problem, add_problems

from .conftest import CHAPTER, Fill, put

ANSWER = (
    "Since $\\frac{a}{\\sqrt{D_h}}$ <script>alert(1)</script> ![x](https://evil.example/p.png) [y](javascript:alert(2))"
)
WRONG = "def causal_mask(T, device=None):\n    return torch.ones(T, T, dtype=torch.bool, device=device).triu()  # '<b>'"


@dataclass(frozen=True)
class Here:
    """Runs a notebook in this process, without Jupyter: what a cell printed and what its check returned."""

    def close(self) -> None:
        """Hold nothing."""

    def grade_one(self, submission: Submission) -> Execution:
        notebook = nbformat.reads(submission.notebook, as_version=4)
        space: dict[str, Any] = {"check": check}
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if name.startswith("test_"):
                cell.outputs = [
                    new_output("stream", name="stdout", text="tensor([[0.123hidden]])"),
                    *_outcome(name, space),
                ]
            elif cell.cell_type == "code":
                exec(cell.source, space)
        return Execution(submission.student, nbformat.writes(notebook), 0.1)


def _outcome(name: str, space: dict[str, Any]) -> list[Any]:
    function = space[name.removeprefix("test_")]
    if function.__doc__ == "raise":
        lines = ["NameError Traceback", "### BEGIN HIDDEN TESTS", "----> 3 check(soft_lookup, hidden=True)"]
        return [new_output("error", ename="NameError", evalue="name 'x' is not defined", traceback=lines)]
    verdict: Verdict = check(function)
    data = {"text/plain": repr(verdict), "text/html": "<b>forged</b>", VERDICT_MIME: verdict.to_dict()}
    return [new_output("execute_result", data, execution_count=1)]


@pytest.fixture(scope="module")
def told(
    pristine: Path, tmp_path_factory: pytest.TempPathFactory, filled: Fill, right: dict[str, str]
) -> tuple[Course, dict[str, str]]:
    """A course with the pages of a student with mistakes, one with nothing, and one whose file cannot be graded."""
    root = tmp_path_factory.mktemp("feedback") / "course"
    shutil.copytree(pristine, root)
    course = Course.open(root)
    failing = "def soft_lookup(query, keys, values):\n    'raise'"
    talking = (
        "def merge_query_key(w_q, w_k):\n    raise ValueError(f'{w_q[0, 0]:.3f} is odd, shape {tuple(w_q.shape)}')"
    )
    put(course, "ann", filled(answer=ANSWER, **{**right, "causal_mask": WRONG, "soft_lookup": failing}))
    put(course, "ben", filled(merge_query_key=talking))
    put(course, "cem", b"%PDF-1.4")
    autograde(course, CHAPTER, device="cpu", make_executor=lambda settings: Here())
    with GradebookWriter(course, CHAPTER, autograder_config(course)).gradebook() as gradebook:
        gradebook.find_comment("causal_mask", CHAPTER, CHAPTER, "ann").manual_comment = "Draw the *triangle* first."
        gradebook.db.commit()
    paths = write_feedback(course, CHAPTER, autograder_config(course))
    assert [path.relative_to(course.root).as_posix() for path in paths] == [
        f"feedback/{student}/{CHAPTER}/{CHAPTER}.html" for student in ("ann", "ben", "cem")
    ]
    return course, {path.parents[1].name: path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture
def pages(told: tuple[Course, dict[str, str]]) -> dict[str, str]:
    """The pages by student."""
    return told[1]


@pytest.fixture
def course(told: tuple[Course, dict[str, str]], tmp_path: Path) -> Course:
    """The same course, to be changed."""
    shutil.copytree(told[0].root, tmp_path / "course")
    return Course.open(tmp_path / "course")


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL).split())


SECRET = ("hidden=True", "HIDDEN TESTS", "0.123hidden", "forged", "Because of the variance", "Traceback", "An example")
# What stands on a student's page, and what does not.
SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ann": (
        # Of 18 points, the answer that nobody has read is worth 4.
        *(("4 of 14 points so far", "up to 4 of 18", "Causal mask 0 of 4", "Merge query key 4 of 4", "0 of 0.5"),),
        ("3 of 6 aspects", "expected [["),
    ),
    "ben": (("0 of 18 points", "Causal mask 0 of 4 not written", "0 of 4 no answer"), ("points so far",)),
    "cem": (("could not be graded", "PDF", "tfcourse validate"), ("NotImplementedError", "of 18 points")),
}
MARKED = {
    "ann": ('href="#test_causal_mask"', "&lt;b&gt;", "<em>triangle</em>", "NameError", "The wrong triangle is True"),
    "ben": ("ValueError: … is odd, shape (",),
    "cem": (),
}


@pytest.mark.parametrize("student", SHOWN)
def test_a_page_says_what_was_found_and_nothing_that_is_secret(
    pages: dict[str, str], right: dict[str, str], student: str
) -> None:
    page, text = pages[student], text_of(pages[student])
    shown, hidden = SHOWN[student]
    assert [word for word in shown if word not in text] == []
    assert [word for word in MARKED[student] if word not in page] == []
    assert [word for word in (*SECRET, *hidden) if word in page or word in text] == []
    lines = [line.strip() for name in ("causal_mask", "soft_lookup") for line in right[name].splitlines()[1:]]
    assert not [line for line in lines if line and line in pages["ben"]]
    title = page.partition("<h1>")[2].partition("</h1>")[0]
    assert title in pages["ann"], "the title is the chapter's, also where the file does not name it"


def test_a_page_needs_nothing_and_runs_nothing(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert "<script" not in page
        assert "javascript:" not in page
        assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", page)
        assert "@import" not in page
        assert "url(" not in page
        assert "default-src 'none'" in page


def test_sections_become_links_where_the_site_is_known(
    course: Course, pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, monkeypatch, "https://course.example/site")
    (path,) = write_feedback(course, CHAPTER, autograder_config(course), students=["ann"])
    page = path.read_text(encoding="utf-8")
    assert f'href="https://course.example/site/chapters/{CHAPTER}/lesson.html#causal-mask"' in page
    assert "lesson.html" not in pages["ann"]


def publish(folder: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let the project say that its site is published at an address."""
    (folder / "_config.yml").write_text(f"html:\n  baseurl: '{address}'\n", encoding="utf-8")
    monkeypatch.setattr(site_address, "PROJECT", folder)


def test_nbgrader_itself_makes_the_same_page(course: Course, pages: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_feedback", CHAPTER, "--force"],
        cwd=course.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for student, page in pages.items():
        assert (course.root / "feedback" / student / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8") == page


def problem_kinds(course: Course, student: str) -> list[str]:
    """Return what is noted about a student's work."""
    result = read_result(course, CHAPTER, student)
    assert result is not None
    return [problem.kind for problem in result.problems]


@pytest.mark.parametrize("number", [0, errno.ENOSPC, errno.EACCES])
def test_a_page_that_cannot_be_made_is_noted_and_stops_nobody(
    course: Course, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write = FilesWriter.write

    def full(self: Any, output: str, resources: Any, **options: Any) -> Any:
        if "ben" in str(self.build_directory):
            raise OSError(number, os.strerror(number))
        return write(self, output, resources, **options)

    path = course.root / "autograded" / "ben" / CHAPTER / f"{CHAPTER}.ipynb"
    whole = path.read_text(encoding="utf-8")
    (course.root / "feedback" / "ben" / CHAPTER / f"{CHAPTER}.html").unlink()
    with monkeypatch.context() as patch:
        if number:
            patch.setattr(FilesWriter, "write", full)
        else:
            path.chmod(0o644)
            path.write_text("{", encoding="utf-8")
        assert [page.parents[1].name for page in write_feedback(course, CHAPTER, autograder_config(course))] == [
            "ann",
            "cem",
        ]
    assert problem_kinds(course, "ben") == ["no feedback"]
    if not number:
        path.write_text(whole, encoding="utf-8")
    # Nobody's submission has changed, and nothing is forced.
    autograde(course, CHAPTER, device="cpu", make_executor=lambda settings: Here())
    assert [page.parents[1].name for page in write_pages(course, CHAPTER, [])[0]] == ["ann", "ben", "cem"]
    assert problem_kinds(course, "ben") == []


def made_again(course: Course, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write the pages, and return whose were made."""
    made = []
    convert = feedback_pages._write_page

    def watched(config: Any, chapter: str, student: str) -> Any:
        made.append(student)
        return convert(config, chapter, student)

    with monkeypatch.context() as patch:
        patch.setattr(feedback_pages, "_write_page", watched)
        assert len(write_feedback(course, CHAPTER, autograder_config(course))) == 3
    return made


def test_only_pages_of_which_something_has_changed_are_made_again(
    course: Course, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made_again(course, monkeypatch) == []
    with GradebookWriter(course, CHAPTER, autograder_config(course)).gradebook() as gradebook:
        gradebook.find_comment("causal_mask", CHAPTER, CHAPTER, "ann").manual_comment = "Another word."
        gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ben").needs_manual_grade = True
        gradebook.update_or_create_student("cem", first_name="Cem", last_name="O'Hara")
        gradebook.db.commit()
    assert made_again(course, monkeypatch) == ["ann", "ben", "cem"]
    assert made_again(course, monkeypatch) == []
    folder = course.root / "feedback" / "ann" / CHAPTER
    assert "Another word." in (folder / f"{CHAPTER}.html").read_text(encoding="utf-8")
    cems = course.root / "feedback" / "cem" / CHAPTER / f"{CHAPTER}.html"
    assert "Cem O&#39;Hara (cem)" in cems.read_text(encoding="utf-8")
    (folder / f"{CHAPTER}.html").write_text("half a page", encoding="utf-8")
    beside = course.root / "autograded" / "ben" / CHAPTER / "data.csv"
    beside.write_text("1", encoding="utf-8")
    assert made_again(course, monkeypatch) == ["ann", "ben"]
    (course.root / "feedback" / "ben" / CHAPTER / "data.csv").unlink()
    graded = course.root / "autograded" / "cem" / CHAPTER / f"{CHAPTER}.ipynb"
    graded.chmod(0o644)
    graded.write_text(graded.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert made_again(course, monkeypatch) == ["ben", "cem"]


@pytest.mark.parametrize(
    ("setting", "times"),
    [
        ("c.FeedbackExporter.file_extension = '.html'", 1),
        ("from nbgrader.preprocessors import GetGrades\nc.GenerateFeedback.preprocessors = [GetGrades]", 2),
        ("site", 1),
        ("program", 1),
    ],
    ids=["configuration", "always: of others' steps nobody knows", "site", "program"],
)
def test_with_another_configuration_all_pages_are_made_again(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, times: int
) -> None:
    if setting == "site":
        publish(tmp_path, monkeypatch, "https://course.example/")
    elif setting == "program":
        monkeypatch.setattr(page_stamps, "_hash_program", lambda: "another")
    else:
        with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
            config.write(f"\n{setting}\n")
    assert [len(made_again(course, monkeypatch)) for _ in range(2)] == [3, 3 if times == 2 else 0]


def test_markdown_keeps_its_form_and_loses_its_teeth() -> None:
    shown = markdown_html("# Big\n\n*so* <img src=x onerror=alert(1)>\n\n```python\nx = 1\n```\n\n$$\n\\sum_i x_i\n$$")
    assert "<h3>Big</h3>" in shown
    assert "<em>so</em>" in shown
    assert "<img" not in shown
    assert '<div class="formula"><math' in shown


@pytest.mark.parametrize(
    "long", ["*a* <b> " * 2501, "$x$ " * 201, r"\begin{a} " * 401], ids=["letters", "dollars", "environments"]
)
def test_a_text_that_no_answer_needs_is_shown_as_it_was_written(long: str) -> None:
    assert markdown_html(long) == f"<pre>{html.escape(long)}</pre>"
    assert markdown_html(long[: len(long) // 2]) != f"<pre>{html.escape(long[: len(long) // 2])}</pre>"


def test_code_in_an_explanation_is_shown_as_code() -> None:
    assert sentence_html("Use `a < b`, not <b>.") == "Use <code>a &lt; b</code>, not &lt;b&gt;."


PROMPT = """## 6. The cell of an LSTM

Print what comes out:

```python
print(state)  # not a heading
# state [[0.381, -0.482]]
```
"""


def test_a_comment_in_an_example_is_no_heading() -> None:
    answer = new_markdown_cell("An answer.", metadata={"nbgrader": mark("why", solution=True)})
    test = new_code_cell("check(f)", metadata={"nbgrader": mark("test_f")})
    notebook = new_notebook(
        cells=[new_markdown_cell("~~~\n# no title\n~~~\n# The title"), new_markdown_cell(PROMPT), answer, test]
    )
    about = {"assignment": "01", "student": "amara", "score": 0, "max_score": 2, "late_penalty": 0}
    page = build_feedback_page(notebook, about)
    assert page.title == "The title"
    assert [part.title for part in page.parts] == ["6. The cell of an LSTM"] * 2
    (question,) = page.questions
    assert "6. The cell" not in question.prompt
    assert "state [[0.381, -0.482]]" in re.sub("<[^>]+>", "", question.prompt)


def test_beside_an_exercise_without_a_verdict_stands_what_went_wrong_in_its_cell() -> None:
    stub = new_code_cell("def f(:", metadata={"nbgrader": {**mark("f", solution=True), "grade": False}})
    failed = new_output("error", ename="NameError", evalue="f?", traceback=[])
    test = new_code_cell("check(f)", outputs=[failed], metadata={"nbgrader": mark("test_f")})
    other = new_code_cell("check(g)", outputs=[failed], metadata={"nbgrader": mark("test_g")})
    notebook = new_notebook(cells=[stub, test, other])
    add_problems(notebook, [Problem("cell error", "The cell raised SyntaxError: invalid syntax", "f")])
    about = {"assignment": "01", "student": "amara", "score": 0, "max_score": 2, "late_penalty": 0}
    with_cause, without = build_feedback_page(notebook, about).exercises
    assert with_cause.error.endswith("f?. The cell raised SyntaxError: invalid syntax")
    assert without.error.endswith("f?")


def mark(name: str, *, solution: bool = False) -> dict[str, Any]:
    return {"grade_id": name, "grade": True, "solution": solution, "locked": not solution, "points": 1, "score": 0}


def test_points_are_written_with_two_decimals_at_most_and_a_row_with_what_it_earned() -> None:
    assert [points_text(value) for value in (115.25, 123.0, 0.384, 4.5, 0.0)] == ["115.25", "123", "0.38", "4.5", "0"]


def test_the_line_above_a_verdict_counts_the_ticks_below_it() -> None:
    wrong = [Finding(f"row {number}", "A row.", 2.0, False, "Other numbers.") for number in range(3)]
    unjudged = [Finding(f"side {number}", "A side row.", 1.0, True, NOT_JUDGED, earned=0.0) for number in range(3)]
    part = Part("test_f", "exercise", "F", 0.0, 9.0, False, Verdict("f", "03", (*wrong, *unjudged)), name="f")
    page = Page("03", "Attention", "ada", "", 0.0, 9.0, 0.0, (part,), ())
    text = _load_template().render(page=page, site="")
    shown = re.search(r"<summary>(\d+) of (\d+) rows are as they should be, (\d+) not judged</summary>", text)
    assert shown is not None
    ticks, rows, dashes = text.count(">✓<"), len(re.findall(r'<span class="mark"', text)), text.count(">–<")
    assert (int(shown[1]), int(shown[2]), int(shown[3])) == (ticks, rows, dashes) == (0, 6, 3)


def test_what_is_worth_a_look_is_told_to_lecturers_only() -> None:
    told = [Problem("worth a look", "it compiles 0.0727"), Problem("cell error", "The cell raised ValueError.")]
    notebook = new_notebook()
    add_problems(notebook, told)
    about = {"assignment": "01", "student": "s", "score": 0, "max_score": 1, "late_penalty": 0}
    assert build_feedback_page(notebook, about).problems == (told[1],)
