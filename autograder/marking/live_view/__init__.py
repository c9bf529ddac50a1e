"""Show a running class on a projector: counts and diagnoses, and nothing of a person's."""
