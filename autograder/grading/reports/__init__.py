"""Report and export grades: the class report, and files for learning platforms."""
