"""The checker's side: it runs graded cells beside the reference and asks the student's process."""
