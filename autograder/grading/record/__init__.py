"""Record grades and results on disk: gradebook writer, results, journal, provenance."""
