"""Build the front page's parts: figures, chapter cards, live verdicts, and facts from the course's files."""
