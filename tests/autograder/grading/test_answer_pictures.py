"""A picture in an answer is attached to its cell, however the student put it there, and nothing else comes with it."""

from __future__ import annotations

import base64
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from nbformat.v4 import new_markdown_cell

from autograder.intake.notebook import answer_pictures as module
from autograder.intake.notebook.answer_pictures import attach_pictures
from tests.autograder.submission.pictures import jpeg, png

PNG, OTHER, JPEG = (base64.b64decode(image) for image in (png(2, 3), png(3, 2), jpeg(4, 5)))
DATA = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission with pictures beside its notebook."""
    folder = tmp_path / "submitted" / "ada" / "03"
    (folder / "img").mkdir(parents=True)
    (folder / "figure.png").write_bytes(PNG)
    (folder / "img" / "my photo.JPG").write_bytes(JPEG)
    (folder / "page.png").write_bytes(b"<script>alert(1)</script>")
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    return folder


def attached(folder: Path, source: str, **attachments: Any) -> tuple[str, dict[str, bytes]]:
    """Return a cell's text and its pictures."""
    cell = new_markdown_cell(source)
    if attachments:
        cell["attachments"] = attachments
    attach_pictures([cell], folder)
    pictures = cell.get("attachments", {}).items()
    return cell["source"], {name: base64.b64decode(next(iter(forms.values()))) for name, forms in pictures}


@pytest.mark.parametrize(
    ("source", "text", "pictures"),
    [
        (f"See ![a plot]({DATA}).", "See ![a plot](attachment:picture-1.png).", {"picture-1.png": PNG}),
        ("![](figure.png)", "![](attachment:figure.png)", {"figure.png": PNG}),
        ('![x](./figure.png "title")', "![x](attachment:figure.png)", {"figure.png": PNG}),
        ("![](img/my%20photo.JPG)", "![](attachment:img-my-photo.JPG)", {"img-my-photo.JPG": JPEG}),
        (
            "<img src='figure.png' width=300 alt='mine' onerror='x()'>",
            "![mine](attachment:figure.png)",
            {"figure.png": PNG},
        ),
        (f'<IMG\nalt="a" SRC="{DATA}"/>', "![a](attachment:picture-1.png)", {"picture-1.png": PNG}),
    ],
)
def test_a_picture_is_attached(folder: Path, source: str, text: str, pictures: dict[str, bytes]) -> None:
    assert attached(folder, source) == (text, pictures)


@pytest.mark.parametrize(
    "source",
    [
        "![](https://example.org/figure.png)",
        "![](../../../secret.png)",
        "![](/etc/figure.png)",
        "![](link.png)",
        "![](page.png)",
        "![](missing.png)",
        "![](data:image/svg+xml;base64,PHN2Zy8+)",
        f"![](data:image/png;base64,{base64.b64encode(b'<script>').decode()})",
        "`![](figure.png)`",
        "```\n![](figure.png)\n```",
        "<img>",
        "<img src='javascript:alert(1)(2)'>",
    ],
)
def test_anything_else_stays_text(folder: Path, source: str) -> None:
    assert attached(folder, source) == (source, {})


def test_an_attached_picture_keeps_its_name(folder: Path) -> None:
    other = {"image/png": base64.b64encode(OTHER).decode()}
    text, pictures = attached(folder, "![](attachment:figure.png) ![](figure.png)", **{"figure.png": other})
    assert text == "![](attachment:figure.png) ![](attachment:other-figure.png)"
    assert pictures == {"figure.png": OTHER, "other-figure.png": PNG}


def test_all_pictures_of_a_notebook_share_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PICTURES", len(base64.b64encode(PNG)))
    text, pictures = attached(folder, f"![]({DATA}) ![](figure.png)")
    assert text == "![](attachment:picture-1.png) ![](figure.png)"
    assert pictures == {"picture-1.png": PNG}


@pytest.mark.parametrize(
    "part", ["![](", "![", "<img ", "`", "```\n", "![](x ", "<img src='", "![](data:image/png;base64,"]
)
def test_reading_takes_time_in_proportion_to_the_text(folder: Path, part: str) -> None:
    begin = process_time()
    attached(folder, part * (400_000 // len(part)))
    assert process_time() - begin < 5
