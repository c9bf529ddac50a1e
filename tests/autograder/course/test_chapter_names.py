"""Chapters are found by what people type."""

import pytest

from autograder.course.chapter_names import did_you_mean, matching_chapters

KNOWN = ["01_recurrent", "03_scaled_dot_product", "04_multi_head", "09_gpt", "10_t5", "13_grouped_query"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("03_scaled_dot_product", ["03_scaled_dot_product"]),
        ("03_scaled_dot_product/", ["03_scaled_dot_product"]),
        ("03", ["03_scaled_dot_product"]),
        ("3", ["03_scaled_dot_product"]),
        ("1", ["01_recurrent"]),
        ("10", ["10_t5"]),
        ("03_sc", ["03_scaled_dot_product"]),
        ("GPT", ["09_gpt"]),
        ("multi-head", ["04_multi_head"]),
        ("query", ["13_grouped_query"]),
        ("t", ["10_t5"]),
        ("0", []),
        ("", []),
        ("/", []),
        ("_", []),
        ("bert", []),
    ],
)
def test_a_text_finds_its_chapters(typed, expected):
    assert matching_chapters(typed, KNOWN) == expected


def test_an_ambiguous_word_finds_them_all():
    assert matching_chapters("multi", [*KNOWN, "05_multi_task"]) == ["04_multi_head", "05_multi_task"]


def test_a_slip_of_the_pen_is_understood_as_a_question():
    assert did_you_mean("scaled_dot_prodcut", KNOWN) == " Did you mean 03_scaled_dot_product?"
    assert did_you_mean("recurent", KNOWN) == " Did you mean 01_recurrent?"
    assert did_you_mean("gtp", KNOWN) == " Did you mean 09_gpt?"
    assert did_you_mean("zzz", KNOWN) == ""
    assert did_you_mean("77", KNOWN) == ""
