"""Chapters are found by what people type."""

import pytest

from autograder.course.chapter_names import matching_chapters, suggest_chapter

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
    assert suggest_chapter("scaled_dot_prodcut", KNOWN) == " Did you mean 03_scaled_dot_product?"
    assert suggest_chapter("recurent", KNOWN) == " Did you mean 01_recurrent?"
    assert suggest_chapter("gtp", KNOWN) == " Did you mean 09_gpt?"
    assert suggest_chapter("zzz", KNOWN) == ""
    assert suggest_chapter("77", KNOWN) == ""


OWN = ["HW-1", "HW1", "HW10", "Lab 1 (warm-up)", "01_recurrent"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("HW-1", ["HW-1"]),
        ("HW1", ["HW1"]),
        ("hw1", ["HW1"]),
        ("hw_1", ["HW-1"]),
        ("HW10", ["HW10"]),
        ("HW", ["HW-1", "HW1", "HW10"]),
        ("Lab 1 (warm-up)", ["Lab 1 (warm-up)"]),
        ("lab 1", ["Lab 1 (warm-up)"]),
        ("1", ["01_recurrent"]),
    ],
)
def test_an_assignment_of_ones_own_is_found_by_its_exact_name_first(typed, expected):
    assert matching_chapters(typed, OWN) == expected


def test_a_misspelled_assignment_of_ones_own_gets_a_suggestion():
    assert suggest_chapter("Lab 1 warmup", OWN) == " Did you mean Lab 1 (warm-up)?"
