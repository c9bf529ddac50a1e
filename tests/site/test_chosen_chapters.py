"""A site of some of the chapters: the others are nowhere on it, and nothing that names them is a broken link."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from autograder.course.chapter_names import parse_chapter_list
from autograder.errors import CourseError
from autograder.site.build import SiteCourse, build_site
from autograder.site.page_parts.closed_chapters import absolute_document, remove_closed_links

ROOT = Path(__file__).parents[2]
OPEN = ["05_transformer", "06_tokenization"]


ODD = [["01_recurrent", "03_scaled_dot_product", "07_decoding", "12_rotary"], ["13_grouped_query"]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which no lesson is executed."""
    root = tmp_path_factory.mktemp("project")
    for path in ROOT.iterdir():
        if path.name in ("book", "chapters"):
            shutil.copytree(path, root / path.name, ignore=shutil.ignore_patterns("_build"))
        elif not path.name.startswith(".") and path.name != "_config.yml":
            (root / path.name).symlink_to(path)
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    config["execute"]["execute_notebooks"] = "off"
    (root / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def site(project: Path) -> Path:
    """The real course with two of its chapters."""
    return build_site(project, chapters=OPEN).output


def page(site: Path, name: str) -> str:
    return (site / f"{name}.html").read_text(encoding="utf-8")


def text(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", markup).split())


def broken_links(site: Path) -> list[tuple[str, str]]:
    """Return the links of a site to files that it does not have, with their pages."""
    broken = []
    for path in site.rglob("*.html"):
        for address in re.findall(r'<a\b[^>]*?href="([^"]+)"', path.read_text(encoding="utf-8")):
            file = address.partition("#")[0]
            if file and ":" not in file and not (path.parent / file).exists():
                broken.append((path.name, address))
    return broken


@pytest.mark.parametrize("chosen", ODD, ids=lambda chosen: ",".join(name[:2] for name in chosen))
def test_any_selection_of_chapters_makes_a_site(project: Path, tmp_path: Path, chosen: list[str]) -> None:
    course = SiteCourse("Attention, winter", {chosen[-1]: "Due on Saturday."})
    built = build_site(project, output=tmp_path / "site", chapters=chosen, course=course).output
    assert sorted(path.name for path in (built / "chapters").iterdir()) == chosen
    assert broken_links(built) == []
    assert '<p class="tfc-deadline">Due on Saturday.</p>' in page(built, f"chapters/{chosen[-1]}/exercises")
    assert "Attention, winter" in page(built, "book/intro")


@pytest.mark.parametrize(
    ("target", "document"),
    [
        ("../04_multi_head/lesson", "chapters/04_multi_head/lesson"),
        ("../04_multi_head/lesson.md", "chapters/04_multi_head/lesson"),
        ("/chapters/04_multi_head/exercises", "chapters/04_multi_head/exercises"),
        ("exercises", "chapters/03_scaled_dot_product/exercises"),
        ("some-label", "some-label"),
    ],
)
def test_a_reference_is_found_however_it_is_written(target: str, document: str) -> None:
    assert absolute_document(target, "chapters/03_scaled_dot_product/lesson") == document


def test_a_smaller_site_names_only_its_chapters_and_gives_no_solution_away(site: Path) -> None:
    assert broken_links(site) == []
    modules = {path.stem for path in (site / "book/api").iterdir()}
    assert modules & {"transformer", "data", "gpt", "rotary", "alignment"} == {"transformer", "data"}
    lesson = page(site, "chapters/05_transformer/lesson")
    assert re.search(r"multi-head attention \(chapter 04\)", text(lesson))
    assert not re.search(r'href="[^"]*0[34]_', lesson)
    intro, road = page(site, "book/intro"), page(site, "book/road")
    assert intro.count('<li class="tfc-card">') == road.count('<li class="tfc-station">') == 2
    assert "2 chapters" in text(intro)
    assert '<a href="../chapters/05_transformer/lesson.html">' in intro
    assert "tfc-hero-figure" not in intro
    assert "LlamaConfig" not in road
    assert page(site, "book/notation").count('class="tfc-letters"') <= 2
    assert "LXMERT" not in page(site, "book/references")
    assert "Attention" in page(site, "book/references")
    exercises = page(site, "chapters/06_tokenization/exercises")
    assert "BEGIN SOLUTION" not in exercises


def test_lists_of_chapters_take_names_and_ranges() -> None:
    assert parse_chapter_list("01, 3,05-07,gpt") == ["01", "3", "05", "06", "07", "gpt"]
    assert parse_chapter_list("scaled-dot") == ["scaled-dot"]
    with pytest.raises(CourseError, match="backwards"):
        parse_chapter_list("11-01")
    with pytest.raises(CourseError, match="empty"):
        parse_chapter_list(" ,")


def test_links_to_closed_chapters_become_their_text() -> None:
    inside = '<a class="x" href="../12_rotary/lesson.html#dial">The <em>dial</em></a>'
    assert remove_closed_links(inside, ["12_rotary"]) == "The <em>dial</em>"
    assert remove_closed_links(inside, ["13_grouped_query"]) == inside
    assert remove_closed_links(inside, []) == inside
