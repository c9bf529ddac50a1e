"""Wrong answers with known causes: the course's known mistakes, each in several spellings and with rounding errors."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.checking.decision import CollectedAnswers, collect_answers, judge_answers
from autograder.checking.exercise import Exercise, Misconception
from autograder.checking.request import Observation, map_value
from autograder.checking.sheet import Answers, Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.engine.checker.behaviour import collect_visible_cases, describe_answers
from autograder.engine.checker.remote_subject import pack_request
from autograder.grading.record.signatures import Signature
from autograder.marking.behaviour_groups import CodeAnswer
from autograder.mistakes.source_edits import run_source

# Nine exercises of eight chapters: a recurrent cell, masks, gradients, modules with weights, sampling, images, and half precision.
EXERCISES = (
    "rnn_cell",
    "masked_softmax",
    "scaled_dot_product_attention",
    "cosine_attention",
    "split_heads",
    "layer_norm",
    "min_p",
    "unpatchify",
    "rotary_embedding",
)


class Respelled(ast.NodeTransformer):
    """Writes the same mistake as another student might: other names, reordered products, multiplication by a reciprocal.

    Args:
        names: the local variables to rename.
        numbers: whether arithmetic is rewritten too, which changes results by rounding errors.
    """

    def __init__(self, names: frozenset[str], *, numbers: bool) -> None:
        self.names, self.numbers = names, numbers

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Rename a local variable."""
        return ast.Name(f"{node.id}_now", node.ctx) if node.id in self.names else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Turn a product around, and a quotient into a product."""
        self.generic_visit(node)
        if self.numbers and isinstance(node.op, ast.Mult):
            return ast.BinOp(node.right, ast.Mult(), node.left)
        if self.numbers and isinstance(node.op, ast.Div):
            return ast.BinOp(node.left, ast.Mult(), ast.BinOp(ast.Constant(1.0), ast.Div(), node.right))
        return node


def respelled(source: str, *, numbers: bool) -> str:
    """Return the source of a module in another spelling."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    stored = {
        node.id
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    free = {name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    new = Respelled(frozenset(stored - arguments - free), numbers=numbers).visit(tree)
    return ast.unparse(ast.fix_missing_locations(new))


def noisy(answers: Sequence[Answers], seed: int) -> list[Answers]:
    """Return answers with rounding errors: every floating-point number off by a few units in the last place."""
    generator = torch.Generator().manual_seed(seed)

    def change(value: Tensor) -> Tensor:
        if not value.is_floating_point() or value.device.type == "meta":
            return value
        error = torch.randn(value.shape, generator=generator, dtype=torch.float64) * torch.finfo(value.dtype).eps
        return (value.double() * (1 + error)).to(value.dtype)

    def changed(observation: Observation) -> Observation:
        return replace(observation, outputs=map_value(observation.outputs, change))

    return [[[changed(one) for one in probe] for probe in section] for section in answers]


class Grader:
    """Grades candidates for one exercise in this process.

    Args:
        name: the exercise.
    """

    def __init__(self, name: str) -> None:
        self.exercise: Exercise = exercise(name)
        # Without known mistakes: to name a diagnosis takes most of the time, and groups do not need it.
        self.sheet: Sheet = replace(self.exercise.sheet(), misconceptions=())

    def ask(self, candidate: Callable[..., Any]) -> CollectedAnswers:
        """Return what a candidate answers."""
        return collect_answers(self.sheet, LocalSubject(candidate))

    def answer(self, student: str, heard: CollectedAnswers, source: str = "") -> CodeAnswer:
        """Return the code answer that results and signatures would make of it."""
        verdict = judge_answers(self.sheet, heard)
        failed = [finding for finding in verdict.findings if not finding.passed]
        return CodeAnswer(
            student=student,
            exercise=self.exercise.name,
            score=verdict.score,
            max_score=verdict.max_score,
            failed_rows=tuple(finding.title for finding in failed),
            message="\n".join(dict.fromkeys(finding.message for finding in failed)),
            diagnosis=None,
            source=source,
            signature=self._signature(heard),
        )

    def _signature(self, heard: CollectedAnswers) -> Signature | None:
        if heard.refusal:
            return None
        observed: dict[bytes, Observation] = {}
        for section, answers in zip(self.sheet.sections, heard.answers, strict=True):
            for probe, observations in zip(section.probes, answers, strict=True):
                for request, observation in zip(probe.requests, observations, strict=True):
                    observed.setdefault(pack_request(request), observation)
        questions = collect_visible_cases(self.exercise.name, "cpu")
        return Signature.from_dict(describe_answers(questions, [observed[packed] for packed in questions.packed]))


def labelled_answers(name: str) -> Iterator[tuple[str, CodeAnswer]]:
    """Yield the name of a mistake and an answer that makes it, several for each mistake; answers that lose no points are left out."""
    grader = Grader(name)
    for mistake in grader.exercise.misconceptions:
        for number, (source, heard) in enumerate(_spellings(grader, mistake)):
            answer = grader.answer(f"{mistake.name} {number}", heard, source)
            if answer.score < answer.max_score:
                yield mistake.name, answer


def _spellings(grader: Grader, mistake: Misconception) -> Iterator[tuple[str, CollectedAnswers]]:
    plain = grader.ask(mistake.implementation)
    yield mistake.name, plain
    for seed in (1, 2):
        yield f"{mistake.name} noise {seed}", replace(plain, answers=noisy(plain.answers, seed))
    for numbers in (False, True):
        source = respelled(_source_of(mistake), numbers=numbers)
        file = f"{mistake.name} respelled {numbers}"
        yield source, grader.ask(run_source(source, grader.exercise.name, file))


def _source_of(mistake: Misconception) -> str:
    return "".join(linecache.getlines(str(sys.modules[mistake.implementation.__module__].__file__)))
