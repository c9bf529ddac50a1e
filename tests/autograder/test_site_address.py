"""The address of the course's site: one setting, and nothing but a folder on the web."""

from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.site_address import site_address


def project(folder: Path, baseurl: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_config.yml").write_text(f"html:\n  baseurl: {baseurl}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("baseurl", "address"),
    [
        ("https://example.org/course/", "https://example.org/course/"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/"),
        ("https://example.org/~ann/2027//", "https://example.org/~ann/2027/"),
        ('""', ""),
        ("", ""),
    ],
)
def test_the_address_of_a_folder_on_the_web_ends_in_a_slash(tmp_path: Path, baseurl: str, address: str) -> None:
    assert site_address(project(tmp_path, baseurl)) == address


@pytest.mark.parametrize(
    "baseurl",
    [
        "'javascript:alert(1)//'",
        "'JaVaScRiPt://example.org/%0aalert(1)'",
        "'data:text/html,hello'",
        "file:///etc/",
        "//example.org/",
        "example.org/course",
        "https:///course",
        "'https://user:secret@example.org/'",
        "'https://example.org/\" onclick=\"alert(1)'",
        "'https://example.org/<b>'",
        "'https://example.org/?page='",
        "'https://example.org/#'",
        "'https://example.org:port/'",
        "'https://[example'",
        '"https://example.org/\\n"',
        "[https://example.org/]",
        "7",
    ],
)
def test_any_other_address_is_refused(tmp_path: Path, baseurl: str) -> None:
    with pytest.raises(CourseError, match=r"baseurl.*not the address of a site"):
        site_address(project(tmp_path, baseurl))


def test_a_package_outside_of_a_project_knows_no_address(tmp_path: Path) -> None:
    assert site_address(tmp_path) == ""


def test_the_course_itself_names_no_address_until_somebody_publishes_it() -> None:
    assert site_address() == ""
