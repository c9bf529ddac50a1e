"""A feedback page tells the student what was found, and nothing that is not theirs to know."""

from __future__ import annotations

import errno
import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert.writers import FilesWriter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.checking.verdict import NOT_JUDGED, VERDICT_MIME, Finding, Verdict
from autograder.checks import check
from autograder.commands.grade_chapter import write_pages
from autograder.course import site_address
from autograder.course.folder import Course
from autograder.engine.interface import Execution, Submission
from autograder.errors import CourseError
from autograder.feedback import page_stamps
from autograder.feedback import pages as feedback_pages
from autograder.feedback.formula import formula
from autograder.feedback.markup import in_code, markdown, points_text, python
from autograder.feedback.page import Page, Part, feedback_page
from autograder.feedback.page_html import _template
from autograder.feedback.pages import write_feedback
from autograder.grading.autograde import autograde
from autograder.grading.plugin import configured
from autograder.record.gradebook_writer import GradebookWriter
from autograder.record.results import read_result
from autograder.submission.problem import Problem, add_problems

from .conftest import CHAPTER, put

Fill = Callable[..., Any]
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
    with GradebookWriter(course, CHAPTER, configured(course)).gradebook() as gradebook:
        gradebook.find_comment("causal_mask", CHAPTER, CHAPTER, "ann").manual_comment = "Draw the *triangle* first."
        gradebook.db.commit()
    paths = write_feedback(course, CHAPTER, configured(course))
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


def test_the_head_says_how_much_and_what_to_read_again(pages: dict[str, str]) -> None:
    text = text_of(pages["ann"])
    # Of 18 points, the answer that nobody has read is worth 4.
    assert "4 of 14 points so far" in text
    assert "1 answer still to be read by a person, worth up to 4 of 18 points in all" in text
    assert "Causal mask 0 of 4 looks like: the future in place of the past" in text
    assert "Merge query key 4 of 4 everything as it should be" in text
    assert "What to read again" in text
    assert 'href="#test_causal_mask"' in pages["ann"]


def test_a_verdict_is_shown_with_its_diagnosis_and_the_students_own_code(pages: dict[str, str]) -> None:
    text = text_of(pages["ann"])
    assert "True on and below the diagonal, False above it." in text
    assert "The wrong triangle is True" in text
    assert "3 of 6 aspects" not in text
    assert "&lt;b&gt;" in pages["ann"]
    assert "From your grader Draw the triangle first." in text


def test_tables_stack_on_a_phone(chromium: Any, pages: dict[str, str]) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 800}, bypass_csp=True)
    page.set_content(pages["ann"])
    for table in (".overview", ".tfc-verdict[open]"):
        row = page.locator(f"{table} tbody tr:has(td:last-child:not(:empty))").first
        asked, message = row.locator("th").bounding_box(), row.locator("td").last.bounding_box()
        assert message["y"] >= asked["y"] + asked["height"], table
        assert message["width"] > 250, table
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every(box => box.scrollWidth <= box.clientWidth)")
    page.close()


def test_an_error_is_shown_in_one_line(pages: dict[str, str]) -> None:
    assert "It raised NameError: name &#39;x&#39; is not defined" in pages["ann"]
    assert "Traceback" not in pages["ann"]


def test_hidden_tests_and_what_was_printed_under_them_are_not_shown(
    pages: dict[str, str], right: dict[str, str]
) -> None:
    for page in pages.values():
        for secret in ("hidden=True", "HIDDEN TESTS", "0.123hidden", "forged", "Because of the variance"):
            assert secret not in page
    for line in right["causal_mask"].splitlines()[1:] + right["soft_lookup"].splitlines()[1:]:
        assert line.strip() not in pages["ben"]


def test_what_failing_code_says_of_its_inputs_is_not_shown(pages: dict[str, str]) -> None:
    assert "it raised ValueError: … is odd, shape (" in text_of(pages["ben"])


def test_a_page_needs_nothing_and_runs_nothing(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert "<script" not in page
        assert "javascript:" not in page
        assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", page)
        assert "@import" not in page
        assert "url(" not in page
        assert "default-src 'none'" in page


def test_unanswered_and_untouched_parts_are_called_so(pages: dict[str, str]) -> None:
    text = text_of(pages["ben"])
    assert "0 of 18 points" in text
    assert "points so far" not in text
    assert "Causal mask 0 of 4 not written yet" in text
    assert "Why is there a square root? 0 of 4 no answer" in text


def test_a_file_that_cannot_be_graded_is_told_so_and_what_to_do(pages: dict[str, str]) -> None:
    text = text_of(pages["cem"])
    assert "could not be graded. The file is not a notebook but a PDF." in text
    assert f"tfcourse validate {CHAPTER}.ipynb" in text
    assert "NotImplementedError" not in text


def test_points_from_a_person_arrive_on_the_next_page(course: Course, pages: dict[str, str]) -> None:
    with GradebookWriter(course, CHAPTER, configured(course)).gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        grade.manual_score, grade.needs_manual_grade = 2.5, False
        gradebook.db.commit()
    (path,) = write_feedback(course, CHAPTER, configured(course), students=["ann"])
    text = text_of(path.read_text(encoding="utf-8"))
    assert "6.5 of 18 points" in text
    assert "points so far" not in text


def test_sections_become_links_where_the_site_is_known(
    course: Course, pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, monkeypatch, "https://course.example/site")
    (path,) = write_feedback(course, CHAPTER, configured(course), students=["ann"])
    page = path.read_text(encoding="utf-8")
    assert f'href="https://course.example/site/chapters/{CHAPTER}/lesson.html#causal-mask"' in page
    assert "lesson.html" not in pages["ann"]


def test_a_hostile_address_gets_into_no_page(
    course: Course, pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, monkeypatch, "javascript:alert(1)")
    with pytest.raises(CourseError, match="not the address of a site"):
        write_feedback(course, CHAPTER, configured(course), students=["ann"])
    page = (course.root / "feedback" / "ann" / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")
    assert page == pages["ann"]


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


def test_a_page_that_cannot_be_made_is_noted_and_stops_nobody(course: Course, pages: dict[str, str]) -> None:
    path = course.root / "autograded" / "ben" / CHAPTER / f"{CHAPTER}.ipynb"
    whole = path.read_text(encoding="utf-8")
    path.chmod(0o644)
    path.write_text("{", encoding="utf-8")
    assert [page.parents[1].name for page in write_feedback(course, CHAPTER, configured(course))] == ["ann", "cem"]
    result = read_result(course, CHAPTER, "ben")
    assert result is not None
    assert [problem.kind for problem in result.problems] == ["no feedback"]
    path.write_text(whole, encoding="utf-8")
    write_feedback(course, CHAPTER, configured(course))
    result = read_result(course, CHAPTER, "ben")
    assert result is not None
    assert result.problems == ()


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some space"),
        (errno.EACCES, "Check who may write there"),
        (errno.EROFS, "Check who may write there"),
    ],
)
def test_a_page_for_which_the_disk_has_no_place_says_what_to_do_about_the_disk(
    course: Course, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.chdir(course.root)
    (course.root / "feedback" / "ann" / CHAPTER / f"{CHAPTER}.html").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(FilesWriter, "write", full)
        assert write_feedback(course, CHAPTER, configured(course), students=["ann"]) == []
    result = read_result(course, CHAPTER, "ann")
    assert result is not None
    (problem,) = (problem for problem in result.problems if problem.kind == "no feedback")
    assert os.strerror(number) in problem.what
    assert problem.do == f"{remedy}, and grade the chapter again: that writes the pages."
    # Nobody's submission has changed, and nothing is forced.
    autograde(course, CHAPTER, device="cpu", make_executor=lambda settings: Here())
    told = write_pages(course, CHAPTER, [])
    assert [page.parents[1].name for page in told[0]] == ["ann", "ben", "cem"]
    result = read_result(course, CHAPTER, "ann")
    assert result is not None
    assert "no feedback" not in [problem.kind for problem in result.problems]


def made_again(course: Course, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write the pages, and return whose were made."""
    made = []
    convert = feedback_pages._convert

    def watched(config: Any, chapter: str, student: str) -> Any:
        made.append(student)
        return convert(config, chapter, student)

    with monkeypatch.context() as patch:
        patch.setattr(feedback_pages, "_convert", watched)
        assert len(write_feedback(course, CHAPTER, configured(course))) == 3
    return made


def test_only_pages_of_which_something_has_changed_are_made_again(
    course: Course, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made_again(course, monkeypatch) == []
    with GradebookWriter(course, CHAPTER, configured(course)).gradebook() as gradebook:
        gradebook.find_comment("causal_mask", CHAPTER, CHAPTER, "ann").manual_comment = "Another word."
        gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ben").needs_manual_grade = True
        gradebook.update_or_create_student("cem", first_name="Cem")
        gradebook.db.commit()
    assert made_again(course, monkeypatch) == ["ann", "ben", "cem"]
    assert made_again(course, monkeypatch) == []
    folder = course.root / "feedback" / "ann" / CHAPTER
    assert "Another word." in (folder / f"{CHAPTER}.html").read_text(encoding="utf-8")
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
    ],
    ids=["once", "always: of others' steps nobody knows"],
)
def test_with_another_configuration_all_pages_are_made_again(
    course: Course, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch, setting: str, times: int
) -> None:
    with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(f"\n{setting}\n")
    counts = [len(made_again(course, monkeypatch)) for _ in range(2)]
    assert counts == [3, 3 if times == 2 else 0]


def test_with_another_address_of_the_site_all_pages_are_made_again(
    course: Course, pages: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, monkeypatch, "https://course.example/")
    assert [len(made_again(course, monkeypatch)) for _ in range(2)] == [3, 0]


def test_with_another_version_of_this_program_all_pages_are_made_again(
    course: Course, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_stamps, "_code", lambda: "another")
    assert len(made_again(course, monkeypatch)) == 3


def test_where_grading_again_helps_the_command_can_be_typed(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    path = course.root / "autograded" / "ben" / CHAPTER / f"{CHAPTER}.ipynb"
    path.chmod(0o644)
    path.write_text("{", encoding="utf-8")
    monkeypatch.chdir(course.root)
    write_feedback(course, CHAPTER, configured(course), students=["ben"])
    result = read_result(course, CHAPTER, "ben")
    assert result is not None
    assert result.problems[-1].do == "Grade the chapter again with --force."


def test_progress_counts_every_page_and_no_more(course: Course, capfd: pytest.CaptureFixture[str]) -> None:
    # A regrade has one result, or none, and all pages are written.
    ann = read_result(course, CHAPTER, "ann")
    assert ann is not None
    for results in ([ann], []):
        write_pages(course, CHAPTER, results)
        assert capfd.readouterr().err == f"feedback {CHAPTER}: cem (3/3)\n"


def test_a_chapter_that_is_not_released_has_no_feedback(course: Course) -> None:
    with pytest.raises(CourseError, match="not released"):
        write_feedback(course, "99_nothing", configured(course))
    assert write_feedback(course, "04_multi_head", configured(course)) == []


def test_formulas_are_mathml() -> None:
    drawn = formula(r"\frac{q}{\sqrt{D_h}} \le 1")
    assert drawn.startswith('<math display="inline"><mrow><mfrac><mrow><mi>q</mi></mrow>')
    assert drawn.endswith("<mo>≤</mo><mn>1</mn></mrow></math>")
    assert formula("a", display=True).startswith('<div class="formula"><math display="block">')


def test_a_formula_that_cannot_be_drawn_is_shown_as_it_was_written() -> None:
    assert formula(r"\begin{tikz}<b>") == r'<code class="tex">\begin{tikz}&lt;b&gt;</code>'


def test_markdown_keeps_its_form_and_loses_its_teeth() -> None:
    shown = markdown("# Big\n\n*so* <img src=x onerror=alert(1)>\n\n```python\nx = 1\n```\n\n$$\n\\sum_i x_i\n$$")
    assert "<h3>Big</h3>" in shown
    assert "<em>so</em>" in shown
    assert "<img" not in shown
    assert '<div class="formula"><math' in shown


@pytest.mark.parametrize(
    "long", ["*a* <b> " * 2501, "$x$ " * 201, r"\begin{a} " * 401], ids=["letters", "dollars", "environments"]
)
def test_a_text_that_no_answer_needs_is_shown_as_it_was_written(long: str) -> None:
    assert markdown(long) == f"<pre>{html.escape(long)}</pre>"
    assert markdown(long[: len(long) // 2]) != f"<pre>{html.escape(long[: len(long) // 2])}</pre>"


def test_code_is_marked_and_escaped() -> None:
    shown = python("def f():\n    return '<script>'")
    assert '<span class="k">def</span>' in shown
    assert "<script>" not in shown


def test_what_could_not_be_graded_is_not_said_to_have_earned_nothing(pages: dict[str, str]) -> None:
    text = text_of(pages["cem"])
    assert "not graded This submission could not be graded." in text
    assert "of 18 points" not in text
    title = re.search(r"<h1>(.*?)</h1>", pages["ann"])
    assert title is not None
    assert title[0] in pages["cem"], "the title is the chapter's, although the file does not tell it"
    assert title[1] != CHAPTER


def test_a_student_whose_name_is_known_is_greeted_by_it(course: Course) -> None:
    with GradebookWriter(course, CHAPTER, configured(course)).gradebook() as gradebook:
        student = gradebook.find_student("ann")
        student.first_name, student.last_name = "Ann", "O'Hara"
        gradebook.db.commit()
    page, *_ = write_feedback(course, CHAPTER, configured(course), students=["ann"])
    assert "Feedback for Ann O&#39;Hara (ann)" in text_of(page.read_text(encoding="utf-8"))


def test_code_in_an_explanation_is_shown_as_code(pages: dict[str, str]) -> None:
    assert in_code("Use `a < b`, not <b>.") == "Use <code>a &lt; b</code>, not &lt;b&gt;."
    explanations = re.findall(r"This looks like:.*?</strong>(.*?)<br>", "".join(pages.values()))
    assert explanations
    assert "`" not in "".join(explanations)


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
    page = feedback_page(notebook, about)
    assert page.title == "The title"
    assert [part.title for part in page.parts] == ["6. The cell of an LSTM"] * 2
    (question,) = page.questions
    assert "6. The cell" not in question.prompt
    assert "state [[0.381, -0.482]]" in re.sub("<[^>]+>", "", question.prompt)


def test_beside_an_exercise_without_a_verdict_stands_what_went_wrong_in_its_cell() -> None:
    stub = new_code_cell("def f(:", metadata={"nbgrader": {**mark("f", solution=True), "grade": False}})
    failed = new_output("error", ename="NameError", evalue="name 'f' is not defined", traceback=[])
    test = new_code_cell("check(f)", outputs=[failed], metadata={"nbgrader": mark("test_f")})
    other = new_code_cell("check(g)", outputs=[failed], metadata={"nbgrader": mark("test_g")})
    notebook = new_notebook(cells=[stub, test, other])
    add_problems(notebook, [Problem("cell error", "The cell raised SyntaxError: invalid syntax", "f")])
    about = {"assignment": "01", "student": "amara", "score": 0, "max_score": 2, "late_penalty": 0}
    with_cause, without = feedback_page(notebook, about).exercises
    assert with_cause.error.endswith("is not defined. The cell raised SyntaxError: invalid syntax")
    assert without.error.endswith("is not defined")


def mark(name: str, *, solution: bool = False) -> dict[str, Any]:
    return {"grade_id": name, "grade": True, "solution": solution, "locked": not solution, "points": 1, "score": 0}


def test_points_are_written_with_two_decimals_at_most_and_a_row_with_what_it_earned() -> None:
    assert [points_text(value) for value in (115.25, 123.0, 0.384, 4.5, 0.0)] == ["115.25", "123", "0.38", "4.5", "0"]


def test_a_side_row_shows_what_it_earned_and_no_row_shows_an_example(pages: dict[str, str]) -> None:
    text = text_of(pages["ann"])
    assert "0 of 0.5" in text, "no number is right, so what is beside the numbers pays nothing"
    assert "An example" not in pages["ann"]
    assert "expected [[" not in pages["ann"]


def test_the_line_above_a_verdict_counts_the_ticks_below_it() -> None:
    wrong = [Finding(f"row {number}", "A row.", 2.0, False, "Other numbers.") for number in range(3)]
    unjudged = [Finding(f"side {number}", "A side row.", 1.0, True, NOT_JUDGED, earned=0.0) for number in range(3)]
    part = Part("test_f", "exercise", "F", 0.0, 9.0, False, Verdict("f", "03", (*wrong, *unjudged)), name="f")
    page = Page("03", "Attention", "ada", "", 0.0, 9.0, 0.0, (part,), ())
    text = _template().render(page=page, site="")
    shown = re.search(r"<summary>(\d+) of (\d+) rows are as they should be, (\d+) not judged</summary>", text)
    assert shown is not None
    ticks, rows, dashes = text.count(">✓<"), len(re.findall(r'<span class="mark"', text)), text.count(">–<")
    assert (int(shown[1]), int(shown[2]), int(shown[3])) == (ticks, rows, dashes) == (0, 6, 3)


def test_points_so_far_leave_out_what_nobody_has_read() -> None:
    done = Part("test_f", "exercise", "F", 5.5, 8.0, False, None)
    waiting = Part("q", "question", "Q", 1.0, 3.0, True, None)  # marked before, and to be looked at again
    page = Page("03", "Attention", "ada", "", 6.5, 11.0, 0.0, (done, waiting), ())
    assert (page.settled_score, page.settled_max) == (5.5, 8.0)


def test_what_is_worth_a_look_is_told_to_lecturers_only() -> None:
    told = [Problem("worth a look", "it compiles 0.0727"), Problem("cell error", "The cell raised ValueError.")]
    notebook = new_notebook()
    add_problems(notebook, told)
    about = {"assignment": "01", "student": "s", "score": 0, "max_score": 1, "late_penalty": 0}
    assert feedback_page(notebook, about).problems == (told[1],)
