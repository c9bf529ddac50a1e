"""Write one HTML feedback page per submission."""
