"""Read and rewrite Python source that is never run: our modules and students' cells."""
