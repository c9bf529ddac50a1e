"""A whole semester, played with the commands of the page ``book/semester.md``; the numbers must agree after every one of them."""
