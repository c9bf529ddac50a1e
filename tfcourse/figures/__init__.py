"""The former name of `tfcourse.lessons.figures`, which notebooks import that students already have; it goes in 0.4."""

from tfcourse.lessons import figures
from tfcourse.lessons.figures import *  # noqa: F403

__path__ = figures.__path__
