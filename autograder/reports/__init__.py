"""What a lecturer reads and hands on: the class report, and grades in the form that a learning platform takes."""
