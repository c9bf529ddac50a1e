"""nbgrader's formgrader in a lecturer's browser, on a course that tfcourse released and graded."""

from __future__ import annotations

import csv
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook

pytestmark = pytest.mark.browser

CHAPTER = "03_scaled_dot_product"
QUESTIONS = ("question_query_key", "question_minus_infinity")
PATIENCE = 60


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory, command: Callable[..., str]) -> Path:
    """A course in which two students have handed in a chapter and nothing is graded. Do not write into it.

    The first one's editor has stripped the notebook of its metadata: by itself nbgrader finds nothing to grade in it.
    """
    root = tmp_path_factory.mktemp("handed-in") / "course"
    here = Path.cwd()
    command(here, "tfcourse", "assign", CHAPTER, "--course", str(root))
    command(here, "tfcourse", "sample-class", CHAPTER, "--students", "2", "--seed", "4", "--course", str(root))
    stripped = min(root.glob(f"submitted/*/{CHAPTER}/{CHAPTER}.ipynb"))
    notebook = nbformat.read(stripped, as_version=4)
    for cell in notebook.cells:
        cell.metadata.clear()
    nbformat.write(notebook, stripped)
    return root


@pytest.fixture(scope="module")
def graded(handed_in: Path, command: Callable[..., str]) -> Path:
    """The same course, graded by tfcourse; both students' answers wait for a person. Do not write into it."""
    root = Path(shutil.copytree(handed_in, handed_in.parent / "graded"))
    command(Path.cwd(), "tfcourse", "autograde", CHAPTER, "--jobs", "1", "--device", "cpu", "--course", str(root))
    waiting = {name for grades in grades_of(root).values() for name, grade in grades.items() if grade["waits"]}
    assert waiting == set(QUESTIONS), "this class leaves nothing to do; draw it from another seed"
    return root


@contextmanager
def guarded(chromium: Any) -> Iterator[Any]:
    """Yield a page that reaches this machine and files and nothing else; at the end it must have asked for nothing outside."""
    outside = set[str]()
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.written = []

    def gate(route: Any) -> None:
        url, method = route.request.url, route.request.method
        page.written += [f"{method} {url}"] * (method not in ("GET", "HEAD"))
        if url.startswith(("http://127.0.0.1:", "file:", "data:")):
            route.continue_()
        else:
            outside.add(url)
            route.abort()

    context.route("**/*", gate)
    context.set_default_timeout(PATIENCE * 1000)
    yield page
    context.close()
    assert not outside


@pytest.fixture
def page(chromium: "Browser") -> Iterator["Page"]:  # noqa: F821, UP037 - playwright is imported where it is needed
    """A page without an error, for a course of honest students."""
    complaints: list[str] = []
    with guarded(chromium) as page:
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    assert not complaints


@contextmanager
def formgrader(course: Path, surroundings: dict[str, str]) -> Iterator[str]:
    """Run a Jupyter server with the formgrader in a course folder, on a free port of this machine only; yield its address."""
    settings = {"ServerApp": {"jpserver_extensions": {"nbgrader.server_extensions.formgrader": True}}}
    config = Path(surroundings["JUPYTER_CONFIG_DIR"]) / "jupyter_server_config.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", "--IdentityProvider.token="]
    log = course / "server.log"
    with log.open("wb") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *options, f"--ServerApp.root_dir={course}"],
            cwd=course,
            env=surroundings,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    about = Path(surroundings["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{server.pid}.json"
    try:
        give_up = monotonic() + PATIENCE
        while not (address := address_in(about)):
            assert server.poll() is None, f"the server did not start:\n{log.read_text(encoding='utf-8')}"
            assert monotonic() < give_up, f"the server did not start:\n{log.read_text(encoding='utf-8')}"
            sleep(0.05)
        yield address
    finally:
        server.terminate()
        try:
            server.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def address_in(about: Path) -> str:
    """Return the address in the file that a Jupyter server leaves about itself, or nothing while nobody answers there.

    The server writes the file before it listens.
    """
    try:
        port = json.loads(about.read_text(encoding="utf-8"))["port"]
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except (FileNotFoundError, json.JSONDecodeError, ConnectionRefusedError):
        return ""
    return f"http://127.0.0.1:{port}/formgrader"


def grades_of(course: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what the gradebook says, by student and cell."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for submission in gradebook.notebook_submissions(CHAPTER, CHAPTER):
            comments = {comment.name: comment.comment for comment in submission.comments}
            found[submission.student.id] = {
                grade.name: {
                    "auto": grade.auto_score,
                    "manual": grade.manual_score,
                    "waits": grade.needs_manual_grade,
                    "comment": comments.get(grade.name),
                }
                for grade in submission.grades
            }
    return found


def student_at(course: Path, url: str) -> str:
    """Return whose submission an address of the formgrader shows."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        identity = url.partition("/submissions/")[2].partition("/")[0]
        return str(gradebook.find_submission_notebook_by_id(identity).student.id)


def max_points(course: Path, question: str) -> float:
    """Return what a question is worth."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return float(gradebook.find_grade_cell(question, CHAPTER, CHAPTER).max_score)


def loaded(page: Any) -> None:
    """Wait until the formgrader has put a submission's points and comments into its fields: what is typed before is lost."""
    for question in QUESTIONS:
        page.locator(f"#{question}.needs_manual_grade").wait_for()
        page.locator(f"#{question}-comment[placeholder]").wait_for()


def saved(page: Any, kind: str) -> Any:
    """Wait for the formgrader to save a grade or a comment."""
    return page.expect_response(
        lambda answer: f"/api/{kind}/" in answer.url and answer.request.method == "PUT" and answer.ok
    )


def give(page: Any, question: str, points: float, comment: str) -> None:
    """Type points and a comment for a question."""
    for field, text, kind in ((f"#{question}", str(points), "grade"), (f"#{question}-comment", comment, "comment")):
        page.locator(field).fill(text)
        with saved(page, kind):
            page.locator(field).blur()


def give_everything(page: Any, question: str) -> None:
    """Press a question's button for full credit."""
    panel = page.locator(".nbgrader_cell", has=page.locator(f"#{question}"))
    with saved(page, "grade"):
        panel.get_by_role("button", name="Full credit").click()


def written_scores(page: Any) -> dict[str, str]:
    """Return what the formgrader's list of a notebook's submissions says about their questions."""
    table = page.locator("#main-table")
    table.locator("td.written-score").first.wait_for()
    rows = table.locator("tr").all()
    return {row.get_by_role("link").first.inner_text(): row.locator("td.written-score").inner_text() for row in rows}


@dataclass(frozen=True)
class Evening:
    """A course after a lecturer has graded the questions of the first student that the formgrader shows, and looked at the other.

    Attributes:
        course: the course.
        student: whose questions were graded.
        other: the other student.
        shown: what the formgrader's list said in the end, by submission.
    """

    course: Path
    student: str
    other: str
    shown: dict[str, str]


POINTS, COMMENT = 3.5, "Clear, but what does the query ask? — 3½ points"


@pytest.fixture
def evening(page: Any, graded: Path, tmp_path: Path, surroundings: dict[str, str]) -> Evening:
    """From the gradebook's list to the assignment, its notebook, a submission, points and a comment, and on to the next."""
    course = Path(shutil.copytree(graded, tmp_path / "course"))
    with formgrader(course, surroundings) as address:
        page.goto(f"{address}/gradebook")
        for place in (f"gradebook/{CHAPTER}", f"gradebook/{CHAPTER}/{CHAPTER}"):
            page.locator("#main-table").get_by_role("link", name=CHAPTER).click()
            page.wait_for_url(f"{address}/{place}")
        page.locator("#main-table").get_by_role("link", name="Submission #1").click()
        page.wait_for_url(f"{address}/submissions/**")
        loaded(page)
        student = student_at(course, page.url)
        give(page, QUESTIONS[0], POINTS, COMMENT)
        give_everything(page, QUESTIONS[1])
        page.get_by_role("link", name="Next").click()
        page.wait_for_url(lambda url: "/submissions/" in url and student_at(course, url) != student)
        loaded(page)
        other = student_at(course, page.url)
        assert page.locator(f"#{QUESTIONS[0]}").input_value() == "", (
            "one student's points stand beside another's answer"
        )
        page.get_by_role("link", name="Next").click()
        return Evening(course, student, other, written_scores(page))


def test_points_and_a_comment_given_in_the_formgrader_reach_gradebook_export_report_and_feedback(
    evening: Evening, graded: Path, tmp_path: Path, command: Callable[..., str]
) -> None:
    full, most = max_points(graded, QUESTIONS[1]), sum(max_points(graded, question) for question in QUESTIONS)
    assert evening.shown == {"Submission #1": f"{POINTS + full:g} / {most:g}", "Submission #2": f"0 / {most:g}"}

    before, after = grades_of(graded), grades_of(evening.course)
    assert after[evening.other] == before[evening.other]
    given = {name: grade for name, grade in after[evening.student].items() if grade != before[evening.student][name]}
    assert given == {
        QUESTIONS[0]: {"auto": None, "manual": POINTS, "waits": False, "comment": COMMENT},
        QUESTIONS[1]: {"auto": None, "manual": full, "waits": False, "comment": None},
    }

    rows, old_rows = (exported(course, tmp_path, command) for course in (evening.course, graded))
    assert rows[evening.other] == old_rows[evening.other]
    row, old = rows[evening.student], old_rows[evening.student]
    points = float(old["raw_score"]) + POINTS + full
    score = points - float(old["late_submission_penalty"])
    assert (float(row["raw_score"]), float(row["score"])) == (points, score)
    assert (old["needs_manual_grade"], row["needs_manual_grade"]) == ("True", "False")

    (report,) = json.loads(command(evening.course, "tfcourse", "report", "--json"))["chapters"]
    assert (report["pending"], report["answers_pending"]) == ([evening.other], len(QUESTIONS))
    shares = [float(one["score"]) / float(one["max_score"]) for one in rows.values()]
    assert report["average"] == pytest.approx(sum(shares) / len(shares))
    page_of_report = (evening.course / "report.html").read_text(encoding="utf-8")
    assert f"{score:g} / {float(row['max_score']):g}" in " ".join(re.sub("<[^>]*>", " ", page_of_report).split())

    command(evening.course, "nbgrader", "generate_feedback", CHAPTER, "--force")
    feedback = evening.course / "feedback" / evening.student / CHAPTER / f"{CHAPTER}.html"
    assert COMMENT in feedback.read_text(encoding="utf-8")


def exported(course: Path, folder: Path, command: Callable[..., str]) -> dict[str, dict[str, str]]:
    """Return the rows of the export, by student."""
    command(course, "tfcourse", "export", "--format", "csv", "--to", str(folder / "export"))
    with (folder / "export" / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def test_the_formgraders_own_button_gives_the_scores_that_tfcourse_gives(
    page: Any, handed_in: Path, graded: Path, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    expected = grades_of(graded)
    student = min(expected)  # whose metadata are gone
    course = Path(shutil.copytree(handed_in, tmp_path / "course"))
    with formgrader(course, surroundings) as address:
        page.goto(f"{address}/manage_submissions/{CHAPTER}")
        row = page.locator("#main-table tr", has_text=student)
        assert row.locator(".status").inner_text() == "needs autograding"
        row.locator(".autograde").get_by_role("link").click()
        dialogue = page.get_by_role("dialog")
        dialogue.wait_for()
        assert "Success" in dialogue.inner_text()
        row.get_by_text("needs manual grading").wait_for()
        shown = row.locator(".score").inner_text()
    assert grades_of(course) == {student: expected[student]}
    assert float(shown.split("/")[0]) == sum(grade["auto"] or 0 for grade in expected[student].values()) > 0
