"""Python source that is read and rewritten, and never run: our modules and students' cells."""
