"""Which release of the checks a package has. Building a student's package fills the text in; beside the reference it is empty."""

STAMP = ""
