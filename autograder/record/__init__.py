"""Grades and results on disk: the gradebook's writer, results, journal, provenance."""
