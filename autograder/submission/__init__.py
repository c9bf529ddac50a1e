"""One submitted notebook as data: read, restored, and its problems named."""
