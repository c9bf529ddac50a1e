"""Run a lesson on a student's own code: solved exercises take the place of the course's stubs."""

from tfcourse.lessons.own_code import OwnCode, use

__all__ = ["OwnCode", "use"]
