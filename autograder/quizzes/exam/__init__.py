"""Make exams and practice pages from known mistakes: code with one mistake, four options, and a key determined by running the code."""
