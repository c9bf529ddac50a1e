"""A lecturer opens thirty hostile answers in the formgrader, in feedback and in the report, in a real browser: nothing runs or changes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.nbgrader import hostile
from tests.nbgrader import test_formgrader as shown

CHAPTER, QUESTIONS = shown.CHAPTER, shown.QUESTIONS
pytestmark = pytest.mark.browser
NAME = '"><script>window.hostile=1</script>'
COMMENT = f"<script>{hostile.DO}</script> ```mermaid\n</pre><script>{hostile.DO}</script>\n```"


def put_in(notebook: Any) -> None:
    """Make a submission hostile wherever a student can write."""
    answer = "\n\n".join(hostile.ANSWERS)
    picture = "\n\n![pasted](attachment:mine.png) ![lost](attachment:lost.png)"
    attachments = {
        "mine.png": {"image/png": hostile.PIXEL},
        "evil.svg": {"image/svg+xml": "<svg onload=alert(1)>"},
        f'x" onerror="{hostile.DO}': {"image/png": f'"><script>{hostile.DO}</script>'},
    }
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name in QUESTIONS:
            cell.source, cell.attachments = answer + picture, attachments
        elif cell.cell_type == "markdown" and cell.source.startswith("#") and not name.startswith("prompt"):
            cell.source = f"## An edited heading\n\n{answer}"
        elif name == "soft_lookup":
            cell.source += hostile.OUTPUTS
        cell.metadata["title"] = f"<script>{hostile.DO}</script>"
    notebook.cells.append(nbformat.v4.new_raw_cell(answer, metadata={"raw_mimetype": "text/html"}))
    notebook.cells.append(nbformat.v4.new_markdown_cell(f"# One more\n\n{answer}"))
    notebook.metadata["title"] = f"<script>{hostile.DO}</script>"
    notebook.metadata["widgets"] = {
        "application/vnd.jupyter.widget-state+json": {"state": f"</script><script>{hostile.DO}"}
    }


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, command: Callable[..., str]) -> Path:
    """A graded course whose only student is hostile, by name, answer and output; everything waits for a person."""
    root, here = tmp_path_factory.mktemp("hostile") / "course", Path.cwd()
    command(here, "tfcourse", "assign", CHAPTER, "--course", str(root))
    (path,) = root.glob(f"release/{CHAPTER}/{CHAPTER}.ipynb")
    notebook = nbformat.read(path, as_version=4)
    put_in(notebook)
    handed_in = root / "submitted" / "ada" / CHAPTER / path.name
    handed_in.parent.mkdir(parents=True)
    nbformat.write(notebook, handed_in)
    (root / "students.json").write_text(json.dumps({"ada": {"name": NAME}}), encoding="utf-8")
    command(here, "tfcourse", "autograde", CHAPTER, "--jobs", "1", "--device", "cpu", "--course", str(root))
    return root


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page; at the end it must have asked for nothing outside of this machine; what it wrote is in ``page.written``."""
    dialogs: list[str] = []
    with shown.guarded(chromium) as page:
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        yield page
    assert not dialogs


def nothing_ran(page: Any) -> None:
    """Assert that no hostile code has run, also not when everything that can be hovered or opened is, and that nobody was led away."""
    address = page.url
    page.mouse.move(600, 450)
    for detail in page.locator("details").all()[:20]:
        detail.evaluate("element => { element.open = true }")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hostile") is None
    assert page.url == address
    inside = page.evaluate(
        """() => [...document.querySelectorAll(
            'main script, #notebook script, iframe, object, embed, base, form[action], meta[http-equiv=refresh], a[href^="javascript:"]'
        )].map(element => element.outerHTML.slice(0, 200))"""
    )
    assert inside == []
    handlers = page.evaluate(
        """() => [...document.querySelectorAll('main *, #notebook *')].flatMap(element =>
            [...element.attributes].filter(one => one.name.startsWith('on')).map(one => one.name))"""
    )
    assert handlers == []


def test_in_the_formgrader_nothing_runs_nothing_leaves_and_marking_works(
    page: Any, course: Path, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    copy = Path(shutil.copytree(course, tmp_path / "course"))
    before = shown.grades_of(copy)
    with shown.formgrader(copy, surroundings) as address:
        page.goto(f"{address}/gradebook/{CHAPTER}/{CHAPTER}")
        nothing_ran(page)
        page.locator("#main-table").get_by_role("link", name="Submission #1").click()
        page.wait_for_url(f"{address}/submissions/**")
        shown.loaded(page)
        nothing_ran(page)
        assert page.written == []
        assert shown.grades_of(copy) == before
        # The page is all there: the last answer's words, the pasted picture, and of the lost one that it is missing.
        assert "onmouseover" in page.locator("#notebook").first.inner_text()
        assert page.locator("main #notebook img[alt=pasted]").count() == len(QUESTIONS)
        assert "is missing" in page.locator("#notebook").first.inner_text()
        shown.give_everything(page, QUESTIONS[0])
        assert all("/api/grade/" in request for request in page.written)
    after = shown.grades_of(copy)
    assert after["ada"][QUESTIONS[0]]["manual"] == shown.max_points(copy, QUESTIONS[0])
    assert after["ada"][QUESTIONS[1]] == before["ada"][QUESTIONS[1]]


def test_on_the_feedback_page_and_in_the_report_nothing_runs_and_nothing_leaves(
    page: Any, course: Path, tmp_path: Path, command: Callable[..., str]
) -> None:
    copy = Path(shutil.copytree(course, tmp_path / "course"))
    with shown.Gradebook(f"sqlite:///{copy / 'gradebook.db'}") as gradebook:
        comment = gradebook.find_comment(QUESTIONS[0], CHAPTER, CHAPTER, "ada")
        comment.manual_comment = COMMENT
        gradebook.db.commit()
    command(copy, "nbgrader", "generate_feedback", CHAPTER, "--force")
    command(Path.cwd(), "tfcourse", "report", "--course", str(copy))
    (feedback,) = copy.glob(f"feedback/ada/{CHAPTER}/{CHAPTER}.html")
    for path in (feedback, copy / "report.html"):
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', path.read_text(encoding="utf-8"))
        assert policy is not None
        assert {"default-src 'none'", "script-src 'none'", "base-uri 'none'", "form-action 'none'"} <= set(
            policy[1].split("; ")
        )
        page.goto(path.as_uri())
        nothing_ran(page)
        assert "<script>" in page.locator("body").inner_text()
    assert feedback.read_text(encoding="utf-8").count("data:image/png;base64,") == len(QUESTIONS)
