"""A grade says what it was made with, and a change of that is noticed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest
from traitlets.config import Config

from autograder import checks_version
from autograder.checks_version import PACKAGES, checks_hash
from autograder.engine import settings
from autograder.engine.environment import kernel_environment
from autograder.engine.settings import GradingSettings, read_limits, resolve_device
from autograder.errors import CourseError
from autograder.grading.course_settings import settings_from_config
from autograder.grading.record.provenance import Provenance, environment, isolation_line, outdated_message, package_hash

MADE = Provenance(
    "abc", "wheel", {"torch": "2.11", "python": "3.11"}, {"memory_mb": 4096}, "sandbox", ("user namespace", "seccomp")
)


def test_differences_are_told_one_by_one() -> None:
    assert MADE.differences(MADE) == []
    other = Provenance(
        "xyz", "another", {"torch": "2.12", "numpy": "2"}, {"memory_mb": 2048}, "restricted", ("landlock",)
    )
    assert MADE.differences(other)[2:] == [
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
        shutil.copytree(
            checks_version._package_folder(name), tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    monkeypatch.setattr("autograder.checks_version._package_folder", lambda name: tmp_path / name)
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
    assert outdated_message([MADE, MADE], MADE, "tfcourse regrade 03") == ""
    assert (
        outdated_message([older, MADE, released_again], MADE, "tfcourse regrade 03")
        == "the checks have changed since 2 of these were graded: tfcourse regrade 03"
    )
    assert (
        outdated_message([elsewhere], MADE, "tfcourse regrade 03")
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


@pytest.mark.parametrize(
    ("asked", "there", "given"),
    [
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_a_device_is_found(monkeypatch: pytest.MonkeyPatch, asked: str, there: bool, given: str) -> None:
    monkeypatch.setattr(settings, "is_cuda_available", lambda: there)
    assert resolve_device(asked) == given


def test_cuda_that_is_not_there_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "is_cuda_available", lambda: False)
    with pytest.raises(CourseError, match="no CUDA device") as caught:
        resolve_device("cuda")
    assert "--device cpu" in caught.value.do


def test_a_device_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CourseError, match="no device 'tpu'"):
        resolve_device("tpu")


def test_a_kernel_gets_what_it_needs_and_none_of_the_instructors_secrets() -> None:
    mine = {
        "PATH": "/bin",
        "AWS_SECRET_ACCESS_KEY": "x",
        "CANVAS_TOKEN": "x",
        "LC_ALL": "C",
        "CUDA_VISIBLE_DEVICES": "1",
        "DISPLAY": ":0",
    }
    made = kernel_environment(Path("/tmp/k"), device="cuda", seed=2**32 + 5, inherited=mine)
    assert {"AWS_SECRET_ACCESS_KEY", "CANVAS_TOKEN", "DISPLAY"}.isdisjoint(made)
    assert (made["PATH"], made["LC_ALL"], made["CUDA_VISIBLE_DEVICES"]) == ("/bin", "C", "1")
    assert (made["PYTHONHASHSEED"], made["TFCOURSE_DEVICE"], made["OMP_NUM_THREADS"]) == ("5", "cuda", "1")
    assert made["IPYTHONDIR"] == "/tmp/k/.ipython"


def test_code_that_looks_for_a_gpu_finds_none_where_grading_is_on_the_cpu() -> None:
    made = kernel_environment(Path("/tmp/k"), device="cpu", seed=0, inherited={"CUDA_VISIBLE_DEVICES": "0"})
    assert made["CUDA_VISIBLE_DEVICES"] == ""


def config(**limits: object) -> Config:
    return Config({"GradingLimits": limits})


def test_what_the_configuration_does_not_name_has_its_default_and_the_seed_is_the_courses() -> None:
    assert read_limits(Config()) == GradingSettings(seed=None)
    assert read_limits(config(memory_mb=512, isolation="restricted", seed=3)) == GradingSettings(
        memory_mb=512, isolation="restricted", seed=3
    )


def test_a_limit_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(CourseError, match="no limit memory") as caught:
        read_limits(config(memory=512))
    assert "memory_mb" in caught.value.do


@pytest.mark.parametrize("wrong", [{"memory_mb": 0}, {"memory_mb": "much"}, {"isolation": "some"}, {"restarts": -1}])
def test_a_value_that_a_limit_cannot_have_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(CourseError, match=next(iter(wrong))):
        read_limits(config(**wrong))


def test_what_seeds_a_students_process_follows_from_the_seed_and_does_not_tell_it() -> None:
    seeds = [2**61 + number for number in range(100)]
    drawn = [GradingSettings(seed=seed).student_seed for seed in seeds]
    assert drawn == [GradingSettings(seed=seed).student_seed for seed in seeds]
    assert len(set(drawn)) == len(seeds)
    assert len({seed - one for seed, one in zip(seeds, drawn, strict=True)}) == len(seeds)
    assert GradingSettings(seed=None).student_seed == GradingSettings().student_seed == 0


@pytest.mark.parametrize(("timeout", "seconds"), [(7, 7), (None, 900), (-1, 900)])
def test_the_timeout_of_nbgraders_configuration_is_that_of_every_cell(timeout: int | None, seconds: int) -> None:
    made = settings_from_config(Config({"Execute": {"timeout": timeout}}))
    assert (made.cell_seconds, made.exercise_seconds, made.submission_seconds) == (seconds, seconds, 900)
    kept = settings_from_config(Config({"Execute": {"timeout": timeout}, "GradingLimits": {"exercise_seconds": 20}}))
    assert (kept.cell_seconds, kept.exercise_seconds) == (seconds, 20)
