"""Store grades and results on disk: gradebook rows, result files, journals, provenance."""
