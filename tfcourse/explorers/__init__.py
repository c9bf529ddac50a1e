"""The former name of `tfcourse.lessons.explorers`, which notebooks import that students already have; it goes in 0.4."""

from tfcourse.lessons import explorers

__path__ = explorers.__path__
