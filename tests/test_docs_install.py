"""What the pages tell students to type in a terminal installs the course's package from their folder, in every shell."""

import re
from pathlib import Path

import pytest

import tfcourse
from autograder.course.authoring.chapter import find_chapter

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)


def installs(page: str) -> list[str]:
    """Return the lines of a page's shell blocks that install a wheel."""
    blocks = BLOCK.findall((ROOT / "book" / page).read_text(encoding="utf-8"))
    return [line for block in blocks for line in block.splitlines() if ".whl" in line]


@pytest.mark.parametrize("page", ["students.md", "intro.md"])
def test_the_package_is_installed_by_its_full_name_because_only_some_shells_know_wildcards(page: str) -> None:
    (line,) = installs(page)
    wheel = f"./tfcourse-{tfcourse.__version__}+{find_chapter(ROOT, '03').tag}-py3-none-any.whl"
    assert line == f"python -m pip install jupyterlab matplotlib babel num2words {wheel}"
