"""The check of ``greedy_search``: the likeliest token, again and again."""

from __future__ import annotations

from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.written_texts import random_table, stories, tied_table
from tfcourse import decoding


def _case(draw: Draw, *ends: int | None, steps: int, eos: int = 2, **options: Any) -> Case:
    prompt, model = stories(draw, ends, eos=eos)
    return Case({"prompt": prompt, "max_new_tokens": steps, **options}, props={"model": model})


def nobody_ends(draw: Draw) -> Case:
    """Three texts that go on to the limit."""
    return _case(draw, None, None, None, steps=5)


def some_end(draw: Draw) -> Case:
    """Texts that end at different steps, and one that does not."""
    return _case(draw, 2, None, 4, steps=6)


def all_end(draw: Draw) -> Case:
    """All texts are over before the limit."""
    return _case(draw, 1, 3, 2, steps=6)


def other_signs(draw: Draw) -> Case:
    """Another token ends a text, and another one fills it up."""
    return _case(draw, 3, 1, None, steps=4, eos=9).with_arguments(eos=9, pad=1)


def end_in_the_prompt(draw: Draw) -> Case:
    """A prompt may contain the end token; only a generated one ends a text."""
    case = _case(draw, None, 2, steps=4)
    prompt = case.arguments["prompt"].clone()
    prompt[:, 0] = 2
    return case.with_arguments(prompt=prompt)


def nothing_to_write(draw: Draw) -> Case:
    """No step at all."""
    return nobody_ends(draw).with_arguments(max_new_tokens=0)


def ties(draw: Draw) -> Case:
    """Two tokens are equally likely at each step."""
    prompt = draw.integers(3, 9, 3, 2)
    return Case({"prompt": prompt, "max_new_tokens": 4}, props={"model": tied_table(draw)})


def below_zero(draw: Draw) -> Case:
    """A negative number of tokens."""
    return nobody_ends(draw).with_arguments(max_new_tokens=-int(draw.integers(1, 4, 1)))


def any_texts(draw: Draw) -> Case:
    """One to four prompts of one to three tokens, and a small model in which any token may come next."""
    b, t = int(draw.integers(1, 5)), int(draw.integers(1, 4))
    eos, pad = (2, 0) if int(draw.integers(0, 2)) else (5, 1)
    arguments = {
        "prompt": draw.integers(0, 7, b, t),
        "max_new_tokens": int(draw.integers(0, 5)),
        "eos": eos,
        "pad": pad,
    }
    return Case(arguments, props={"model": random_table(draw, eos=eos)})


GREEDY_SEARCH = Exercise(
    reference=decoding.greedy_search,
    rows=(
        rows.numbers(
            2.5,
            nobody_ends,
            some_end,
            title="Each step takes the most probable token, and a text that has ended is padded.",
            gradients=False,
        ),
        rows.numbers(
            1.25,
            all_end,
            all_end,
            name="ends",
            title="The search stops when all texts have ended.",
            gradients=False,
        ),
        rows.numbers(0.75, other_signs, name="signs", title="End and padding may be other tokens.", gradients=False),
        rows.edge(
            0.5,
            end_in_the_prompt,
            nothing_to_write,
            ties,
            name="edges",
            title="An `eos` in the prompt ends nothing, a limit of 0 works, and ties go to the smallest token.",
            dtypes=(),
            gradients=False,
        ),
        rows.many(0.25, any_texts, count=32, title="Many small random models generate the right texts."),
        rows.inputs_kept(0.25, some_end),
        rows.errors(0.5, some_end, below_zero, title="A negative number of tokens is a ValueError."),
    ),
)
