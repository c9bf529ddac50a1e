"""A site that is up to date is recognised, and anything that it was built from makes it be built again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result

from autograder import content_hash
from autograder.commands import unchanged_site as unchanged
from autograder.site.build import SiteReport

LESSON = "chapters/04_attention/lesson"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project; it is the current folder."""
    root = tmp_path / "project"
    (root / "chapters" / "04_attention").mkdir(parents=True)
    (root / "chapters" / "04_attention" / "exercises.md").write_text("# Exercises\n")
    (root / "_config.yml").write_text("title: A course\n")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def builds(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace the slow parts of a build; each build adds its output folder to this list."""
    done: list[Path] = []

    def build_site(root: Path, *, output: Path | None, **_: object) -> SiteReport:
        folder = (output or root / "book" / "_build" / "html").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").write_text("<p>page</p>")
        done.append(folder)
        return SiteReport(folder, (LESSON,), 12.0, {LESSON: 3.0}, {LESSON: 4826})

    monkeypatch.setattr("autograder.site.build.build_site", build_site)
    files = SimpleNamespace(paths={}, add_packages=lambda: None)
    monkeypatch.setattr("autograder.course.release.student_files.StudentFiles", lambda *_: files)
    for name in ("leaks.find_leaks", "secret_texts.project_secrets", "leaks.site_materials"):
        monkeypatch.setattr(f"autograder.course.release.{name}", lambda *_: [])
    return done


BUILT = "book/_build/html"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chapters/04_attention/exercises.md", "# Other exercises"),
        ("book/page.md", "# A page"),
        ("_config.yml", "title: Another course"),
        (f"{BUILT}/index.html", "<p>other</p>"),
        (".cache/artifacts/site-*", "{"),
        (BUILT, None),
        (".cache", None),
    ],
)
def test_each_kind_of_input_makes_it_build_again(
    builds: list[Path], project: Path, run: Callable[..., Result], name: str, text: str | None
) -> None:
    run("build")
    if text is None:
        shutil.rmtree(project / name)
    else:
        (project / name).parent.mkdir(exist_ok=True)
        next(project.glob(name), project / name).write_text(text)
    assert [run("build").exit_code for _ in range(2)] == [0, 0]
    assert len(builds) == 2


@pytest.mark.parametrize(
    ("commands", "number"),
    [
        (["build", "build"], 1),
        (["build", "build --output {out}", "build --output {out} --offer 04"], 3),
        (["build", "build --chapters 04", "build --chapters 4"], 2),
        # A site inside the project is no input.
        (["build --output public", "build --output public"], 1),
        (["build", "another package", "build"], 2),
    ],
)
def test_other_options_and_packages_make_another_site_and_the_same_ones_none(
    builds: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., Result],
    commands: list[str],
    number: int,
) -> None:
    for command in commands:
        if command == "another package":
            monkeypatch.setattr(unchanged, "environment_hash", lambda: "other")
            continue
        done = run(*command.format(out=tmp_path / "elsewhere").split())
        assert done.exit_code == 0
        assert "4,826 words" in done.output
    assert len(builds) == number
    assert ("unchanged" in done.output) is (number < len(commands) and "another package" not in commands)


def test_chapters_that_the_site_cannot_have_are_refused(
    builds: list[Path], project: Path, run: Callable[..., Result]
) -> None:
    (project / "chapters" / "05_more").mkdir()
    (project / "chapters" / "05_more" / "exercises.md").write_text("# Exercises\n")
    for arguments in (["--chapters", "04-06"], ["--chapters", "05-04"], ["--chapters", "04", "--offer", "05"]):
        result = run("build", *arguments)
        assert result.exit_code == 2, arguments
    assert "--chapters" in result.output
    assert builds == []


def test_courses_and_generated_folders_are_no_input(tmp_path: Path) -> None:
    for name in (
        "a.py",
        "course/nbgrader_config.py",
        "course/x.ipynb",
        "book/_build/p.html",
        ".cache/k",
        "m/__pycache__/m.pyc",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert [path.name for path in content_hash.project_files(tmp_path)] == ["a.py"]


def test_hash_tells_a_moved_line_from_another_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo")
    (tmp_path / "b").write_text("")
    before = content_hash.hash_tree(tmp_path)
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("two")
    assert content_hash.hash_tree(tmp_path) != before
