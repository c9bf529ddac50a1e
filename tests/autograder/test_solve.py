"""Solving finds a solution that does not get full marks, a stub that gets some, and a notebook that does not run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_output

from autograder.checking.verdict import VERDICT_MIME, Finding, Verdict
from autograder.commands.selftest import solve as module
from autograder.commands.selftest.solve import resolve_devices, solve
from autograder.course.authoring.chapter import find_chapter
from autograder.course.authoring.solution_notebook import solution_notebook
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError

ROOT = Path(__file__).parents[2]
CHAPTER = "04_multi_head"
# The first exercises of the chapter: enough to see that everything is looked at, and soon done.
KEPT = ("split_heads", "merge_heads")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one chapter whose solution notebook is written, both cut down to a few exercises."""
    shutil.copytree(ROOT / "chapters" / CHAPTER, tmp_path / "chapters" / CHAPTER)
    chapter = find_chapter(tmp_path, CHAPTER)
    notebook = solution_notebook(chapter)
    notebook.cells = [cell for cell in notebook.cells if _wanted(cell)]
    path = tmp_path / "solutions" / CHAPTER / "exercises.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    return tmp_path


def _wanted(cell: Any) -> bool:
    name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
    return cell.cell_type == "code" and name.removeprefix("test_") in ("setup", *KEPT)


@pytest.fixture(autouse=True)
def _cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the stubs' notebook and the list of exercises down likewise."""
    whole, exercises = module.Chapter.notebook, module.Chapter.exercises

    def notebook(chapter: Any) -> Any:
        found = whole(chapter)
        found.cells = [cell for cell in found.cells if _wanted(cell)]
        return found

    monkeypatch.setattr(module.Chapter, "notebook", notebook)
    monkeypatch.setattr(module.Chapter, "exercises", lambda chapter: [e for e in exercises(chapter) if e.name in KEPT])


@dataclass
class Actor:
    """Stands in for the kernel: gives each test cell the verdict that was written for it."""

    solutions: float = 1.0
    stubs: float = 0.0
    error: str = ""
    failure: str = ""
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    device: str = ""

    def __call__(self, settings: GradingSettings) -> Actor:
        self.device = settings.device
        return self

    def grade_one(self, submission: Submission) -> Execution:
        notebook = nbformat.reads(submission.notebook, as_version=4)
        for cell in notebook.cells:
            name = cell.metadata.nbgrader.grade_id
            if name.startswith("test_"):
                self.seen.append((submission.student, name, cell.source))
                share = self.solutions if submission.student == "solutions" else self.stubs
                cell.outputs = [self._output(name, share)]
        return Execution(submission.student, "" if self.failure else nbformat.writes(notebook), 0.1, self.failure)

    def _output(self, name: str, share: float) -> Any:
        if self.error:
            return new_output("error", ename="NameError", evalue=self.error, traceback=[])
        findings = tuple(Finding(a, a, 2, share >= part, "seen", None) for a, part in (("values", 0.5), ("mask", 1.0)))
        verdict = Verdict(name.removeprefix("test_"), CHAPTER, findings)
        return new_output("execute_result", data={"text/plain": "0", VERDICT_MIME: verdict.to_dict()})


def test_solutions_and_stubs_are_run_by_the_graders_kernel_and_are_sound(project: Path) -> None:
    told: list[str] = []
    solved = solve(project, ["04"], progress=told.append)
    assert [(item.exercise, item.is_sound, item.error) for item in solved] == [(name, True, "") for name in KEPT]
    assert all(item.solution is not None and item.solution.score == item.solution.max_score > 0 for item in solved)
    assert all(item.stub is not None and item.stub.score == 0 for item in solved)
    assert told == [f"{CHAPTER}: solutions on cpu", f"{CHAPTER}: stubs on cpu"]


def test_both_notebooks_are_asked_the_hidden_questions_on_the_device(project: Path) -> None:
    actor = Actor()
    assert all(
        item.is_sound and item.device == "cuda" for item in solve(project, ["04"], device="cuda", make_executor=actor)
    )
    assert actor.device == "cuda"
    assert actor.seen == [
        (student, f"test_{name}", f"check({name}, hidden=True)") for student in ("solutions", "stubs") for name in KEPT
    ]


@pytest.mark.parametrize(
    ("actor", "words"),
    [
        (Actor(solutions=0.5), ("solution 2 of 4, stub 0", "mask: seen")),
        (Actor(stubs=0.5), ("solution 4 of 4, stub 2", "the stub passes values")),
        (Actor(error="name 'check' is not defined"), ("no verdict", "NameError: name 'check' is not defined")),
    ],
    ids=["solution", "stub", "error"],
)
def test_what_is_unsound_is_told_with_its_reason(project: Path, actor: Actor, words: tuple[str, ...]) -> None:
    for item in solve(project, ["04"], make_executor=actor):
        assert not item.is_sound
        assert str(item).startswith("UNSOUND")
        assert not item.to_dict()["sound"]
        for word in words:
            assert word in str(item)


def test_a_notebook_that_cannot_be_run_at_all_is_an_error_and_no_verdict(project: Path) -> None:
    with pytest.raises(CourseError, match="doctor") as caught:
        solve(project, ["04"], make_executor=Actor(failure="no kernel"))
    assert "no kernel" in str(caught.value)


def test_an_exercise_that_the_notebook_lost_is_unsound(project: Path) -> None:
    path = project / "solutions" / CHAPTER / "exercises.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "merge_heads" not in cell.metadata.nbgrader.grade_id]
    nbformat.write(notebook, path)
    lost = solve(project, ["04"], make_executor=Actor())[1]
    assert (lost.exercise, lost.is_sound, lost.solution) == ("merge_heads", False, None)
    assert "test cell" in lost.error


@pytest.mark.parametrize(("there", "wanted"), [(True, ["cpu", "cuda"]), (False, ["cpu"])])
def test_auto_means_every_device_that_is_there(monkeypatch: pytest.MonkeyPatch, there: bool, wanted: list[str]) -> None:
    monkeypatch.setattr(module, "is_cuda_available", lambda: there)
    assert resolve_devices("auto") == wanted
    assert resolve_devices("cpu") == ["cpu"]


@pytest.mark.cuda
def test_solutions_and_stubs_are_sound_on_an_accelerator(project: Path, accelerator: str) -> None:
    solved = solve(project, ["04"], device=accelerator)
    assert [(item.exercise, item.device, item.is_sound) for item in solved] == [
        (name, accelerator, True) for name in KEPT
    ]
