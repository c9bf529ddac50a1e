"""The checks of chapter 11: pictures, sets, tables and two streams."""
