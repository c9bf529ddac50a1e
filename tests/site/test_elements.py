"""Pages load the files of the interactive figures that they show, and no others."""

from pathlib import Path

from autograder.site.page_body import element_files


def test_a_page_loads_the_files_of_its_element_once(tmp_path: Path) -> None:
    for name in ("head-explorer.css", "head-explorer.js", "sampler-playground.js"):
        (tmp_path / name).touch()
    body = '<head-explorer style="display:block"><table></table></head-explorer><head-explorer>'
    assert element_files(body, [tmp_path / "none", tmp_path]) == ["head-explorer.css", "head-explorer.js"]


def test_elements_without_files_and_pages_without_elements_load_nothing(tmp_path: Path) -> None:
    (tmp_path / "head-explorer.js").touch()
    assert element_files("<mjx-container></mjx-container><p>head-explorer</p>", [tmp_path]) == []
