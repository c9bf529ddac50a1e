"""Write feedback: one HTML page per submission."""
