"""A chapter's pages: which documents they are, and what is added to them."""

import pytest

from autograder.site.chapter_page import ChapterPage, chapter_bar, header_buttons, insert_bar

LESSON = ChapterPage("03_scaled_dot_product", "lesson")
DOCUMENTS = ["chapters/03_scaled_dot_product/exercises", "chapters/03_scaled_dot_product/lesson"]
DOWNLOADS = [("03.ipynb", "_downloads/03/03.ipynb"), ("tfcourse.whl", "_downloads/03/tfcourse.whl")]


def _up(name: str) -> str:
    return f"../../{name}"


@pytest.mark.parametrize(
    ("docname", "page"),
    [
        ("chapters/03_scaled_dot_product/lesson", LESSON),
        ("chapters/04_multi_head/exercises", ChapterPage("04_multi_head", "exercises")),
        ("chapters/04_multi_head/notes", None),
        ("book/intro", None),
        ("old/chapters/04_multi_head/lesson", None),
    ],
)
def test_lessons_and_exercises_belong_to_their_chapter_and_nothing_else_does(
    docname: str, page: ChapterPage | None
) -> None:
    assert ChapterPage.from_document(docname) == page


def test_the_bar_marks_the_page_one_is_on_links_the_other_and_saves_files() -> None:
    bar = chapter_bar(LESSON, DOCUMENTS, DOWNLOADS, link=lambda name: _up(f"{name}.html"), file=_up)
    assert '<span class="tfc-here" aria-current="page">Lesson</span>' in bar
    assert '<a href="../../chapters/03_scaled_dot_product/exercises.html">Exercises</a>' in bar
    assert 'download href="../../_downloads/03/03.ipynb"' in bar
    assert "Student package" in bar


def test_the_bar_does_not_link_a_page_that_does_not_exist() -> None:
    bar = chapter_bar(LESSON, DOCUMENTS[1:], [], link=_up, file=_up)
    assert "Exercises" not in bar


def test_addresses_are_escaped() -> None:
    bar = chapter_bar(LESSON, [], [("a&b.ipynb", 'x"y')], link=_up, file=_up)
    assert '"y' not in bar
    assert "a&amp;b.ipynb" in bar


def test_the_bar_stands_under_the_title() -> None:
    assert (
        insert_bar("<section><h1>T</h1><p>x</p><h1>U</h1>", "<nav/>") == "<section><h1>T</h1><nav/><p>x</p><h1>U</h1>"
    )
    assert insert_bar("<p>no title</p>", "<nav/>") == "<p>no title</p>"


def test_a_page_with_students_files_offers_them_instead_of_its_source() -> None:
    kept = [{"type": "javascript", "label": "fullscreen-button"}]
    launch, download, other = header_buttons(DOWNLOADS, [("Colab", "https://colab")], _up, kept)
    assert [entry["url"] for entry in launch["buttons"]] == ["https://colab"]
    assert [entry.get("url") for entry in download["buttons"]] == [
        "../../_downloads/03/03.ipynb",
        "../../_downloads/03/tfcourse.whl",
        None,
    ]
    assert other is kept[0]


def test_a_page_without_students_files_can_be_printed_and_offers_no_download() -> None:
    (button,) = header_buttons([], [], _up, [])
    assert button["javascript"] == "window.print()"
