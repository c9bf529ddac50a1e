"""The checks on an accelerator: the reference has full marks there, and what is made on the CPU has not."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
import torch

from autograder.checking.decision import collect_answers, judge_answers
from autograder.checking.exercise import Misconception
from autograder.checking.subject import LocalSubject
from autograder.checking.verdict import Verdict
from autograder.checks import exercise, exercises
from tfcourse import check

pytestmark = pytest.mark.cuda

CHAPTERS = Path(__file__).parents[2] / "chapters"
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# One exercise in four, and each that is about devices or generators by what its function takes.
SAMPLE = [
    name
    for place, (name, target) in enumerate(exercises().items())
    if place % 4 == 0 or {"device", "generator"} & set(getattr(target.reference, "__annotations__", {}))
]


def verdict_on(name: str, mistake: Misconception, device: str) -> Verdict:
    sheet = exercise(name).sheet(device=device)
    return judge_answers(sheet, collect_answers(sheet, LocalSubject(mistake.implementation)))


@pytest.mark.parametrize("name", SAMPLE)
def test_the_reference_has_full_marks_for_visible_and_hidden_questions(name: str, accelerator: str) -> None:
    target = exercise(name)
    sheet = target.sheet(hidden=True, seed=11, device=accelerator)
    verdict = judge_answers(sheet, collect_answers(sheet, LocalSubject(target.reference)))
    assert verdict.score == verdict.max_score == target.points, str(verdict)


def mistakes_about_devices() -> list[tuple[str, Misconception]]:
    """The mistakes that are about a device by their name; on the CPU only PyTorch's meta device shows them."""
    return [
        (name, mistake)
        for name, target in exercises().items()
        for mistake in target.misconceptions
        if re.search(r"on the CPU|on a fixed device", mistake.name)
    ]


MISTAKES = mistakes_about_devices()


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[f"{name}: {mistake.name}" for name, mistake in MISTAKES])
def test_what_is_made_on_the_cpu_loses_on_the_accelerator_what_it_loses_here_or_more(
    name: str, mistake: Misconception, accelerator: str
) -> None:
    there, here = (verdict_on(name, mistake, device) for device in (accelerator, "cpu"))
    for verdict in (there, here):
        assert any(
            "device" in f"{finding.aspect}: {finding.title}" for finding in verdict.findings if not finding.passed
        )
    assert there.score <= here.score


def test_other_mistakes_keep_what_they_keep_on_the_cpu(accelerator: str) -> None:
    others = [
        (name, next(item for item in target.misconceptions if (name, item) not in MISTAKES))
        for name, target in exercises().items()
        if target.misconceptions
    ][::9]  # one exercise in nine: enough to see that an accelerator changes nothing else
    scores = [[verdict_on(*other, device).score for other in others] for device in (accelerator, "cpu")]
    assert scores[0] == scores[1]


def test_a_result_that_was_brought_to_the_cpu_is_not_right(accelerator: str) -> None:
    def gelu(x: torch.Tensor) -> torch.Tensor:
        return (x * (1 + torch.erf(x / 2**0.5)) / 2).cpu()

    verdict = check(gelu, device=accelerator)
    assert [finding.aspect for finding in verdict.findings if not finding.passed and "device" in finding.aspect]


def test_what_a_lesson_says_of_devices_is_so(accelerator: str) -> None:
    cells = [
        cell
        for lesson in sorted(CHAPTERS.glob("*/lesson.md"))
        for cell in CELL.findall(lesson.read_text(encoding="utf-8"))
        if re.search(r"\bdevice=", cell) and "meta" in cell
    ]
    assert cells
    for cell in cells:
        printed = io.StringIO()
        # A mask of ten billion entries is free on the meta device alone.
        code = cell.replace('"meta"', f'"{accelerator}"').replace("100_000", "100")
        with contextlib.redirect_stdout(printed):
            exec("import torch\nfrom tfcourse import *\nfrom tfcourse.attention import *\n" + code, {})
        assert re.search(rf"mask on {accelerator}: output .* on {accelerator}", printed.getvalue())
        assert "mask on cpu: RuntimeError" in printed.getvalue()
