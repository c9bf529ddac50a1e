"""Manage the class: read lists, match people to submissions, report unlisted submitters, and decide who counts."""
