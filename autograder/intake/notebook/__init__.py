"""Read a submitted notebook as data, restore its cells, and report its problems."""
