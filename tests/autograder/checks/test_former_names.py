"""A submission that uses the former name of an argument is judged like one that uses the present name."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

import pytest

from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise
from autograder.checking.former_names import as_declared
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises

# The exercises whose size of a vocabulary was called `vocabulary` up to version 0.3.
RENAMED = (
    "NeuralProbabilisticLM",
    "Seq2Seq",
    "BidirectionalEncoder",
    "AttentionDecoder",
    "AttentionSeq2Seq",
    "ibm_model_1",
    "Transformer",
    "MaskedLanguageHead",
    "T5",
    "t5_parameters",
    "Llama",
    "llama_parameters",
)


def with_former_names(exercise: Exercise) -> Any:
    """Return the reference, defined again with the former names."""
    text = re.sub(r"\b(source_|target_)?vocab_size\b", r"\1vocabulary", inspect.getsource(exercise.reference))
    scope = dict(vars(sys.modules[exercise.reference.__module__]))
    exec(text, scope)
    return scope[exercise.name]


@pytest.mark.parametrize("name", RENAMED)
def test_a_stub_of_an_earlier_version_keeps_its_points(name: str) -> None:
    exercise = exercises()[name]
    candidate = with_former_names(exercise)
    assert any("vocabulary" in parameter for parameter in inspect.signature(candidate).parameters)
    verdict = decide(exercise.sheet(), LocalSubject(candidate))
    assert verdict.passed, str(verdict)


def test_an_argument_keeps_its_name_unless_only_the_former_one_is_declared() -> None:
    def neither(size: int) -> int:
        return size

    def both(vocabulary: list[str], vocab_size: int) -> int:
        return vocab_size

    def former(*, vocabulary: int) -> int:
        return vocabulary

    assert as_declared(neither, {"vocab_size": 3}) == {"vocab_size": 3}
    assert as_declared(both, {"vocab_size": 3, "vocabulary": []}) == {"vocab_size": 3, "vocabulary": []}
    assert as_declared(former, {"vocab_size": 3}) == {"vocabulary": 3}
