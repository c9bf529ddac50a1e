"""Reading written answers and putting them in order."""

import tracemalloc
from dataclasses import replace
from unittest.mock import patch

from autograder.marking import graded_notebooks
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.ordering import group_identical, order_by_similarity
from autograder.marking.questions import unreadable_notebooks

from .conftest import CHAPTER, CODE, QUESTION


def test_unreadable_notebooks_are_named(course):
    reader = ChapterReader(course, CHAPTER)
    assert unreadable_notebooks(reader.questions()) == []
    (course.folder("autograded", "bob", CHAPTER) / f"{CHAPTER}.ipynb").unlink()
    (course.folder("autograded", "dan", CHAPTER) / f"{CHAPTER}.ipynb").write_text("{", encoding="utf-8")
    chapter = reader.questions()
    question = chapter[-1]
    assert [answer.student for answer in question.answers] == ["ada", "cyd", "eve"]
    assert (question.blanks, question.unreadable) == (1, ("bob", "dan"))
    assert unreadable_notebooks(chapter) == ["bob", "dan"]


def test_an_answer_that_waits_is_not_grouped_with_a_marked_one(course):
    ada, *others = ChapterReader(course, CHAPTER).question(QUESTION).answers
    marked = replace(ada, state=replace(ada.state, waiting=False, points=2.0))
    groups = group_identical([marked, *others])
    assert [[answer.student for answer in group] for group in groups] == [["ada"], ["cyd"], ["eve"], ["bob"]]
    again = [replace(answer, state=marked.state) for answer in (marked, *others)]
    assert ["ada", "cyd"] in [[answer.student for answer in group] for group in group_identical(again)]


def test_similar_texts_become_neighbours():
    texts = [
        "cats chase the mice",
        "a proof by induction over n",
        "mice fear cats",
        "its proof takes an induction step",
    ]
    order = order_by_similarity(texts)
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1


def test_texts_without_words_keep_an_order():
    assert sorted(order_by_similarity(["", "?!", "…"])) == [0, 1, 2]
    assert order_by_similarity([]) == []


def test_a_huge_answer_takes_little_memory() -> None:
    """Every distinct word is a column for all answers: 1.4 MB of words took 5 GB in a class of 800."""
    words = " ".join(f"{number:x}" for number in range(200_000))
    tracemalloc.start()
    try:
        assert order_by_similarity([*["the scores grow"] * 20, words])[0] == 20
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_a_graded_notebook_is_read_again_only_after_it_has_changed(course):
    reader = ChapterReader(course, CHAPTER)
    path = course.folder("autograded", "bob", CHAPTER) / f"{CHAPTER}.ipynb"
    with patch.object(graded_notebooks, "named_cells", wraps=graded_notebooks.named_cells) as read:
        first = reader.questions()
        assert reader.questions() == first
        assert read.call_count == len(CODE)
        path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        assert reader.questions() == first
        assert [call.args for call in read.call_args_list[len(CODE) :]] == [(path,)]
