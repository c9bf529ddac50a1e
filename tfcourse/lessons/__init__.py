"""What lets a lesson run on a student's own code: the exercises that are solved take the place of the course's empty ones."""

from tfcourse.lessons.own_code import OwnCode, use

__all__ = ["OwnCode", "use"]
