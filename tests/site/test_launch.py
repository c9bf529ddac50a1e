"""Launch buttons point at released notebooks in a public repository, or do not exist."""

import pytest

from autograder.site.launch_links import LaunchSettings, launch_links


@pytest.mark.parametrize("value", [None, {}, {"repository": ""}, {"repository": None, "colab": True}])
def test_a_course_without_a_repository_has_no_launch_buttons(value: dict[str, object] | None) -> None:
    assert LaunchSettings.from_config(value) is None


def test_colab_opens_the_released_notebook_of_the_chapter() -> None:
    settings = LaunchSettings.from_config({"repository": "https://github.com/school/course.git", "branch": "spring/25"})
    assert settings is not None
    assert launch_links(settings, "04_multi_head") == [
        (
            "Colab",
            "https://colab.research.google.com/github/school/course/blob/spring%2F25/release/04_multi_head/04_multi_head.ipynb",
        )
    ]


def test_binder_is_offered_where_a_hub_is_named() -> None:
    settings = LaunchSettings(
        "https://github.com/school/course", notebook="nb/{chapter}.ipynb", colab=False, binder="https://mybinder.org/"
    )
    assert launch_links(settings, "04_multi_head") == [
        ("Binder", "https://mybinder.org/v2/gh/school/course/main?urlpath=lab/tree/nb/04_multi_head.ipynb")
    ]


def test_a_lesson_that_is_published_is_offered_beside_the_exercises() -> None:
    settings = LaunchSettings("https://github.com/school/course", lesson="student/{chapter}/{number}_lesson.ipynb")
    (_, exercises), (name, lesson) = launch_links(settings, "04_multi_head")
    assert exercises.endswith("/release/04_multi_head/04_multi_head.ipynb")
    assert name == "Colab, lesson"
    assert (
        lesson
        == "https://colab.research.google.com/github/school/course/blob/main/student/04_multi_head/04_lesson.ipynb"
    )


@pytest.mark.parametrize(
    "repository",
    [
        "https://gitlab.com/school/course",
        "http://github.com/school/course",
        "https://github.com/school",
        "school/course",
    ],
)
def test_a_repository_that_colab_cannot_open_is_refused_with_its_address(repository: str) -> None:
    with pytest.raises(ValueError, match=r"expected https://github.com/owner/name"):
        LaunchSettings.from_config({"repository": repository})


def test_a_misspelt_key_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"colabs.*colab"):
        LaunchSettings.from_config({"repository": "https://github.com/school/course", "colabs": True})
