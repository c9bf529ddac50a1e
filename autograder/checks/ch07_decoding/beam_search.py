"""The check of ``beam_search``: the best of K texts at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.written_texts import built, random_table
from tfcourse import decoding
from tfcourse.data import EOS

Results = list[tuple[float, list[int]]]


def _search(prop: dict[str, Any], arguments: dict[str, Any], **other: Any) -> Results:
    return decoding.beam_search(built(prop), **(arguments | other))


def _case(draw: Draw, matters: Callable[[dict[str, Any], dict[str, Any], Results], bool], **options: Any) -> Case:
    """A table for which something matters, drawn until it does."""
    while True:
        prop = random_table(draw, eos=options.get("eos", EOS))
        arguments = {"prompt": draw.integers(3, 7, 1, 2), "beam_width": 3, "max_new_tokens": 6, **options}
        results = _search(prop, arguments)
        apart = all(abs(a - b) > 1e-3 for (a, _), (b, _) in pairwise(results))
        if apart and matters(prop, arguments, results):
            return Case(arguments, props={"model": prop})


def _lengths(results: Results) -> list[int]:
    return [len(tokens) for _, tokens in results]


def wide(draw: Draw) -> Case:
    """Three texts of different lengths, the best of which a narrower beam does not find."""

    def matters(prop: dict[str, Any], arguments: dict[str, Any], results: Results) -> bool:
        narrow = _search(prop, arguments, beam_width=1)
        return narrow[0] != results[0] and len(set(_lengths(results))) > 1 and max(_lengths(results)) < 6

    return _case(draw, matters)


def narrow(draw: Draw) -> Case:
    """A beam of one, in which the text ends before the limit."""

    def matters(prop: dict[str, Any], arguments: dict[str, Any], results: Results) -> bool:
        return 2 <= len(results[0][1]) < 6 and _search(prop, arguments, early_stopping=True) == results

    return _case(draw, matters, beam_width=1)


def penalised(draw: Draw) -> Case:
    """The length penalty changes which texts are found, and their order."""

    def matters(prop: dict[str, Any], arguments: dict[str, Any], results: Results) -> bool:
        plain = _search(prop, arguments, alpha=0.0)
        hasty = _search(prop, arguments, early_stopping=True)
        raw = [score * len(tokens) ** arguments["alpha"] for score, tokens in results]
        others = plain[0][1] != results[0][1] and hasty != results
        return others and raw != sorted(raw, reverse=True) and max(_lengths(results)) < 6

    return _case(draw, matters, alpha=0.8)


def stopped_early(draw: Draw) -> Case:
    """Stopping as soon as there are K texts gives others."""

    def matters(prop: dict[str, Any], arguments: dict[str, Any], results: Results) -> bool:
        patient = _search(prop, arguments, early_stopping=False)
        return [tokens for _, tokens in patient] != [tokens for _, tokens in results]

    return _case(draw, matters, early_stopping=True)


def cut_off(draw: Draw) -> Case:
    """At the limit, texts that have not ended compete with those that have."""

    def matters(prop: dict[str, Any], arguments: dict[str, Any], results: Results) -> bool:
        open_ends = [tokens[-1] != EOS for _, tokens in results]
        return any(open_ends) and not all(open_ends) and open_ends[0]

    return _case(draw, matters, max_new_tokens=3)


def another_end(draw: Draw) -> Case:
    """Another token ends a text."""

    def matters(prop: dict[str, Any], arguments: dict[str, Any], results: Results) -> bool:
        hasty = _search(prop, arguments, early_stopping=True)
        return _search(prop, arguments, eos=EOS) != results and len(results[0][1]) < 6 and hasty == results

    return _case(draw, matters, eos=5, beam_width=1)


def no_beam(draw: Draw) -> Case:
    """A beam of nothing."""
    return narrow(draw).with_arguments(beam_width=0)


def two_prompts(draw: Draw) -> Case:
    """More than one prompt."""
    return narrow(draw).with_arguments(prompt=draw.integers(3, 7, 2, 2))


BEAM_SEARCH = Exercise(
    reference=decoding.beam_search,
    rows=(
        rows.numbers(
            4,
            wide,
            wide,
            wide,
            narrow,
            title="The likeliest texts are found, with their scores, best first.",
            gradients=False,
        ),
        rows.numbers(
            3.5,
            penalised,
            penalised,
            name="penalty",
            title="The length penalty divides the score of a text that has ended.",
            gradients=False,
        ),
        rows.numbers(
            2.5,
            stopped_early,
            stopped_early,
            name="early",
            title="With early_stopping it ends as soon as K texts have.",
            gradients=False,
        ),
        rows.numbers(
            2,
            cut_off,
            cut_off,
            name="limit",
            title="At the limit, texts that have not ended compete as well.",
            gradients=False,
        ),
        rows.numbers(1, another_end, name="end", title="Another token may end a text.", gradients=False),
        rows.inputs_kept(0.5, narrow),
        rows.errors(0.5, narrow, no_beam, two_prompts, title="Two prompts, and a beam of nothing, are a ValueError."),
    ),
)
