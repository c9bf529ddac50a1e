"""Build the front page's parts: its figures, the cards of the chapters, live verdicts, and facts that the course's files state."""
