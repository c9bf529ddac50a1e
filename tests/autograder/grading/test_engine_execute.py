"""Inside nbgrader the engine runs submissions: what calls itself the course's own and is not never runs where the reference is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.utils import determine_grade
from traitlets.config import Config

from autograder.engine.interface import Execution, Submission
from autograder.engine.sandbox import isolation
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading import nbgrader_execute
from autograder.grading.nbgrader_execute import EngineExecute, GraderError, get_worker
from autograder.intake.notebook.problem import read_problems

from .conftest import mark

CHAPTER = "any"
LIMITS = {"exercise_seconds": 2, "memory_mb": 700, "seed": 11}
CANARY = "try:\n    open({path!r}, 'w').close()\nexcept OSError:\n    pass"
TEST = "assert f(1) == 2"


@dataclass(frozen=True)
class Place:
    """A course, what its own cells are, and a file that only code outside of the sandbox can write."""

    root: Path
    canary: Path

    @property
    def poison(self) -> str:
        """Code that writes the file."""
        return CANARY.format(path=str(self.canary))

    @property
    def resources(self) -> dict[str, Any]:
        """What nbgrader says about a submission."""
        db_url = f"sqlite:///{self.root / 'gradebook.db'}"
        about = {"student": "ann", "assignment": CHAPTER, "notebook": CHAPTER, "db_url": db_url}
        return {"nbgrader": about, "metadata": {"name": CHAPTER, "path": str(self.root / "submitted")}}

    def engine(self, **limits: Any) -> EngineExecute:
        """Return the preprocessor as a course's configuration makes it."""
        config = Config()
        config.CourseDirectory.root = str(self.root)
        config.GradingLimits.update(LIMITS | limits)
        return EngineExecute(config=config)

    def run(self, *cells: Any, **limits: Any) -> Any:
        """Run cells as nbgrader would, and return the notebook."""
        made = new_notebook(cells=list(cells))
        self.engine(**limits).preprocess(made, self.resources)
        return made


@pytest.fixture(scope="module")
def _workers_end() -> Iterator[None]:
    """End the workers that this module has started."""
    yield
    while nbgrader_execute._workers:
        nbgrader_execute._workers.popitem()[1].close()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, _workers_end: None) -> Place:
    """A course whose gradebook knows three cells."""
    root = tmp_path_factory.mktemp("course")
    (root / "submitted").mkdir()
    place = Place(root, root / "canary")
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment(CHAPTER)
        gradebook.add_notebook(CHAPTER, CHAPTER)
        for name, source, locked in (
            ("setup", place.poison, True),
            ("test_f", TEST, True),
            ("f", place.poison, False),
        ):
            gradebook.add_source_cell(name, CHAPTER, CHAPTER, cell_type="code", source=source, locked=locked)
    return place


@pytest.fixture
def place(kept: Place) -> Iterator[Place]:
    yield kept
    kept.canary.unlink(missing_ok=True)


def own(source: str, name: str, **flags: Any) -> Any:
    return new_code_cell(source, metadata=mark(name, locked=True, **flags))


def test_cell(source: str, name: str) -> Any:
    return own(source, name, grade=True, points=3.0)


test_cell.__test__ = False  # type: ignore[attr-defined]


def solution() -> Any:
    return new_code_cell("def f(x): return 2 * x", metadata=mark("f", solution=True))


def test_no_cell_of_a_submission_runs_outside_of_the_sandbox_and_foreign_tests_give_no_points(place: Place) -> None:
    exec(place.poison)  # the file can be written from here
    place.canary.unlink()
    text = new_markdown_cell("# Title", metadata=mark("prompt", locked=True))
    foreign = [test_cell("3.0", "test_g"), test_cell("pass", "test_h")]
    made = place.run(own(place.poison, "setup"), text, solution(), test_cell(TEST, "test_f"), *foreign)
    assert not place.canary.exists()
    assert [determine_grade(cell)[0] for cell in made.cells[3:]] == [3, 0, 0]
    assert made.cells[1].metadata["nbgrader"]["grade_id"] == "prompt"


@pytest.mark.parametrize(("more", "notebook"), [(" ", CHAPTER), ("", "extra")], ids=["one character more", "unknown"])
def test_a_cell_that_is_not_the_gradebooks_is_foreign(place: Place, more: str, notebook: str) -> None:
    made = new_notebook(cells=[own(place.poison + more, "setup"), solution(), test_cell(TEST + more, "test_f")])
    resources = place.resources
    resources["nbgrader"]["notebook"] = notebook
    place.engine().preprocess(made, resources)
    assert not place.canary.exists()
    assert determine_grade(made.cells[2]) == (0, 3)


def test_submissions_share_a_worker_with_limits_and_the_files_beside_them(place: Place) -> None:
    data = place.root / "submitted" / "data.txt"
    data.write_text("content")
    beside = place.run(new_code_cell("print(open('data.txt').read())"))
    data.unlink()
    assert beside.cells[0].outputs[0].text == "content\n"
    (worker,) = nbgrader_execute._workers.values()
    number = worker._process.pid  # type: ignore[attr-defined]
    slow = place.run(new_code_cell("import time\ndef f(x): time.sleep(1000)"), test_cell(TEST, "test_f"))
    assert [problem.kind for problem in read_problems(slow)] == ["timeout"]
    assert list(nbgrader_execute._workers.values()) == [worker]
    assert worker._process.pid == number  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "graded"),
    [("unknown", False), ("unknown", True), ("test_f", False), ("test_f", True), ("f", False), ("f", True)],
    ids=lambda value: str(value),
)
def test_a_cell_that_only_says_that_it_is_the_courses_own_runs_with_the_student(
    place: Place, name: str, graded: bool
) -> None:
    cell = test_cell(place.poison, name) if graded else own(place.poison, name)
    before = dict(cell.metadata["nbgrader"])
    made = place.run(cell, new_code_cell("1"))
    assert not place.canary.exists()
    assert made.cells[0].metadata["nbgrader"] == before
    assert made.cells[1].outputs[0].data == {"text/plain": "1"}
    if graded:
        assert determine_grade(made.cells[0]) == (0, 3)
        assert made.cells[0].outputs[0].output_type == "error"


def test_a_notebook_is_run_also_where_nbgrader_was_told_to_run_none(place: Place) -> None:
    engine = place.engine()
    engine.enabled = False
    made, _ = engine(new_notebook(cells=[test_cell(TEST, "test_f")]), place.resources)
    assert determine_grade(made.cells[0]) == (0, 3)


class Still:
    """An executor that runs nothing."""

    def __init__(self, settings: GradingSettings, execution: Execution | None = None) -> None:
        self.settings = settings
        self.closed = 0
        self.given: list[Submission] = []
        self._execution = execution

    def grade_one(self, submission: Submission) -> Execution:
        """Give back what was handed in."""
        self.given.append(submission)
        return self._execution or Execution(submission.student, submission.notebook, 0.0)

    def close(self) -> None:
        """Count."""
        self.closed += 1


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run nothing, and know of no worker."""
    monkeypatch.setattr(nbgrader_execute, "_workers", {})
    monkeypatch.setattr(nbgrader_execute, "create_executor", Still)


@pytest.mark.usefixtures("still")
def test_other_settings_and_other_processes_have_other_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    one: Any = get_worker(GradingSettings())
    assert get_worker(GradingSettings()) is one
    other: Any = get_worker(GradingSettings(seed=1))
    assert other is not one
    assert (one.closed, other.closed) == (1, 0)
    monkeypatch.setattr(nbgrader_execute.os, "getpid", lambda: -1)
    assert get_worker(GradingSettings(seed=1)) is not other, "a fork does not take its parent's worker"
    assert other.closed == 0


@pytest.mark.usefixtures("still")
def test_a_worker_runs_what_the_configuration_says(kept: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFCOURSE_DEVICE", "cpu")
    wheel = kept.root / "student" / CHAPTER / "course-1-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    wheel.write_bytes(b"")
    monkeypatch.setattr(isolation, "available_layers", lambda: ("one layer",))
    kept.run(new_code_cell("1"), processes=9, allow_weaker=True)
    wheel.unlink()
    (worker,) = nbgrader_execute._workers.values()
    expected = GradingSettings(
        **LIMITS, processes=9, allow_weaker=True, isolation="none", device="cpu", package=str(wheel)
    )
    given: GradingSettings = worker.settings  # type: ignore[attr-defined]
    # A cell's time is nbgrader's own setting where the course names none.
    assert given == replace(expected, cell_seconds=given.cell_seconds)


@pytest.mark.usefixtures("still")
def test_without_a_seed_of_the_configuration_the_courses_secret_one_is_taken(kept: Place) -> None:
    seeds = set()
    for _ in range(2):
        kept.run(new_code_cell("1"), seed=None)
        (worker,) = nbgrader_execute._workers.values()
        seeds.add(worker.settings.seed)  # type: ignore[attr-defined]
    assert len(seeds) == 1
    assert seeds.isdisjoint({None, 0, LIMITS["seed"]})


@pytest.mark.usefixtures("still")
def test_a_machine_that_offers_less_isolation_than_is_asked_for_runs_nothing(
    kept: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "available_layers", lambda: ())
    with pytest.raises(CourseError, match="isolation 'sandbox' is required"):
        kept.run(new_code_cell("1"))
    assert nbgrader_execute._workers == {}


def test_a_failure_of_the_graders_is_no_grade(kept: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Still(GradingSettings(), Execution("ann", "", 0.0, "no memory"))
    monkeypatch.setattr(nbgrader_execute, "get_worker", lambda settings: failing)
    made = new_notebook(cells=[test_cell(TEST, "test_f")])
    with pytest.raises(GraderError, match="no memory"):
        kept.engine().preprocess(made, kept.resources)
    assert made.cells[0].outputs == []
