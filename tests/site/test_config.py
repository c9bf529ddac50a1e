"""The site's configuration holds together with what lies in the repository."""

from pathlib import Path

import yaml

from autograder.site.build import list_site_chapters

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
TOC = yaml.safe_load((ROOT / "book/_toc.yml").read_text(encoding="utf-8"))
ENTRIES = [entry for part in TOC["parts"] for entry in part["chapters"]]


def test_only_pages_of_the_contents_are_built_and_lessons_come_from_the_cache() -> None:
    assert CONFIG["only_build_toc_files"] is True
    assert CONFIG["execute"]["execute_notebooks"] == "cache"
    assert CONFIG["execute"]["exclude_patterns"] == ["chapters/*/exercises.md"]


def test_nothing_is_configured_that_asks_a_network() -> None:
    config = CONFIG["sphinx"]["config"]
    assert not {"sphinx_thebe", "sphinx.ext.intersphinx"} & set(config["extensions"])
    assert not CONFIG["repository"]["url"]
    assert not any(CONFIG["launch_buttons"].values())
    assert "tfcourse_launch" not in config
    assert config["nb_ipywidgets_js"] == {}


def test_solutions_rubrics_and_grades_are_never_read() -> None:
    assert {"solutions", "chapters/*/rubrics.md", "course", "demo", "tests", "book/_build"} <= set(
        CONFIG["exclude_patterns"]
    )
    assert CONFIG["sphinx"]["config"]["html_copy_source"] is False


def test_chapters_stand_in_lecture_order_lesson_before_exercises() -> None:
    listed = [entry["file"] for entry in ENTRIES if entry["file"].startswith("chapters/")]
    expected = [f"chapters/{name}/{kind}" for name in list_site_chapters(ROOT) for kind in ("lesson", "exercises")]
    assert listed == expected
