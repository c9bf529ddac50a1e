"""Hold the text of a new ``course.toml``: every key, as a comment."""

from __future__ import annotations

TEMPLATE = """\
# The plan of this course. Every command of tfcourse reads it; every key is optional. Uncomment what you need.
# `tfcourse assign 07 --only NAME,NAME` and `--without NAME,NAME` write `only` and `without` below.

# title = "Deep learning, winter term"
# contact = "dl-course@uni.example, room 2.14"   # in the instructions that students get
# Deadlines and submission times without an offset are in this time zone (an IANA name).
# time_zone = "Europe/Warsaw"

# [late]                      # late work, for every chapter without a rule of its own
# grace_minutes = 15          # so many minutes after the deadline are not late
# per_day = 0.10              # each day, or part of one, takes off this share of the points
# cap = 0.50                  # lateness never takes off more than this share
# closed_after_days = 14      # later than this nothing counts

# [chapters.07_decoding]      # or the beginning of the name: [chapters.07]
# only = ["greedy_search"]    # assign these exercises and questions alone; or name those to leave out:
# without = ["mirostat"]
# due = 2027-03-01T23:59:00
# late = { per_day = 0.25 }
# weight = 2                  # counts twice as much in the total as a chapter without a weight
# canvas = "Sheet 7 (88121)"   # the heading of its column in Canvas's gradebook
# groups = true               # one member hands in for each group of the class list

# [chapters.07_decoding.exercises.beam_search]   # after hand-in; nothing is graded again
# points = 5                  # what it is worth, in place of the notebook's points
# count = "drop"              # or "full": all points for every submission; or "bonus": its points are added to those of the others

# [viva.07_decoding]          # the conversations about students' own code (tfcourse viva); without a weight they do not count
# weight = 0.5
# canvas = "Conversation 7 (88122)"

# [extensions.ada]            # a student's id, a section or a group of the class list; never earlier than the deadline
# 07_decoding = 2027-03-05T23:59:00

# [deadlines."Lab B"]         # another deadline, earlier or later, of a section, a group or a student
# 07_decoding = 2027-03-04T23:59:00

# [total]                     # of all chapters that have begun, by their weights
# drop_lowest = 1             # each student's chapter with the lowest share does not count
# scale = 100                 # the points of a total of 100 %
# pass_mark = 50              # in percent
# grades = { A = 90, B = 75, C = 50 }
"""
