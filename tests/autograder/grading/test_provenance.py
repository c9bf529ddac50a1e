"""A grade says what it was made with, and a change of that is noticed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest

from autograder import checks_version
from autograder.checks_version import PACKAGES, checks_hash
from autograder.engine.settings import GradingSettings
from autograder.record.provenance import Provenance, changed_since, environment, isolation_line, package_hash

MADE = Provenance(
    "abc", "wheel", {"torch": "2.11", "python": "3.11"}, {"memory_mb": 4096}, "sandbox", ("user namespace", "seccomp")
)


def test_it_comes_back_as_it_was_through_json() -> None:
    assert Provenance.from_dict(json.loads(json.dumps(MADE.to_dict()))) == MADE


def test_differences_are_told_one_by_one() -> None:
    assert MADE.differences(MADE) == []
    other = Provenance(
        "xyz", "another", {"torch": "2.12", "numpy": "2"}, {"memory_mb": 2048}, "restricted", ("landlock",)
    )
    assert MADE.differences(other) == [
        "The checks or the reference have changed.",
        "The package that students have has changed.",
        "The environment numpy was absent, it is 2.",
        "The environment python was 3.11, it is absent.",
        "The environment torch was 2.11, it is 2.12.",
        "The limit memory_mb was 4096, it is 2048.",
        "Isolation was sandbox (2 layers), it is restricted (landlock).",
    ]


def test_the_hash_of_the_environment_is_that_of_its_contents_in_any_order() -> None:
    turned = replace(MADE, environment=dict(reversed(MADE.environment.items())))
    assert turned.environment_hash == MADE.environment_hash
    assert replace(MADE, environment={"torch": "2.12"}).environment_hash != MADE.environment_hash


def test_the_environment_names_every_package_that_matters_and_the_processor() -> None:
    found = environment()
    assert set(found) == {"python", "platform", "cpu capability", *PACKAGES}
    assert found["torch"][0].isdigit()
    assert found["cpu capability"] not in ("", "unknown")


DECIDING = ("autograder.checking", "autograder.checks", "autograder.mistakes", "tfcourse")


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of every package that decides a grade, from which the hash is taken."""
    for name in DECIDING:
        shutil.copytree(checks_version._folder(name), tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("autograder.checks_version._folder", lambda name: tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    "file", ["autograder.checking/judges.py", "autograder.checks/__init__.py", "tfcourse/attention.py"]
)
def test_a_change_of_what_decides_changes_the_hash(copied: Path, file: str) -> None:
    before = checks_hash()
    assert checks_hash() == before
    with (copied / file).open("a") as source:
        source.write("\n# another line\n")
    assert checks_hash() != before


@pytest.mark.parametrize("file", ["figures/scenes/ch03_scaled_dot_product.py", "explorers/heads.py", "own_code.py"])
def test_a_changed_drawing_keeps_the_hash(copied: Path, file: str) -> None:
    before = checks_hash()
    drawing = copied / "tfcourse" / "lessons" / file
    drawing.write_text(drawing.read_text("utf-8") + "\n# another line\n", "utf-8")
    assert checks_hash() == before


def test_limits_are_those_that_may_decide_and_not_how_work_is_spread() -> None:
    plain = GradingSettings()
    assert replace(plain, jobs=7, scheduler="tcp://x", allow_weaker=True).limits() == plain.limits()
    assert replace(plain, memory_mb=1).limits() != plain.limits()
    assert {"memory_mb", "exercise_seconds", "isolation", "warm"} <= set(plain.limits())


def test_isolation_is_one_line() -> None:
    nothing_run = replace(MADE, isolation="", layers=())
    assert isolation_line([MADE, MADE, nothing_run]) == "isolation: sandbox (2 layers)"
    assert isolation_line([nothing_run]) == ""
    weak = replace(MADE, isolation="restricted", layers=("landlock", "seccomp"))
    assert isolation_line([weak]) == "isolation: restricted (landlock, seccomp)"
    assert isolation_line([weak, MADE]) == "isolation: restricted (landlock, seccomp) for 1, sandbox (2 layers) for 1"
    assert isolation_line([replace(MADE, isolation="none", layers=())]) == "isolation: none"


def test_kept_grades_of_other_checks_are_counted_once() -> None:
    older = replace(MADE, checks="old")
    released_again = replace(MADE, package="old")
    elsewhere = replace(MADE, environment={"torch": "2.10"})
    assert changed_since([MADE, MADE], MADE, "tfcourse regrade 03") == ""
    assert (
        changed_since([older, MADE, released_again], MADE, "tfcourse regrade 03")
        == "the checks have changed since 2 of these were graded: tfcourse regrade 03"
    )
    assert (
        changed_since([elsewhere], MADE, "tfcourse regrade 03")
        == "the environment has changed since 1 of these were graded: tfcourse regrade 03"
    )


def test_a_package_is_known_by_what_decides_a_grade_and_not_by_when_it_was_built_or_where_the_site_is(
    tmp_path: Path,
) -> None:
    def wheel(name: str, year: int, text: str, told: str = "") -> str:
        with ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(ZipInfo("tfcourse/attention.py", (year, 1, 1, 0, 0, 0)), text)
            archive.writestr(ZipInfo("autograder/checking/stamp.py", (year, 1, 1, 0, 0, 0)), f'SITE = "{told}"')
            archive.writestr(ZipInfo("tfcourse-1.dist-info/RECORD", (year, 1, 1, 0, 0, 0)), f"{hash(told)}")
        return str(tmp_path / name)

    first = package_hash(wheel("a", 2025, "x = 1"))
    assert package_hash(wheel("b", 2026, "x = 1")) == first != ""
    assert package_hash(wheel("c", 2026, "x = 2")) != first
    assert package_hash(wheel("d", 2026, "x = 1", "https://example.org/")) == first
    assert package_hash("") == ""
