"""The drawings of the lessons, a module for each chapter. Lessons call one function, so that their cells stay short."""
