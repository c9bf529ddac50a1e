"""Read and rewrite Python source without running it."""
