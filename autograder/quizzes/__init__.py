"""Ask about code: questions about a student's own, conversations, and exams."""
