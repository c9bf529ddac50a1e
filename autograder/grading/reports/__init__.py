"""Report and export grades: the class report, and the files that a learning platform takes."""
