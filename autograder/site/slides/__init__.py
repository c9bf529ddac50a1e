"""Make lecture slides of the decks beside the lessons: ``tfcourse build --slides``."""
