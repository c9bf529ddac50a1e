"""Serve the page on which an assistant records a student's answers during a conversation."""
