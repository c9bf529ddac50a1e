"""Pictures without words are found."""

import pytest

from autograder.site.page_body import image_faults


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<img src="a.png">', "no alternative"),
        ('<img src="a.png" alt="">', "no alternative"),
        ('<p><img src="a.png" alt="   "/></p>', "no alternative"),
        ('<img src="x" alt="../../_images/9f3c.png">', "file path"),
        ('<img src="x" alt="C:\\build\\plot">', "file path"),
        ('<img src="x" alt="figure.SVG">', "file path"),
        ('<svg role="img"><path d="M0 0"/></svg>', "no alternative"),
        ('<svg role="img" aria-label=" "></svg>', "no alternative"),
    ],
)
def test_a_picture_without_words_or_with_a_path_for_words_is_a_fault(html: str, fault: str) -> None:
    (found,) = image_faults(html)
    assert fault in found


@pytest.mark.parametrize(
    "html",
    [
        '<img src="a.png" alt="Variance of the scores against the head width: a straight line">',
        '<img alt="Loss and/or accuracy" src="a.png">',
        '<svg role="img" aria-label="Weights of three heads"></svg>',
        '<svg role="img" aria-labelledby="caption"></svg>',
        '<svg aria-hidden="true"></svg>',
        "<p>no picture at all, but the text alt=''</p>",
    ],
)
def test_a_picture_with_words_is_no_fault(html: str) -> None:
    assert image_faults(html) == []
