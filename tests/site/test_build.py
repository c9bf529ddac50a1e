"""Building the site: what it gives, what it keeps, and what it says when it cannot."""

import importlib.util
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from autograder.errors import CourseError
from autograder.site import build as build_module
from autograder.site.build import SiteError, build_site, chapters_of

EXPLORERS = """
```{code-cell} ipython3
import torch
from tfcourse.lessons.explorers.heads import head_explorer
head_explorer(["a", "b"], torch.eye(2)[None], caption="Who looks where?")
```

```{code-cell} ipython3
from tfcourse.lessons.explorers.blocks import block_explorer
block_explorer(caption="Which shapes?")
```
"""


def test_a_course_becomes_a_site_with_its_students_files(course: Path, tmp_path: Path) -> None:
    notebook, wheel = tmp_path / "01_first.ipynb", tmp_path / "tfcourse-1.whl"
    notebook.write_text(json.dumps({"cells": []}))
    wheel.write_bytes(b"wheel")
    steps: list[str] = []
    report = build_site(course, downloads={"01_first": [notebook, wheel]}, progress=steps.append)
    site = report.output
    lesson = (site / "chapters/01_first/lesson.html").read_text()
    exercises = (site / "chapters/01_first/exercises.html").read_text()
    assert site == course / "book/_build/html"
    assert set(report.pages) == {
        "book/intro",
        "book/literature",
        "chapters/01_first/lesson",
        "chapters/01_first/exercises",
    }
    assert "six times seven is 42" in lesson, "the lesson was not executed"
    assert "RuntimeError" in exercises
    assert "Traceback" not in exercises, "the exercises were executed"
    assert list(report.runtimes) == ["chapters/01_first/lesson"]
    assert report.words == {"chapters/01_first/lesson": 2}, (
        "“It says”, without the formula, the code and what it prints"
    )
    for page in (lesson, exercises):
        assert 'download href="../../_downloads/01_first/01_first.ipynb"' in page
    assert (site / "_downloads/01_first/tfcourse-1.whl").read_bytes() == b"wheel"
    assert (site / "_static/mathjax/tex-chtml.js").is_file()
    assert "url=book/intro.html" in (site / "index.html").read_text()
    assert not (site / "_sources").exists()
    assert 'role="listitem"' in (site / "book/literature.html").read_text()
    assert any("lesson" in step for step in steps)

    # A second build, with a chapter's page gone, keeps nothing of it, and runs no lesson again.
    toc = course / "book/_toc.yml"
    contents = yaml.safe_load(toc.read_text())
    contents["chapters"] = [entry for entry in contents["chapters"] if not entry["file"].endswith("exercises")]
    toc.write_text(yaml.safe_dump(contents))
    steps.clear()
    second = build_site(course, progress=steps.append)
    assert not (site / "chapters/01_first/exercises.html").exists()
    assert not (site / "_downloads").exists()
    assert "exercises are not executed" not in (site / "searchindex.js").read_text()
    assert "six times seven is 42" in (site / "chapters/01_first/lesson.html").read_text()
    assert not [step for step in steps if "Executing notebook" in step]
    assert second.runtimes == report.runtimes
    assert second.words == report.words


def test_page_with_figures_to_play_with_loads_what_they_share_before_their_own(course: Path) -> None:
    lesson = course / "chapters/01_first/lesson.md"
    lesson.write_text(lesson.read_text() + EXPLORERS)
    site = build_site(course).output
    page = (site / "chapters/01_first/lesson.html").read_text()
    for suffix in ("js", "css"):
        loaded = re.findall(rf"_static/([a-z]+(?:-[a-z]+)?)\.{suffix}\b", page)
        names = [name for name in loaded if name.endswith("explorer")]
        assert names == ["explorer", "block-explorer", "head-explorer"], suffix
    assert "explorer.js" not in (site / "book/intro.html").read_text()


def test_a_failed_cell_is_named_and_the_old_site_stays(course: Path) -> None:
    lesson = course / "chapters/01_first/lesson.md"
    old = course / "book/_build/html"
    old.mkdir(parents=True)
    (old / ".buildinfo").touch()
    (old / "index.html").write_text("the old site")
    lesson.write_text(lesson.read_text().replace("6 * 7", "6 / 0"))
    with pytest.raises(SiteError) as caught:
        build_site(course)
    line = lesson.read_text().splitlines().index('print("six times seven is", 6 / 0)') + 1
    assert f"chapters/01_first/lesson.md, line {line}:" in str(caught.value)
    assert "ZeroDivisionError: division by zero" in str(caught.value)
    assert 'print("six times seven is", 6 / 0)' in str(caught.value)
    assert isinstance(caught.value, CourseError), "the command line would show a traceback"
    assert (old / "index.html").read_text() == "the old site"
    assert [path.name for path in old.parent.iterdir()] == ["html"], "something was left beside the site"


def test_warnings_are_errors_also_when_nothing_has_changed_since(course: Path) -> None:
    page = course / "book/intro.md"
    page.write_text(page.read_text() + "\n![](nowhere.png) and {ref}`no-such-section`\n")
    for _ in range(2):
        with pytest.raises(SiteError) as caught:
            build_site(course)
        assert "image file not readable: book/nowhere.png" in str(caught.value)
        assert "no-such-section" in str(caught.value)


def test_a_picture_without_words_does_not_build(course: Path) -> None:
    shutil.copyfile(course / "book/_static/logo.svg", course / "book/plot.svg")
    page = course / "book/intro.md"
    page.write_text(page.read_text() + "\n![](plot.svg)\n")
    with pytest.raises(SiteError, match="has no alternative text"):
        build_site(course)


def test_launch_buttons_that_cannot_work_are_refused(course: Path) -> None:
    config = yaml.safe_load((course / "_config.yml").read_text())
    config["sphinx"]["config"]["tfcourse_launch"] = {"repository": "https://example.org/course"}
    (course / "_config.yml").write_text(yaml.safe_dump(config))
    with pytest.raises(SiteError, match=r"expected https://github\.com/owner/name"):
        build_site(course)


def test_a_folder_that_is_no_course_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"no _config.yml and no book/_toc.yml"):
        build_site(tmp_path)


def test_a_missing_jupyter_book_is_named_with_the_command_that_installs_it(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SiteError, match=r"pip install 'tfcourse\[book\]'"):
        build_site(course)


def test_jupyter_book_2_is_refused(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "version", lambda name: "2.1.0")
    with pytest.raises(SiteError, match="jupyter-book<2"):
        build_site(course)


def test_an_instructors_notebook_is_not_published(course: Path, tmp_path: Path) -> None:
    notebook = tmp_path / "01_first.ipynb"
    notebook.write_text(json.dumps({"cells": [{"source": ["### BEGIN SOLUTION\n", "return 42\n"]}]}))
    with pytest.raises(SiteError, match="instructor's notebook"):
        build_site(course, downloads={"01_first": [notebook]})


def test_students_files_can_be_written_beside_the_pages(course: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "tfcourse-1.whl"
    steps: list[str] = []

    def complete() -> None:
        assert any("build succeeded" in step for step in steps), "the files were waited for before the pages were built"
        wheel.write_bytes(b"wheel")

    report = build_site(course, downloads={"01_first": [wheel]}, complete_downloads=complete, progress=steps.append)
    assert (report.output / "_downloads/01_first/tfcourse-1.whl").read_bytes() == b"wheel"
    assert "tfcourse-1.whl" in (report.output / "chapters/01_first/lesson.html").read_text()


def test_site_is_not_published_where_its_downloads_are_refused(course: Path, tmp_path: Path) -> None:
    def refuse() -> None:
        raise CourseError("the downloads would give solutions away")

    with pytest.raises(CourseError, match="give solutions away"):
        build_site(course, downloads={"01_first": [tmp_path / "tfcourse-1.whl"]}, complete_downloads=refuse)
    with pytest.raises(SiteError, match="does not exist"):
        build_site(course, downloads={"01_first": [tmp_path / "tfcourse-1.whl"]}, complete_downloads=write_nothing)
    assert not (course / "book/_build/html").exists()


def write_nothing() -> None:
    """Write nothing."""


def test_a_folder_that_holds_something_else_is_not_replaced(course: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("four years of work")
    with pytest.raises(SiteError, match="not a site"):
        build_site(course, output=home)
    assert (home / "thesis.tex").read_text() == "four years of work"


@pytest.mark.parametrize("place", ["/sys/site", "file/site"])
def test_a_place_that_cannot_be_written_is_named_before_any_work_is_done(
    course: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    steps: list[str] = []
    with pytest.raises(SiteError, match="cannot be written") as caught:
        build_site(course, output=tmp_path / place, progress=steps.append)
    assert place.removeprefix("/").split("/")[0] in str(caught.value)
    assert steps == []


def test_two_builds_do_not_share_a_cache_at_the_same_time(course: Path) -> None:
    cache = course / ".cache/site"
    with build_module._alone(cache), pytest.raises(SiteError, match="another build"):
        build_site(course)
    with build_module._alone(cache):
        pass


def test_chapters_are_the_folders_with_a_lesson_or_exercises(course: Path) -> None:
    (course / "chapters/02_second").mkdir()
    (course / "chapters/02_second/exercises.md").touch()
    (course / "chapters/00_drafts").mkdir()
    assert chapters_of(course) == ["01_first", "02_second"]


WAITING = """\
---
jupytext:
  formats: md:myst
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# {mine}

```{{code-cell}} ipython3
import pathlib, time
pathlib.Path("../{mine}.here").touch()
until = time.monotonic() + 60
while not pathlib.Path("../{other}.here").exists():
    assert time.monotonic() < until, "{other} never began"
    time.sleep(0.05)
print("{mine} has met {other}")
```
"""


def test_lessons_are_executed_side_by_side(course: Path) -> None:
    contents = yaml.safe_load((course / "book/_toc.yml").read_text())
    for mine, other in (("romeo", "juliet"), ("juliet", "romeo")):
        folder = course / "chapters" / mine
        folder.mkdir()
        (folder / "lesson.md").write_text(WAITING.format(mine=mine, other=other))
        contents["chapters"].append({"file": f"chapters/{mine}/lesson"})
    (course / "book/_toc.yml").write_text(yaml.safe_dump(contents))
    report = build_site(course)
    for mine, other in (("romeo", "juliet"), ("juliet", "romeo")):
        assert f"{mine} has met {other}" in (report.output / f"chapters/{mine}/lesson.html").read_text()
    assert set(report.runtimes) == {f"chapters/{name}/lesson" for name in ("01_first", "romeo", "juliet")}


def test_a_site_knows_its_address_and_takes_no_hostile_one(course: Path) -> None:
    config = course / "_config.yml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('baseurl: ""', "baseurl: javascript:alert(1)"), encoding="utf-8")
    with pytest.raises(SiteError, match="not the address of a site"):
        build_site(course)
    config.write_text(text.replace('baseurl: ""', "baseurl: https://example.org/course/"), encoding="utf-8")
    page = (build_site(course).output / "chapters/01_first/lesson.html").read_text(encoding="utf-8")
    assert '<link rel="canonical" href="https://example.org/course/chapters/01_first/lesson.html"' in page


def _pages_of(site: Path) -> dict[str, bytes]:
    """Return every file of a site, without the digest of its settings and without checksums in addresses.

    Sphinx adds a checksum to the address of a style or script where the file is there already when the page is written.
    """
    names = (path.relative_to(site).as_posix() for path in sorted(site.rglob("*")) if path.is_file())
    files = {name: (site / name).read_bytes() for name in names if name not in (".buildinfo", "searchindex.js")}
    return {name: re.sub(rb"\?v=[0-9a-f]{8}", b"", data) for name, data in files.items()}


LESSON_PAGE = "chapters/01_first/lesson.md"
# A file, what stands in it, and what stands there after the change: a sentence, a title, a heading, a citation, a style.
CHANGES = [
    (LESSON_PAGE, "It says", "It still says"),
    (LESSON_PAGE, "# A lesson", "# Another lesson"),
    (LESSON_PAGE, "## A section", "## A part"),
    ("book/intro.md", "vaswani2017", "bahdanau2015"),
    ("book/_static/custom.css", "", ".new { color: red }\n"),
]


def test_second_build_gives_the_pages_of_a_fresh_one(course: Path, tmp_path: Path) -> None:
    build_site(course)
    for number, (file, old, new) in enumerate(CHANGES):
        text = (course / file).read_text()
        assert old in text
        (course / file).write_text(text.replace(old, new, 1))
        again = _pages_of(build_site(course).output)
        fresh = _pages_of(build_site(course, output=tmp_path / f"fresh {number}", cache=tmp_path / f"{number}").output)
        assert again.keys() == fresh.keys()
        assert [name for name in fresh if again[name] != fresh[name]] == [], f"after {old!r} became {new!r}"
