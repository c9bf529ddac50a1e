"""Read one submitted notebook as data, restore its cells, and name its problems."""
