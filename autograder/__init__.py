"""The machinery of the course: checks, authoring, grading, reports, the site and the command line."""
