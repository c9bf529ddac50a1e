"""The search for solutions that got out: finds them in every kind of file, and finds nothing where there is nothing."""

from __future__ import annotations

import html
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from nbconvert import HTMLExporter
from safetensors.torch import save

from autograder.course.artifact_cache import FOLDER
from autograder.course.authoring.solution_notebook import CANARY
from autograder.course.folder import Course
from autograder.course.release.assign import assign
from autograder.course.release.leaks import Material, find_leaks, refuse_leaks, site_materials
from autograder.course.release.secret_texts import Secret, Secrets, code_parts, project_secrets, written_texts
from autograder.course.release.text_extraction import extract_contents, text_forms
from autograder.errors import CourseError

FIRST, SECOND = "90_first", "91_second"
ROOT = Path(__file__).parents[3]

LINE = "    return torch.ones(T, T, dtype=torch.bool, device=device).tril()"
SENTENCE = "Shuffled pairs of keys and values leave the sum as it was."
PLANTED = {
    "solution": (LINE, "causal_mask"),
    "hidden test": ("check(causal_mask, hidden=True)", "causal_mask"),
    "rubric": (SENTENCE, "question_order"),
    "canary": (f"# {CANARY}", CANARY),
    "marker": ("### BEGIN HIDDEN TESTS", "### BEGIN HIDDEN TESTS"),
}


@pytest.fixture
def secrets(small_secrets: Secrets) -> Secrets:
    return small_secrets


# How a line gets into each kind of file that students receive or can see.


def notebook(text: str) -> bytes:
    cell = nbformat.v4.new_code_cell(f"x = 1\n{text}\ny = 2")
    return nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode()


def output(text: str) -> bytes:
    shown = nbformat.v4.new_output("execute_result", data={"text/html": f"<pre>{html.escape(text)}</pre>"})
    cell = nbformat.v4.new_code_cell("x", outputs=[shown])
    return nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode()


def archive(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("tfcourse/attention.py", f"def f(T):\n{text}\n")
        file.writestr("tfcourse/picture.png", b"\x89PNG\r\n")
    return buffer.getvalue()


def archive_in_archive(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("90_first/package.whl", archive(text))
    return buffer.getvalue()


def recording(text: str) -> bytes:
    return save({"x": torch.randn(3)}, metadata={"sheet": json.dumps({"sections": [{"title": text}]})})


def highlighted(text: str) -> bytes:
    """A page as nbconvert and Sphinx write it: every token in an element of its own."""
    page, _ = HTMLExporter(template_name="basic").from_notebook_node(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)])
    )
    assert "<span" in page
    return str(page).encode()


def prose(text: str) -> bytes:
    return f"# A page\n\nSome *words*.\n\n{text}\n".encode()


def rendered(text: str) -> bytes:
    written = html.escape(text).replace(" ", "&nbsp; ").replace("keys", "<em>keys</em>")
    return f"<p>{written}</p>".encode()


def search_index(text: str) -> bytes:
    return f"Search.setIndex({json.dumps({'titles': [text], 'terms': {}})})".encode()


def binary(text: str) -> bytes:
    return b"\x80\x04\x95\xff\xfe" + text.encode() + b"\x00\xff"


KINDS: dict[str, Callable[[str], bytes]] = {
    "release/90_first/90_first.ipynb": notebook,
    "release/90_first/output.ipynb": output,
    "student/90_first/tfcourse-0.4.0+ch90-py3-none-any.whl": archive,
    "student/90_first.zip": archive_in_archive,
    "student/90_first/x.safetensors": recording,
    "feedback/ada/90_first/90_first.html": highlighted,
    "site/chapters/90_first/lesson.html": highlighted,
    "site/chapters/90_first/exercises.html": rendered,
    "site/_sources/chapters/90_first/lesson.md": prose,
    "site/searchindex.js": search_index,
    "site/_downloads/90_first/90_first.ipynb": notebook,
    "site/environment.pickle": binary,
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("place", KINDS)
def test_what_is_planted_is_found_in_every_kind_of_file(
    secrets: Secrets, tmp_path: Path, place: str, kind: str
) -> None:
    text, name = PLANTED[kind]
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_bytes(KINDS[place]("    if mask is None:"))
    assert find_leaks([Material(path, FIRST)], secrets) == []
    path.write_bytes(KINDS[place](text))
    # Without an index, with an empty one, and with one that has the file already.
    for root in (None, tmp_path, tmp_path):
        leaks = find_leaks([Material(path, FIRST)], secrets, root)
        assert [(leak.kind, leak.name) for leak in leaks] == [(kind, name)]
        assert leaks[0].file.startswith(str(path))


def test_a_release_of_both_chapters_gives_nothing_away(
    small: Any, course: Course, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.checks.exercises", lambda: small.registry)
    assign(small.root, course, [FIRST, SECOND])
    files = [
        (path.relative_to(course.root / step).parts[0].removesuffix(".zip"), path)
        for step in ("release", "student")
        for path in (course.root / step).rglob("*")
        if path.is_file()
    ]
    materials = [Material(path, chapter) for chapter, path in files]
    assert {chapter for chapter, _ in files} == {FIRST, SECOND}
    assert {material.path.suffix for material in materials} == {".ipynb", ".whl", ".zip", ".txt", ".md", ""}
    assert find_leaks(materials, secrets) == []
    # The control: what the instructor has is full of them.
    source = course.root / "source" / FIRST / f"{FIRST}.ipynb"
    kinds = {leak.kind for leak in find_leaks([source], secrets)}
    assert kinds == {"solution", "rubric", "hidden test", "canary", "marker"}


def test_earlier_chapters_are_public_in_later_ones_and_not_the_other_way(
    small: Any, secrets: Secrets, tmp_path: Path
) -> None:
    path = tmp_path / "x.py"
    path.write_text(LINE)
    assert find_leaks([Material(path, FIRST)], secrets)
    assert find_leaks([path], secrets)
    assert find_leaks([Material(path, SECOND)], secrets) == []


# The rules, one by one.


def test_a_line_that_everybody_may_read_is_no_find_alone_but_is_together_with_its_neighbours(tmp_path: Path) -> None:
    lines = ("first_of_the_lines", "second_of_the_lines", "third_of_the_lines", "fourth_of_the_lines")
    secrets = Secrets((Secret("solution", "f", "90", lines),), ("\n".join(lines),))
    path = tmp_path / "page.md"
    path.write_text(f"{lines[0]}\nand then {lines[3]}")
    assert find_leaks([path], secrets) == []
    path.write_text("\n".join(["x"] * 5 + [f"  {line}" for line in lines[1:]]))
    assert find_leaks([path], secrets)
    path.write_text(("\n" + "far away " * 100).join(lines))
    assert find_leaks([path], secrets) == []


def test_a_body_of_one_or_two_lines_is_found_even_in_what_people_wrote(tmp_path: Path) -> None:
    lines = ("return_the_right_thing",)
    secrets = Secrets((Secret("solution", "f", "90", lines),), ("\n".join(lines),))
    path = tmp_path / "lesson.md"
    path.write_text("Then `return_the_right_thing` is all there is to it.")
    assert find_leaks([path], secrets)


def test_a_model_answer_in_a_lesson_is_found(small: Any) -> None:
    lesson = small.chapter().lesson
    answer = small.chapter().rubrics()["question_order"].answer
    lesson.write_text("# A lesson\n\n" + answer.partition(". ")[0] + ". Something else follows.")
    assert find_leaks(written_texts(small.root), project_secrets(small.root, small.registry)) == []
    lesson.write_text("# A lesson\n\n" + answer.replace("sum", "*sum*"))
    leaks = find_leaks(written_texts(small.root), project_secrets(small.root, small.registry))
    assert [leak.name for leak in leaks] == ["question_order"]


def test_the_parts_of_a_body_are_its_long_lines_without_comments_behind_them() -> None:
    lines = ["    x = a", "    scores = q @ k  # (T, S)", "    # Why it is done so.", '    s = "# no comment"', ""]
    assert code_parts(lines) == ("Whyitisdoneso.", 's="#nocomment"')
    assert code_parts(["    scores = queries @ keys  # (T, S)"]) == ("scores=queries@keys",)
    # A body of short lines is searched for as a whole.
    assert code_parts(["    x = a + b", "    return x"]) == ("x=a+breturnx",)
    assert code_parts(["    return x"]) == ()


def test_every_exercise_of_the_course_has_something_to_search_for() -> None:
    secrets = project_secrets(ROOT)
    searched = {item.name: item.parts for item in secrets.items if item.kind == "solution"}
    from autograder.checks import exercises

    assert set(searched) == set(exercises())
    for name, parts in searched.items():
        assert any(part not in secrets.public_code for part in parts), f"every line of {name} is public"


def test_site_files_belong_to_a_chapter_only_among_the_downloads(tmp_path: Path) -> None:
    for name in ("_downloads/03_x/03_x.ipynb", "_downloads/5f3a/y.zip", "chapters/03_x/lesson.html", "_static/a.woff2"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = {m.path.relative_to(tmp_path).as_posix(): m.chapter for m in site_materials(tmp_path)}
    assert found == {
        "_downloads/03_x/03_x.ipynb": "03_x",
        "_downloads/5f3a/y.zip": None,
        "chapters/03_x/lesson.html": None,
    }


def test_leaks_are_refused_with_file_and_line(tmp_path: Path, secrets: Secrets) -> None:
    path = tmp_path / "page.html"
    path.write_text(LINE)
    with pytest.raises(CourseError, match=r"page\.html: solution causal_mask: returntorch\.ones"):
        refuse_leaks(find_leaks([path], secrets), "the site would give solutions away")
    refuse_leaks([], "nothing")


def test_a_broken_recording_or_notebook_is_still_read(tmp_path: Path, secrets: Secrets) -> None:
    shutil.copyfile(ROOT / "book" / "_static" / "logo.svg", tmp_path / "logo.svg")
    (tmp_path / "empty.whl").write_bytes(b"")
    assert find_leaks([tmp_path / "logo.svg", tmp_path / "empty.whl"], secrets) == []
    for name in ("x.safetensors", "x.ipynb", "x.json"):
        path = tmp_path / name
        path.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{" if name == "x.safetensors" else b'{"cells": [')
        assert all(text_forms(content) for content in extract_contents(path, set()))
        assert find_leaks([path], secrets) == []


def test_a_content_is_searched_for_those_from_whom_the_most_is_secret(secrets: Secrets, tmp_path: Path) -> None:
    solution = next(secret for secret in secrets.items if secret.kind == "solution")
    text = "\n".join(solution.parts)
    later, earlier = tmp_path / "later.py", tmp_path / "earlier.py"
    for path in (later, earlier):
        path.write_text(text)
    materials = [Material(later, "99_later"), Material(earlier, solution.chapter)]
    assert not find_leaks(materials[:1], secrets)
    assert [leak.name for leak in find_leaks(materials, secrets)] == [solution.name]


def test_index_does_not_hide_what_is_public_no_longer(tmp_path: Path) -> None:
    line = "total = weights.sum(dim=-1)"
    solution = Secret("solution", "f", FIRST, (*code_parts([line]), "another_long_line()", "a_third_long_line()"))
    path = tmp_path / "page.md"
    path.write_text(line)
    assert find_leaks([path], Secrets((solution,), public=(line,)), tmp_path) == []
    assert [leak.name for leak in find_leaks([path], Secrets((solution,)), tmp_path)] == ["f"]


def test_index_made_for_other_secrets_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("a_new_long_line(x)")
    old, new = (
        Secret("solution", "f", FIRST, code_parts([line])) for line in ("an_old_long_line(x)", "a_new_long_line(x)")
    )
    assert find_leaks([path], Secrets((old,)), tmp_path) == []
    assert [leak.name for leak in find_leaks([path], Secrets((new,)), tmp_path)] == ["f"]


def test_damaged_index_is_made_anew(tmp_path: Path, secrets: Secrets) -> None:
    path = tmp_path / "page.md"
    path.write_text(LINE)
    for damage in ("", "{"):
        find_leaks([Material(path, FIRST)], secrets, tmp_path)
        (index,) = (tmp_path / FOLDER).iterdir()
        index.write_text(damage)
        assert [leak.name for leak in find_leaks([Material(path, FIRST)], secrets, tmp_path)] == ["causal_mask"]


def test_index_spares_the_reading(tmp_path: Path, secrets: Secrets, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.md"
    path.write_text("nothing of interest")
    find_leaks([path], secrets, tmp_path)
    monkeypatch.setattr("autograder.course.release.leaks.text_forms", lambda content: pytest.fail("it is read again"))
    assert find_leaks([path], secrets, tmp_path) == []
