"""The check of ``beam_search``: the best of K texts at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.written_texts import Prop, built, random_table
from autograder.checks.combined_rows import also_asking
from autograder.mistakes.mistake_file import MistakeFile
from tfcourse import decoding
from tfcourse.data import EOS

Results = list[tuple[float, list[int]]]

MISTAKES = MistakeFile(Path(__file__).with_suffix(".toml"), decoding.beam_search)
# Known mistakes that every search with more than one beam is to show.
IN_EVERY_BEAM = (
    "K copies at the beginning",
    "ended texts keep their place",
    "stops at the first end",
    "best of each text only",
    "texts mixed up",
    "ends beyond the first K set aside",
    "only K continuations looked at",
)
HASTE = "always stops early"


def _case(
    draw: Draw,
    *shown: str,
    hidden: str = "",
    also: Callable[[Results], bool] = lambda results: True,
    table: Callable[[Draw], Prop] = random_table,
    **options: Any,
) -> Case:
    """A table with which some known mistakes find other texts, and one that is to be hidden does not, drawn until that is so."""
    mistakes = {item.name: item.implementation for item in MISTAKES if item.name in (*shown, hidden)}
    while True:
        prop = table(draw)
        arguments = {"prompt": draw.integers(3, 7, 1, 2), "beam_width": 3, "max_new_tokens": 6, **options}
        results: Results = decoding.beam_search(built(prop), **arguments)
        apart = all(a - b > 1e-3 for (a, _), (b, _) in pairwise(results))
        if not apart or not also(results):
            continue
        others = (
            name
            for name, wrong in mistakes.items()
            if (_of(wrong(built(prop), **arguments)) == _of(results)) != (name == hidden)
        )
        if not any(others):
            return Case(arguments, props={"model": prop})


def _of(results: Results) -> list[list[int]]:
    return [tokens for _, tokens in results]


def _all_ended(results: Results) -> bool:
    return all(tokens[-1] == EOS for tokens in _of(results)) and max(map(len, _of(results))) < 6


def wide(draw: Draw) -> Case:
    """Three texts, all of which end before the limit."""
    return _case(draw, *IN_EVERY_BEAM, hidden=HASTE, also=_all_ended)


def narrow(draw: Draw) -> Case:
    """A beam of one, in which the text ends before the limit, after two tokens at least."""
    return _case(draw, hidden=HASTE, also=lambda results: _all_ended(results) and len(results[0][1]) > 1, beam_width=1)


def penalised(draw: Draw) -> Case:
    """The length penalty changes which texts are found, and their order."""
    shown = ("penalty not used", "penalty on running texts too", "order of the plain sums")
    return _case(draw, *shown, "ends beyond the first K set aside", also=_all_ended, alpha=0.8)


def patient(draw: Draw) -> Case:
    """When K texts have ended, one that still runs is better than one of them."""
    return _case(draw, *IN_EVERY_BEAM, HASTE, also=_all_ended, alpha=0.4)


def resigned(draw: Draw) -> Case:
    """The search stops although a longer text would have had a better score in the end."""
    return _case(draw, "never stops", also=_all_ended, alpha=1.0)


def stopped_early(draw: Draw) -> Case:
    """Stopping as soon as there are K texts gives others."""
    return _case(draw, *IN_EVERY_BEAM, "early stopping not used", also=_all_ended, early_stopping=True)


def cut_off(draw: Draw) -> Case:
    """At the limit, unfinished texts compete with finished ones."""
    return _case(draw, *IN_EVERY_BEAM, "open texts left out at the limit", hidden=HASTE, max_new_tokens=4)


def another_end(draw: Draw) -> Case:
    """Another token ends a text."""

    def table(draw: Draw) -> Prop:
        return random_table(draw, eos=5)

    return _case(
        draw,
        "ends beyond the first K set aside",
        hidden=HASTE,
        also=lambda results: 1 < len(results[0][1]) < 6,
        table=table,
        beam_width=1,
        eos=5,
    )


def wider_than_the_vocabulary(draw: Draw) -> Case:
    """At first there are fewer continuations than the beam may hold."""
    return _case(draw, beam_width=9, max_new_tokens=2)


def few_possible(draw: Draw) -> Case:
    """After each token two tokens are possible, one of which ends the text."""

    def table(draw: Draw) -> Prop:
        prop = random_table(draw)
        logits = prop["state"]["logits"]
        possible = torch.zeros_like(logits, dtype=torch.bool)
        possible[:, :, EOS] = True
        for position in range(len(logits)):
            possible[position, torch.arange(7), 3 + draw.integers(0, 4, 7)] = True
        prop["state"]["logits"] = logits.masked_fill(~possible, float("-inf"))
        return prop

    return _case(draw, table=table, beam_width=5, max_new_tokens=3)


def one_token(draw: Draw) -> Case:
    """The best K tokens, ended or not."""
    return _case(draw, max_new_tokens=1)


def no_token(draw: Draw) -> Case:
    """No token to write."""
    return narrow(draw).with_arguments(max_new_tokens=0)


def without_batch(draw: Draw) -> Case:
    """A prompt that is no batch of one."""
    return narrow(draw).with_arguments(prompt=draw.integers(3, 7, 2))


def no_beam(draw: Draw) -> Case:
    """A beam of nothing."""
    return narrow(draw).with_arguments(beam_width=0)


def two_prompts(draw: Draw) -> Case:
    """More than one prompt."""
    return narrow(draw).with_arguments(prompt=draw.integers(3, 7, 2, 2))


def _numbers(points: float, *makers: rows.Maker, name: str, title: str) -> rows.Row:
    return rows.numbers(points, *makers, name=name, title=title, gradients=False)


def any_beam(draw: Draw) -> Case:
    """A beam of any width over a small vocabulary, without a length penalty."""
    width, steps = int(draw.integers(1, 6)), int(draw.integers(1, 6))
    return _case(draw, hidden=HASTE, beam_width=width, max_new_tokens=steps)


BEAM_SEARCH = Exercise(
    reference=decoding.beam_search,
    rows=(
        _numbers(
            5.75,
            wide,
            wide,
            narrow,
            name="values",
            title="The most probable texts are found, with their scores, best first.",
        ),
        _numbers(
            3.5,
            penalised,
            patient,
            resigned,
            name="penalty",
            title="The length penalty divides the score of a text that has ended.",
        ),
        _numbers(2, stopped_early, name="early", title="With early_stopping it ends as soon as K texts have."),
        _numbers(1.25, cut_off, name="limit", title="At the limit, texts that have not ended compete as well."),
        also_asking(
            rows.edge(
                0.75,
                another_end,
                wider_than_the_vocabulary,
                few_possible,
                one_token,
                name="edges",
                title="Another token may end a text, the beam may be wider than the number of texts, and many random beams are right.",
                gradients=False,
                dtypes=(),
            ),
            rows.many(0, any_beam, count=16, title=""),
        ),
        rows.errors(
            0.75,
            narrow,
            no_beam,
            no_token,
            two_prompts,
            without_batch,
            title="A prompt that is not (1, T), a beam of nothing, and no token to write, are a ValueError.",
        ),
    ),
)
