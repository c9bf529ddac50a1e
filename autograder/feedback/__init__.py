"""Feedback: one HTML page per submission."""
