"""The checks of chapter 12: positions that extrapolate."""
