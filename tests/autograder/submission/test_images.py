"""Images have a limit of pixels and frames, which is read from their headers and counts for a notebook."""

from __future__ import annotations

import base64
import io
import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.grading.feedback.markup import NotebookTexts
from autograder.grading.feedback.safe_notebook import SafeNotebook
from autograder.intake.notebook.images import (
    MAX_FRAMES,
    MAX_PIXELS,
    PixelLimit,
    count_pixels,
    image_base64,
    safe_images,
)
from autograder.intake.notebook.notebook_reader import read_notebook

from .pictures import jpeg, png

LARGE = 5_000, 3_000


def counted(kind: str, image: str) -> int | None:
    return count_pixels(kind, base64.b64decode(image))


def test_the_header_says_how_many_pixels_there_are() -> None:
    assert counted("image/png", png(30_000, 20_000)) == 600_000_000
    assert counted("image/png", png(10, 20, frames=5)) == 1_000
    for kind in (0xC0, 0xC1, 0xC2):
        assert counted("image/jpeg", jpeg(300, 20, kind=kind)) == 6_000


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_real_images_have_as_many_pixels_as_pillow_says(form: str) -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (37, 41))
    for options in ({}, {"progressive": True, "quality": 100}, {"comment": b"\xff\xc0\0\x0b\x08\xff\xff\xff\xff"}):
        file = io.BytesIO()
        image.save(file, form, **options)
        assert count_pixels(f"image/{form.lower()}", file.getvalue()) == 37 * 41


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"\xff\xd8" + b"\xff" * 1_000_000])
def test_what_has_no_header_has_no_pixels(data: bytes) -> None:
    assert count_pixels("image/png", data) is None
    assert count_pixels("image/jpeg", data) is None


def test_an_image_of_very_many_frames_or_none_is_refused() -> None:
    assert counted("image/png", png(1, 1, frames=MAX_FRAMES)) == MAX_FRAMES
    assert counted("image/png", png(1, 1, frames=MAX_FRAMES + 1)) is None
    assert counted("image/png", png(0, 1)) is None


def test_the_limit_counts_for_all_images_together() -> None:
    limit = PixelLimit()
    assert image_base64("image/png", png(*LARGE), limit)
    assert not image_base64("image/png", png(*LARGE), limit)
    assert image_base64("image/jpeg", jpeg(100, 100), limit)
    assert limit.refused == 1
    forms = {name: {"image/png": png(*LARGE)} for name in "abc"}
    assert list(safe_images(forms)) == ["a"]
    assert 2 * LARGE[0] * LARGE[1] > MAX_PIXELS


def test_a_page_shows_no_more_pixels_of_a_notebook_than_the_limit() -> None:
    texts = NotebookTexts()
    shown = [texts.markdown("![x](attachment:x)", {"x": {"image/png": png(*LARGE)}}) for _ in range(3)]
    assert ["<img" in html for html in shown] == [True, False, False]
    figure = new_output("display_data", data={"image/png": png(*LARGE), "text/plain": "a figure"})
    notebook = new_notebook(cells=[new_code_cell("x", outputs=[figure]) for _ in range(3)])
    made, _ = SafeNotebook().preprocess(notebook, {})
    assert ["image/png" in cell.outputs[0].data for cell in made.cells] == [True, False, False]


def test_a_picture_stands_on_the_page_once_however_often_the_text_names_it() -> None:
    attachments = {"x": {"image/png": png(10, 10, data=100_000)}}
    shown = NotebookTexts().markdown("![x](attachment:x) " * 500, attachments)
    assert shown.count("<img") == 1
    assert shown.count("[figure: x; shown above]") == 499


def test_a_large_picture_takes_no_room_from_the_texts() -> None:
    texts = NotebookTexts()
    attachments = {"x": {"image/png": png(10, 10, data=2_000_000)}}
    assert "<img" in texts.markdown("![x](attachment:x)", attachments)
    assert texts.markdown("It is **wide**.") == "<p>It is <strong>wide</strong>.</p>\n"


def test_what_is_left_out_of_a_submission_is_told() -> None:
    cells = [
        new_markdown_cell("![x](attachment:x)", attachments={"x": {"image/png": png(*LARGE)}}),
        new_markdown_cell("![y](attachment:y)", attachments={"y": {"image/png": png(30_000, 20_000)}}),
    ]
    notebook, problems = read_notebook(json.dumps(new_notebook(cells=cells)).encode())
    assert ["attachments" in cell and bool(cell.attachments) for cell in notebook.cells] == [True, False]
    assert [problem.where for problem in problems] == ["cell 2"]
