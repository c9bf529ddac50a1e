"""Collect submissions from a download or a folder into submitted/STUDENT/CHAPTER/."""
