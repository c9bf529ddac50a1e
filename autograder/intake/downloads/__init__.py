"""Collect submissions: from a download or a folder to submitted/STUDENT/CHAPTER/."""
