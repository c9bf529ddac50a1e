"""Make exams and exercises from known mistakes: code with one mistake, four options, and keys that come from running the code."""
