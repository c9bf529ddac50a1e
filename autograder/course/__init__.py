"""Find and open the course folder: layout, configuration, lock, paths, known errors of libraries."""
