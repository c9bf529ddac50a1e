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
from autograder.site.build import SiteError, SiteReport, build_site

from .conftest import make_course

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

Built = tuple[Path, SiteReport, list[str]]
LESSONS = ("01_first", "romeo", "juliet")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A course with an address, with figures to play with, with two lessons that wait for each other, and with students' files that
    are written beside the pages: the course, what its build reports, and its steps.
    """
    course = make_course(tmp_path_factory.mktemp("built") / "course")
    contents = yaml.safe_load((course / "book/_toc.yml").read_text())
    for mine, other in (("romeo", "juliet"), ("juliet", "romeo")):
        (course / "chapters" / mine).mkdir()
        (course / f"chapters/{mine}/lesson.md").write_text(WAITING.format(mine=mine, other=other))
        contents["chapters"].append({"file": f"chapters/{mine}/lesson"})
    (course / "book/_toc.yml").write_text(yaml.safe_dump(contents))
    lesson, config = course / "chapters/01_first/lesson.md", course / "_config.yml"
    lesson.write_text(lesson.read_text() + EXPLORERS)
    config.write_text(config.read_text().replace('baseurl: ""', "baseurl: https://example.org/course/"))
    notebook, wheel = course / "01_first.ipynb", course / "tfcourse-1.whl"
    steps: list[str] = []

    def complete() -> None:
        assert any("build succeeded" in step for step in steps), "the files were waited for before the pages were built"
        notebook.write_text(json.dumps({"cells": []}))
        wheel.write_bytes(b"wheel")

    downloads = {"01_first": [notebook, wheel]}
    return course, build_site(course, downloads=downloads, complete_downloads=complete, progress=steps.append), steps


def test_a_course_becomes_a_site_whose_lessons_alone_are_executed_side_by_side(built: Built) -> None:
    course, report, steps = built
    site = report.output
    assert site == course / "book/_build/html"
    pages = {"book/intro", "book/literature", "chapters/01_first/exercises"}
    lessons = {f"chapters/{name}/lesson" for name in LESSONS}
    assert set(report.pages) == pages | lessons
    assert set(report.runtimes) == set(report.words) == lessons
    assert report.words["chapters/01_first/lesson"] == 2, "“It says”, without the formula, the code and what it prints"
    for name, printed in zip(LESSONS, ("seven is 42", "romeo has met juliet", "juliet has met romeo"), strict=True):
        assert printed in (site / f"chapters/{name}/lesson.html").read_text()
    exercises = (site / "chapters/01_first/exercises.html").read_text()
    assert "RuntimeError" in exercises
    assert "Traceback" not in exercises, "the exercises were executed"
    assert any("lesson" in step for step in steps)


def test_a_site_has_its_students_files_its_address_and_what_it_needs_without_a_network(built: Built) -> None:
    site = built[1].output
    for page in ("lesson", "exercises"):
        html = (site / f"chapters/01_first/{page}.html").read_text()
        assert 'download href="../../_downloads/01_first/01_first.ipynb"' in html
        assert f'<link rel="canonical" href="https://example.org/course/chapters/01_first/{page}.html"' in html
    assert (site / "_downloads/01_first/tfcourse-1.whl").read_bytes() == b"wheel"
    assert (site / "_static/mathjax/tex-chtml.js").is_file()
    assert "url=book/intro.html" in (site / "index.html").read_text()
    assert not (site / "_sources").exists()
    assert 'role="listitem"' in (site / "book/literature.html").read_text()


def test_page_with_figures_to_play_with_loads_what_they_share_before_their_own(built: Built) -> None:
    site = built[1].output
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
    (old / "index.html").write_text("old")
    lesson.write_text(lesson.read_text().replace("6 * 7", "6 / 0"))
    with pytest.raises(SiteError) as caught:
        build_site(course)
    line = lesson.read_text().splitlines().index('print("six times seven is", 6 / 0)') + 1
    assert f"chapters/01_first/lesson.md, line {line}:" in str(caught.value)
    assert "ZeroDivisionError" in str(caught.value)
    assert 'print("six times seven is", 6 / 0)' in str(caught.value)
    assert isinstance(caught.value, CourseError), "the command line would show a traceback"
    assert (old / "index.html").read_text() == "old"
    assert [path.name for path in old.parent.iterdir()] == ["html"], "something was left beside the site"


def test_warnings_and_pictures_without_words_are_errors_also_when_nothing_has_changed_since(course: Path) -> None:
    page = course / "book/intro.md"
    shutil.copyfile(course / "book/_static/logo.svg", course / "book/plot.svg")
    page.write_text(page.read_text() + "\n![](nowhere.png), ![](plot.svg) and {ref}`no-such-section`\n")
    for _ in range(2):
        with pytest.raises(SiteError) as caught:
            build_site(course)
        for fault in ("book/nowhere.png", "no-such-section", "alternative text"):
            assert fault in str(caught.value)


def test_what_cannot_be_a_site_is_refused(course: Path, tmp_path: Path) -> None:
    config = course / "_config.yml"
    text, settings = config.read_text(), yaml.safe_load(config.read_text())
    settings["sphinx"]["config"]["tfcourse_launch"] = {"repository": "https://example.org/course"}
    hostile = text.replace('baseurl: ""', "baseurl: javascript:alert(1)")
    for changed, named in ((yaml.safe_dump(settings), "github"), (hostile, "baseurl")):
        config.write_text(changed)
        with pytest.raises(SiteError, match=named):
            build_site(course)
    config.write_text(text)
    with pytest.raises(SiteError, match=r"_config.yml.*_toc.yml"):
        build_site(tmp_path)
    notebook = tmp_path / "01_first.ipynb"
    notebook.write_text(json.dumps({"cells": [{"source": ["### BEGIN SOLUTION\n", "return 42\n"]}]}))
    with pytest.raises(SiteError, match="instructor's"):
        build_site(course, downloads={"01_first": [notebook]})
    notebook.rename(tmp_path / "thesis.tex")
    with pytest.raises(SiteError, match="site"):
        build_site(course, output=tmp_path)
    assert (tmp_path / "thesis.tex").is_file()


@pytest.mark.parametrize(
    ("module", "name", "gives", "says"),
    [(importlib.util, "find_spec", None, r"\[book\]"), (build_module, "version", "2.1.0", "jupyter-book<2")],
)
def test_without_the_right_jupyter_book_the_command_that_installs_it_is_named(
    course: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str, gives: object, says: str
) -> None:
    monkeypatch.setattr(module, name, lambda *_: gives)
    with pytest.raises(SiteError, match=says):
        build_site(course)


def test_site_is_not_published_where_its_downloads_are_refused(course: Path, tmp_path: Path) -> None:
    def refuse() -> None:
        raise CourseError("a leak")

    with pytest.raises(CourseError, match="a leak"):
        build_site(course, downloads={"01_first": [tmp_path / "tfcourse-1.whl"]}, complete_downloads=refuse)
    with pytest.raises(SiteError, match="exist"):
        build_site(course, downloads={"01_first": [tmp_path / "tfcourse-1.whl"]}, complete_downloads=lambda: None)
    assert not (course / "book/_build/html").exists()


@pytest.mark.parametrize("place", ["/sys/site", "file/site"])
def test_a_place_that_cannot_be_written_is_named_before_any_work_is_done(
    course: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    steps: list[str] = []
    with pytest.raises(SiteError, match="written") as caught:
        build_site(course, output=tmp_path / place, progress=steps.append)
    assert place.removeprefix("/").split("/")[0] in str(caught.value)
    assert steps == []


def test_two_builds_do_not_share_a_cache_at_the_same_time(course: Path) -> None:
    cache = course / ".cache/site"
    with build_module._lock_cache(cache), pytest.raises(SiteError, match="another build"):
        build_site(course)
    with build_module._lock_cache(cache):
        pass


def _pages_of(site: Path) -> dict[str, bytes]:
    """Return every file of a site, without the digest of its settings and without checksums in addresses.

    Sphinx adds a checksum to the address of a style or script where the file is there already when the page is written.
    """
    names = (path.relative_to(site).as_posix() for path in sorted(site.rglob("*")) if path.is_file())
    files = {name: (site / name).read_bytes() for name in names if name not in (".buildinfo", "searchindex.js")}
    return {name: re.sub(rb"\?v=[0-9a-f]{8}", b"", data) for name, data in files.items()}


LESSON_PAGE = "chapters/01_first/lesson.md"
# In each step files, what stands in them, and what stands there then; a style may have every page written anew, so it comes last.
CHANGES = [
    [
        *((LESSON_PAGE, "It says", "It still says"), (LESSON_PAGE, "# A lesson", "# Another lesson")),
        (LESSON_PAGE, "## A section", "## A part"),
    ],
    [("chapters/01_first/exercises.md", "of the lesson\n", "of {cite}`bahdanau2015`\n")],
    [("book/_static/custom.css", "", ".new { color: red }\n")],
]


def test_a_later_build_gives_the_pages_of_a_fresh_one_and_keeps_nothing_that_is_gone(
    course: Path, tmp_path: Path
) -> None:
    first = build_site(course, downloads={"01_first": [course / "_config.yml"]})
    for step, files in enumerate(CHANGES):
        for file, old, new in files:
            text = (course / file).read_text()
            assert old in text
            (course / file).write_text(text.replace(old, new, 1))
        again = _pages_of(build_site(course).output)
        if step:
            fresh = _pages_of(build_site(course, output=tmp_path / f"new {step}", cache=tmp_path / f"{step}").output)
            assert again.keys() == fresh.keys()
            assert [name for name in fresh if again[name] != fresh[name]] == [], f"after {files}"
    toc = course / "book/_toc.yml"
    toc.write_text(toc.read_text().replace("- file: chapters/01_first/exercises\n", ""))
    steps: list[str] = []
    last = build_site(course, progress=steps.append)
    assert not (last.output / "chapters/01_first/exercises.html").exists()
    assert not (last.output / "_downloads").exists()
    assert "exercises are not executed" not in (last.output / "searchindex.js").read_text()
    assert not [step for step in steps if "Executing notebook" in step]
    assert (last.runtimes, last.words) == (first.runtimes, first.words | {LESSON_PAGE[:-3]: 3})
