"""Make questions about code: a quiz and interviews about a student's own code, and exams about known mistakes."""
