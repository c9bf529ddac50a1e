"""Find and open the course folder: layout, configuration, lock, paths, and explanations of library errors."""
