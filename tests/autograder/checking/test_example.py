"""What an example shows of a question that was missed."""

import math
import re

import pytest
import torch

from autograder.checking.example import describe_wrong_answer
from autograder.checking.request import Observation, Request, flatten_outputs

LOGITS = torch.arange(1.0, 45.0).reshape(4, 11) / 4


def shown(mine, theirs, *, judge="matches", action="call", options=None, init=None, **arguments):
    """The example for one question with these two answers."""
    observed = [[Observation(outputs=flatten_outputs(value))] for value in (mine, theirs)]
    return describe_wrong_answer(judge, [Request(action, arguments, init=init)], *observed, options or {})


def sides(text):
    """The two lines of an example, without what they are called."""
    found = [re.search(rf"^  {word} +(.*)$", text, re.MULTILINE) for word in ("yours", "expected")]
    return [match[1] for match in found if match]


def test_the_first_wrong_row_is_shown_with_its_input():
    wrong = LOGITS * 2
    wrong[2, 9] = 0.125
    wrong[3, 0] = 7
    assert shown(wrong, LOGITS * 2, logits=LOGITS, k=3) == (
        "for logits = a tensor (4, 11), k = 3: the result at [2, 5:11]\n"
        "  logits[2]  …  7  7.25  7.5  7.75      8  8.25\n"
        "  yours      … 14  14.5   15  15.5  0.125  16.5\n"
        "  expected   … 14  14.5   15  15.5     16  16.5\n"
        "                                    ^^^^^"
    )


def test_long_rows_are_cut_around_the_difference():
    wrong = LOGITS.clone()
    wrong[1, 4] = -math.inf
    text = shown(wrong, LOGITS, logits=LOGITS)
    assert text.splitlines()[0] == "for logits = a tensor (4, 11): the result at [1, 1:7]"
    assert sides(text) == [
        "… 3.25  3.5  3.75  -inf  4.25  4.5 …",
        "… 3.25  3.5  3.75     4  4.25  4.5 …",
    ]
    marks = text.splitlines()[-1]
    at = text.splitlines()[2].index("-inf")
    assert marks == " " * at + "^^^^"
    assert text.splitlines()[1] == "  logits[1]  … 3.25  3.5  3.75     4  4.25  4.5 …"


def test_inputs_with_the_same_leading_axes_are_shown():
    ids, table = torch.arange(20).reshape(4, 5), torch.ones(7, 3)
    x = torch.arange(60.0).reshape(4, 5, 3)
    wrong = x.clone()
    wrong[3, 1, 0] = 5
    text = shown(wrong, x, ids=ids, table=table, x=x.half())
    assert "of float16" in text.splitlines()[0]
    assert "of int64" in text.splitlines()[0]
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["ids[3,", "1]", "16"],
        ["x[3,", "1]", "48", "49", "50"],
        ["yours", "5", "49", "50"],
        ["expected", "48", "49", "50"],
        ["^^"],
    ]


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (LOGITS + 1e-4 * LOGITS.abs() + 1e-4, LOGITS),
        (LOGITS.double() + 1e-8, LOGITS.double()),
        (LOGITS.long(), LOGITS.long() + 1),
        (LOGITS > 3, LOGITS > 4),
        (LOGITS.masked_fill(LOGITS > 5, math.inf), LOGITS),
        (LOGITS.masked_fill(LOGITS > 5, math.nan), LOGITS),
        (torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8, 10]),
        (["a", "b", "c", "d", "e"], ["a", "b", "c", "d", "f"]),
        ([0.5] * 9, [0.5] * 8 + [0.50001]),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5.0]),
        (list("abcdef"), list("abcdefg")),
        (list("abcdefg"), list("abc")),
    ],
)
def test_the_two_sides_never_read_the_same(mine, theirs):
    one, other = sides(shown(mine, theirs, x=LOGITS))
    assert one != other


def test_the_wrong_one_of_several_results_is_named():
    wrong = LOGITS.clone()
    wrong[0, 0] = 9
    assert "result[1][0] at [0, 0:6]" in shown((LOGITS, (wrong, 1)), (LOGITS, (LOGITS, 1)))
    assert "result['b'] at [0, 0:6]" in shown({"a": LOGITS, "b": wrong}, {"a": LOGITS, "b": LOGITS})
    fields = {"fields": {"output[0]": "flops", "output[1]": "bytes"}}
    assert shown((1, 2400), (1, 4800), options=fields, T=3) == "for T = 3: result.bytes is 2400, expected 4800"
    part = {"outputs": ["output[1]"]}
    assert "result[1] at" in shown((wrong, wrong), (LOGITS, LOGITS), judge="matches_part", options=part)


def test_lists_within_a_result_are_shown_around_their_difference():
    text = shown([([3, 4, 5], 0.5), ([3], 0.25)], [([3, 5], 0.5), ([3], 0.25)], beams=2)
    assert text.splitlines() == [
        "for beams = 2: result[0][0]",
        "  yours     3  4      5",
        "  expected  3  5  (end)",
        "               ^  ^^^^^",
    ]
    text = shown((torch.arange(9), torch.arange(3)), (torch.arange(9), torch.arange(4)), n=1)
    assert text.splitlines()[0] == "for n = 1: result[1]"
    assert sides(text) == ["0  1  2  (end)", "0  1  2      3"]


REFUSED, ANSWERED = Observation(error="ValueError: k"), Observation(outputs={"output": 3})
OTHER = Observation(error="IndexError: oh")


@pytest.mark.parametrize(
    ("mine", "theirs", "end"),
    [
        (3.5, 4.5, "for k = 0: the result is 3.5, expected 4.5"),
        ("left", "right", "'left', expected 'right'"),
        (LOGITS[:2], LOGITS, "shape (2, 11), expected (4, 11)"),
        (None, LOGITS, "the result is None, expected a tensor of shape (4, 11)"),
        ((1, 2, 3), (1, 2), "3 items, expected 2 items"),
        (LOGITS, LOGITS, ""),
    ],
)
def test_what_has_no_rows_is_told_in_a_line(mine, theirs, end):
    text = shown(mine, theirs, k=0)
    assert text.endswith(end)
    assert bool(text) is bool(end)


def test_arguments_of_the_constructor_are_told_and_so_is_that_there_are_none():
    assert shown("left", "right", init={"n": 2}).startswith("for n = 2: ")
    assert shown(1, 2).startswith("without arguments: ")
    assert shown(LOGITS.double(), LOGITS, judge="shapes").endswith("dtype float64, expected float32")


@pytest.mark.parametrize(
    ("mine", "theirs", "text"),
    [
        (ANSWERED, REFUSED, "for k = 0: no error was raised, expected a ValueError"),
        (OTHER, REFUSED, "for k = 0: it raised IndexError, expected a ValueError"),
        (OTHER, ANSWERED, "for k = 0: it raised IndexError, expected a result"),
        (Observation(error="NotImplementedError", unfinished=True), ANSWERED, ""),
        (ANSWERED, Observation(outputs={"output": 4}), ""),
    ],
)
def test_an_error_shows_what_it_was_raised_for(mine, theirs, text):
    assert describe_wrong_answer("answers", [Request("call", {"k": 0})], [mine], [theirs], {}) == text
